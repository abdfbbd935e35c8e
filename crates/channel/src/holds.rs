//! Pauses that grow while a provider keeps asking for them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stampede_model::RecipientId;

/// Most recipients whose pauses are remembered.
const MOST_RECIPIENTS: usize = 10_000;

/// The pauses of one account: `first × 2ⁿ`. Messages that were in flight together count once.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    state: Mutex<Option<Held>>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    doublings: u32,
    until: Instant,
}

impl Holds {
    /// The pause that follows.
    pub(crate) fn next(&self, first: Duration, most: Duration, now: Instant) -> Duration {
        let mut state = self.state.lock();
        let doublings = match *state {
            None => 0,
            // This message left before the pause began.
            Some(held) if now < held.until => held.doublings,
            Some(held) => (held.doublings + 1).min(30),
        };
        let pause = first.saturating_mul(1 << doublings).min(most);
        *state = Some(Held { doublings, until: now + pause });
        pause
    }

    /// A message was accepted: the next pause is a short one.
    pub(crate) fn worked(&self, now: Instant) {
        let mut state = self.state.lock();
        if state.is_some_and(|held| now >= held.until) {
            *state = None;
        }
    }
}

/// The pauses of single recipients: `4ⁿ` seconds, at most an hour. A process remembers them, not the ledger: they use no
/// attempt.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    asked: Mutex<HashMap<RecipientId, u32>>,
}

impl Waits {
    /// The pause that follows.
    pub(crate) fn next(&self, recipient: RecipientId) -> Duration {
        let mut asked = self.asked.lock();
        if asked.len() >= MOST_RECIPIENTS && !asked.contains_key(&recipient) {
            asked.clear();
        }
        let times = asked.entry(recipient).or_default();
        let pause = Duration::from_secs(4_u64.saturating_pow(*times));
        *times = (*times + 1).min(10);
        pause.min(Duration::from_secs(3_600))
    }

    /// The recipient is done with.
    pub(crate) fn forget(&self, recipient: RecipientId) {
        self.asked.lock().remove(&recipient);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_only_after_it_is_over_and_starts_again_after_success() {
        let (holds, start) = (Holds::default(), Instant::now());
        let second = Duration::from_secs(1);
        let next =
            |at: u64| holds.next(second, 10 * second, start + Duration::from_millis(at)).as_secs();
        assert_eq!((next(0), next(500), next(1_600)), (1, 1, 2));
        assert_eq!((next(3_700), next(8_000), next(20_000), next(40_000)), (4, 8, 10, 10));
        holds.worked(start + Duration::from_millis(40_001));
        assert_eq!(next(51_000), 10, "a message that was in flight changes nothing");
        holds.worked(start + Duration::from_secs(70));
        assert_eq!(next(71_000), 1);
    }

    #[test]
    fn a_recipient_waits_for_powers_of_four() {
        let (waits, ann, bob) =
            (Waits::default(), RecipientId::generate(), RecipientId::generate());
        let pauses: Vec<u64> = (0..8).map(|_| waits.next(ann).as_secs()).collect();
        assert_eq!(pauses, [1, 4, 16, 64, 256, 1_024, 3_600, 3_600]);
        assert_eq!(waits.next(bob).as_secs(), 1);
        waits.forget(ann);
        assert_eq!(waits.next(ann).as_secs(), 1);
    }
}
