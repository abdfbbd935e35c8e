//! Turns of endpoints: one that is slow holds up no other.
//!
//! An endpoint gets at most a quarter of this process's slots, and one slot while it fails. A delivery that finds them taken
//! gives its slot back and comes again later. Its time is reserved: each one after the others, by how long the endpoint takes.
//! So a thousand waiting deliveries ask once each, instead of all of them every second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stampede_model::WebhookId;

/// The time that an endpoint takes, until it is known.
const FIRST_GUESS: Duration = Duration::from_millis(200);
/// The shortest and the longest time until a delivery comes again.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(10 * 60);
/// Endpoints that are remembered. Those that nobody uses are forgotten first.
const REMEMBERED: usize = 4_096;

/// The turns of all endpoints in this process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Turns {
    most: usize,
    endpoints: Arc<Mutex<HashMap<WebhookId, Endpoint>>>,
}

/// What is known of an endpoint.
#[derive(Debug, Clone)]
struct Endpoint {
    running: usize,
    /// A running average.
    takes: Duration,
    is_failing: bool,
    /// Until when turns are reserved.
    reserved: Option<Instant>,
}

/// A turn; it ends when it is dropped.
pub(crate) struct Turn {
    turns: Turns,
    webhook: WebhookId,
    began: Instant,
}

impl Turns {
    /// For a process with so many slots.
    pub(crate) fn new(slots: usize) -> Self {
        Self { most: (slots / 4).max(1), endpoints: Arc::default() }
    }

    /// A turn, or the time after which to ask again.
    pub(crate) fn take(&self, webhook: WebhookId) -> Result<Turn, Duration> {
        let (mut endpoints, now) = (self.endpoints.lock(), Instant::now());
        if endpoints.len() >= REMEMBERED {
            endpoints.retain(|_, endpoint| endpoint.running > 0);
        }
        let endpoint = endpoints.entry(webhook).or_insert(Endpoint {
            running: 0,
            takes: FIRST_GUESS,
            is_failing: false,
            reserved: None,
        });
        let most = if endpoint.is_failing { 1 } else { self.most };
        if endpoint.running < most {
            endpoint.running += 1;
            return Ok(Turn { turns: self.clone(), webhook, began: now });
        }
        Err(endpoint.reserve(most, now))
    }
}

impl Endpoint {
    /// The time until the next turn that nobody else has reserved.
    fn reserve(&mut self, most: usize, now: Instant) -> Duration {
        let step = self.takes / most as u32;
        let earliest = self.reserved.filter(|reserved| *reserved > now).unwrap_or(now);
        let at = (earliest + step).min(now + LATEST);
        self.reserved = Some(at);
        at.duration_since(now).clamp(SOONEST, LATEST)
    }
}

impl Turn {
    /// Notes whether the endpoint accepted the message.
    pub(crate) fn note(&self, accepted: bool) {
        if let Some(endpoint) = self.turns.endpoints.lock().get_mut(&self.webhook) {
            endpoint.is_failing = !accepted;
            endpoint.takes = (endpoint.takes * 3 + self.began.elapsed()) / 4;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(endpoint) = self.turns.endpoints.lock().get_mut(&self.webhook) {
            endpoint.running -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_gets_a_quarter_of_the_slots_and_one_while_it_fails() {
        let turns = Turns::new(16);
        let (slow, other) = (WebhookId::generate(), WebhookId::generate());
        let mut held: Vec<Turn> = (0..4).map(|_| turns.take(slow).ok().unwrap()).collect();
        assert!(turns.take(slow).is_err());
        assert!(turns.take(other).is_ok(), "another endpoint has its own");
        held.pop();
        assert!(turns.take(slow).is_ok(), "a turn that ended is free");
        held[0].note(false);
        assert!(turns.take(slow).is_err());
        held.clear();
        let one = turns.take(slow).ok().unwrap();
        assert!(turns.take(slow).is_err(), "one while it fails");
        one.note(true);
        assert!(turns.take(slow).is_ok());
        assert!(Turns::new(1).take(slow).is_ok(), "at least one");
    }

    #[test]
    fn those_who_wait_come_one_after_the_other() {
        let turns = Turns::new(4);
        let slow = WebhookId::generate();
        let _held = turns.take(slow).ok().unwrap();
        let pauses: Vec<Duration> = (0..100).map(|_| turns.take(slow).err().unwrap()).collect();
        assert!(pauses.is_sorted() && pauses[0] >= SOONEST);
        assert!(pauses[99] > Duration::from_secs(19), "{:?}", pauses[99]);
        let far: Vec<Duration> = (0..10_000).map(|_| turns.take(slow).err().unwrap()).collect();
        assert!(far.iter().all(|pause| *pause <= LATEST));
    }

    #[test]
    fn endpoints_do_not_pile_up() {
        let turns = Turns::new(16);
        for _ in 0..2 * REMEMBERED {
            drop(turns.take(WebhookId::generate()));
        }
        assert!(turns.endpoints.lock().len() <= REMEMBERED);
    }
}
