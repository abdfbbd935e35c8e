//! How much of one owner's answers a node keeps: a program that sends a new key with each request must not fill the database.
//!
//! Bytes are counted in memory, from the first answer of an owner on for a day, after which these answers are forgotten. A
//! node that starts anew counts anew. Answers beyond the share are sent and not kept: the same request again gets 409
//! `answer_not_kept`, and is not carried out twice.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use stampede_model::Timestamp;

use super::KEPT;

/// Bytes of answers that are kept of one owner in a day.
const OF_ONE_OWNER: usize = 64 << 20;
/// Owners that are counted; when there are more, those whose day is over are left out.
const OWNERS: usize = 10_000;

/// The bytes that are kept of each owner. Clones share them.
#[derive(Clone, Default)]
pub struct AnswerShares(Arc<Mutex<HashMap<String, Kept>>>);

/// Bytes that are kept of an owner, and since when they are counted.
struct Kept {
    since: Timestamp,
    bytes: usize,
}

impl AnswerShares {
    /// Takes room for an answer of this owner; `false`: its share is used up.
    pub(crate) fn take(&self, owner: &str, bytes: usize, now: Timestamp) -> bool {
        let mut owners = self.0.lock();
        if owners.len() >= OWNERS && !owners.contains_key(owner) {
            owners.retain(|_, kept| kept.since + KEPT > now);
        }
        let kept = owners.entry(owner.to_owned()).or_insert(Kept { since: now, bytes: 0 });
        if kept.since + KEPT <= now {
            *kept = Kept { since: now, bytes: 0 };
        }
        let sum = kept.bytes.saturating_add(bytes);
        if sum > OF_ONE_OWNER {
            return false;
        }
        kept.bytes = sum;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_owner_has_a_share_a_day() {
        let (shares, now) = (AnswerShares::default(), Timestamp::UNIX_EPOCH);
        let half = OF_ONE_OWNER / 2;
        assert!(shares.take("ann", half, now) && shares.take("ann", half, now));
        assert!(!shares.take("ann", 1, now + (KEPT - Duration::from_secs(1))));
        assert!(shares.take("bob", 1, now));
        assert!(shares.take("ann", half, now + KEPT));
    }
}
