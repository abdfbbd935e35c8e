//! The slow lane: tickets that take their time share a part of the slots, fairly for each organiser.
//!
//! Stamping a ticket takes microseconds; typesetting one takes up to ten seconds, and so may the first ticket of a
//! template. Such tickets need a place. There are half as many places as slots, so that quick tickets always find a slot;
//! organisers that want places at the same time have equal shares of them. A ticket without a place leaves its slot and
//! comes back: each at another time, at the pace at which the organiser's tickets are made. VIP tickets come back soon,
//! and so does the first ticket of a template (`warming.rs`), which says nothing about the pace of the others.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// An organiser counts as waiting for this long after its last ticket wanted a place.
const WANTS_FOR: Duration = Duration::from_secs(20);
/// Shortest pause of a ticket without a place.
const SHORTEST: Duration = Duration::from_millis(100);
/// Pause of a VIP ticket or the first ticket of a template, without a place.
const SOON: Duration = Duration::from_millis(200);
/// Longest pause of a ticket without a place.
const LONGEST: Duration = Duration::from_secs(30);
/// How long a ticket takes, as long as none was measured.
const FIRST_GUESS: Duration = Duration::from_millis(200);
/// Tickets of one worker that are typeset at the same time.
const AT_ONCE: u32 = 2;

/// Whether a ticket goes before others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// The first ticket of a template: others wait for it.
    First,
    Vip,
    Normal,
}

/// Gives out places. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SlowLane {
    shared: Arc<Shared>,
}

struct Shared {
    places: usize,
    owners: Mutex<HashMap<String, Owner>>,
}

struct Owner {
    held: usize,
    wanted: Instant,
    /// When the next ticket without a place comes back.
    next: Instant,
    /// How long a ticket takes.
    takes: Duration,
}

/// A place, free again when it is dropped.
pub(crate) struct Place {
    lane: SlowLane,
    owner: String,
    urgency: Urgency,
    since: Instant,
}

impl SlowLane {
    /// The lane of a worker with so many slots.
    pub(crate) fn new(slots: usize) -> Self {
        let shared = Shared { places: (slots / 2).max(1), owners: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// A place for a ticket of this organiser, or the time after which the ticket is to come back.
    pub(crate) fn enter(&self, owner: &str, urgency: Urgency) -> Result<Place, Duration> {
        self.enter_at(owner, urgency, Instant::now())
    }

    fn enter_at(&self, name: &str, urgency: Urgency, now: Instant) -> Result<Place, Duration> {
        let mut owners = self.shared.owners.lock();
        owners.retain(|_, owner| owner.held > 0 || now < owner.wanted + WANTS_FOR);
        let entry = owners.entry(name.to_owned()).or_insert(Owner {
            held: 0,
            wanted: now,
            next: now,
            takes: FIRST_GUESS,
        });
        entry.wanted = now;
        let held: usize = owners.values().map(|owner| owner.held).sum();
        let share = (self.shared.places / owners.len()).max(1);
        let Some(own) = owners.get_mut(name) else { return Err(LONGEST) };
        if held < self.shared.places && own.held < share {
            own.held += 1;
            return Ok(Place { lane: self.clone(), owner: name.to_owned(), urgency, since: now });
        }
        Err(own.pause(urgency, now))
    }

    fn leave(&self, name: &str, urgency: Urgency, took: Duration) {
        let mut owners = self.shared.owners.lock();
        if let Some(owner) = owners.get_mut(name) {
            owner.held = owner.held.saturating_sub(1);
            if urgency != Urgency::First {
                owner.takes = (owner.takes * 3 + took) / 4;
            }
        }
    }
}

impl Owner {
    /// When a ticket without a place comes back: after those that were sent away before it.
    fn pause(&mut self, urgency: Urgency, now: Instant) -> Duration {
        if urgency != Urgency::Normal {
            return SOON;
        }
        self.next = self.next.max(now) + self.takes / AT_ONCE;
        let pause = self.next.duration_since(now).clamp(SHORTEST, LONGEST);
        // Tickets that were sent away long ago are made elsewhere meanwhile: no pause grows without end.
        self.next = self.next.min(now + LONGEST);
        pause
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.lane.leave(&self.owner, self.urgency, self.since.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(lane: &SlowLane, owner: &str, wanted: usize) -> Vec<Place> {
        (0..wanted).map_while(|_| lane.enter(owner, Urgency::Normal).ok()).collect()
    }

    #[test]
    fn half_of_the_slots_are_left_for_quick_tickets() {
        let lane = SlowLane::new(16);
        let held = places(&lane, "ann", 100);
        assert_eq!(held.len(), 8);
        assert!(lane.enter("bob", Urgency::Vip).is_err());
        assert_eq!(places(&SlowLane::new(1), "ann", 9).len(), 1);
    }

    #[test]
    fn organisers_that_want_places_have_equal_shares() {
        let lane = SlowLane::new(16);
        let mut ann = places(&lane, "ann", 100);
        assert!(places(&lane, "bob", 1).is_empty(), "all are taken");
        ann.truncate(6);
        assert!(lane.enter("ann", Urgency::Normal).is_err(), "she has more than her half");
        let bob = places(&lane, "bob", 100);
        assert_eq!(bob.len(), 2);
        drop(ann);
        assert_eq!(places(&lane, "ann", 100).len(), 4);
        drop(bob);
        assert_eq!(places(&lane, "bob", 100).len(), 4);
    }

    #[test]
    fn tickets_that_are_sent_away_come_back_one_after_the_other_and_vip_soon() {
        let lane = SlowLane::new(2);
        let now = Instant::now();
        let _held = lane.enter_at("ann", Urgency::Normal, now).ok();
        lane.shared.owners.lock().get_mut("ann").unwrap().takes = Duration::from_secs(4);
        let pause = |urgency| lane.enter_at("ann", urgency, now).err().unwrap();
        let pauses = [(); 4].map(|()| pause(Urgency::Normal).as_secs());
        assert_eq!(pauses, [2, 4, 6, 8]);
        assert_eq!(pause(Urgency::Vip), SOON);
        for _ in 0..100 {
            assert!(pause(Urgency::Normal) <= LONGEST);
        }
        assert!(lane.enter_at("bob", Urgency::Normal, now).err().unwrap() < Duration::from_secs(1));
    }

    #[test]
    fn the_first_ticket_of_a_template_says_nothing_about_the_pace_of_the_others() {
        let lane = SlowLane::new(2);
        let now = Instant::now();
        let mut cold = lane.enter_at("ann", Urgency::First, now).ok().unwrap();
        cold.since = now - Duration::from_secs(20);
        assert_eq!(lane.enter_at("ann", Urgency::First, now).err(), Some(SOON));
        drop(cold);
        let _held = lane.enter_at("ann", Urgency::Normal, now).ok().unwrap();
        let pause = lane.enter_at("ann", Urgency::Normal, now).err().unwrap();
        assert!(pause < Duration::from_secs(1), "{pause:?}");
    }

    #[test]
    fn an_organiser_that_wants_nothing_any_more_has_no_share() {
        let lane = SlowLane::new(16);
        drop(places(&lane, "ann", 1));
        assert_eq!(places(&lane, "bob", 100).len(), 4);
        let later = Instant::now() + WANTS_FOR;
        let held: Vec<_> =
            (0..100).map_while(|_| lane.enter_at("bob", Urgency::Normal, later).ok()).collect();
        assert_eq!(held.len(), 8);
    }
}
