//! How many refusals are written: anybody with a key can be refused as often as they like, and must not fill the disk.
//!
//! A user gets a few a minute, all together some more. How many were left out stands in the next one that is written. The
//! log keeps the newest refusals only (`retention.rs`).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Refusals of one user that are written in a minute.
const OF_ONE: u32 = 10;
/// Refusals that are written in a minute.
const OF_ALL: u32 = 60;
/// The time in which they are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// Counts refusals.
#[derive(Default)]
pub(crate) struct Refusals {
    minute: Mutex<Minute>,
}

#[derive(Default)]
struct Minute {
    since: Option<Instant>,
    /// Never more entries than are written in a minute.
    of: HashMap<String, u32>,
    all: u32,
    left_out: u32,
}

impl Refusals {
    /// Counts one more; returns how many were left out before it, or `None` if it is left out itself.
    pub(crate) fn one_more(&self, user: &str) -> Option<u32> {
        let mut minute = self.minute.lock();
        if minute.since.is_none_or(|since| since.elapsed() >= MINUTE) {
            (minute.since, minute.all) = (Some(Instant::now()), 0);
            minute.of.clear();
        }
        let own = minute.of.get(user).copied().unwrap_or_default();
        if own >= OF_ONE || minute.all >= OF_ALL {
            minute.left_out = minute.left_out.saturating_add(1);
            return None;
        }
        minute.of.insert(user.to_owned(), own + 1);
        minute.all += 1;
        Some(std::mem::take(&mut minute.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_written_in_part_and_the_rest_is_counted() {
        let refusals = Refusals::default();
        let written = (0..1_000).filter(|_| refusals.one_more("mallory").is_some()).count();
        assert_eq!(written, OF_ONE as usize);
        assert_eq!(refusals.one_more("ann"), Some(990), "others are written, too");
        let users = (0..1_000).filter(|n| refusals.one_more(&format!("user {n}")).is_some());
        assert_eq!(users.count(), (OF_ALL - OF_ONE - 1) as usize);
    }
}
