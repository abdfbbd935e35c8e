//! `RateLimit-Policy` and `RateLimit`, as draft-ietf-httpapi-ratelimit-headers-11 writes them:
//!
//! ```text
//! RateLimit-Policy: "address";q=300000;w=60, "key";q=120000;w=60
//! RateLimit: "address";r=299871;t=42, "key";r=119990;t=42
//! ```
//! `q` permits in `w` seconds; `r` are left, and in `t` seconds there are `q` again.

use std::fmt::Write;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use stampede_broker::Standing;

use super::{Limit, RateLimits, WINDOW};

pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(crate) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Whole seconds, rounded up, at least one: who comes back then comes in the next window.
pub(super) fn seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX).max(1)
}

/// Tells how the request stands with the limits that it was counted for.
pub(super) fn write(
    headers: &mut HeaderMap,
    limits: &RateLimits,
    standings: [Option<Standing>; 3],
) {
    let (mut policies, mut states) = (String::new(), String::new());
    for (limit, standing) in Limit::ALL.into_iter().zip(standings) {
        let (Some(standing), Some(quota)) = (standing, limits.quota(limit)) else { continue };
        let (name, comma) = (limit.name(), if states.is_empty() { "" } else { ", " });
        let (most, window) = (quota.most(), WINDOW.as_secs());
        let (left, resets) = (standing.left, seconds(standing.resets_in));
        // Writing into a text does not fail.
        let _ = write!(policies, "{comma}\"{name}\";q={most};w={window}");
        let _ = write!(states, "{comma}\"{name}\";r={left};t={resets}");
    }
    for (name, text) in [(RATE_LIMIT_POLICY, policies), (RATE_LIMIT, states)] {
        if let Ok(value) = HeaderValue::try_from(text)
            && !value.is_empty()
        {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_back_after_the_told_seconds_is_not_too_early() {
        let told = [0, 1, 999, 1_000, 1_001, 59_999].map(|ms| seconds(Duration::from_millis(ms)));
        assert_eq!(told, [1, 1, 1, 1, 2, 60]);
    }
}
