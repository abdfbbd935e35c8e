//! Keeping the slots busy: a pure function decides what to do next, a thin loop does it.
//!
//! ```text
//!            ┌──────────────────────── look ◀────────────────┬──────────────┐
//!            │ a slot is free            │ none is free      │              │
//!            ▼                           │                   │              │
//!          fetch ── a job ───────────────┼──▶ start it ──────┤              │
//!            │                           ▼                   │              │
//!            ├── nothing ─────────────▶ wait: marker, end ───┘              │
//!            │                          of a slot, resize                   │
//!            ├── must not take now ───┐                                     │
//!            └── failed (longer each  ├─▶ sleep ────────────────────────────┘
//!                time, up to 1 s) ────┘
//! ```

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::fetch::Taking;
use super::marker::{Marker, Woken};
use super::slots::{FreeSlot, Slots};
use super::{FIRST_PAUSE, IDLE, LONGEST_PAUSE, Shared};

/// What the loop remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    /// How long to sleep after the next failure.
    pause: Duration,
}

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// It was looked whether a job may be taken.
    Looked(Room),
    /// A job was taken, and runs in its slot.
    Took,
    /// There was no job; there may be one after this long.
    FoundNothing(Duration),
    /// It is doubtful what Redis remembers; jobs may be taken after this long.
    MustNotTake(Duration),
    /// Redis did not answer, or with an error.
    Failed,
    /// The wait or the sleep is over.
    Rested,
}

/// Whether a job may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// A slot is free.
    Free,
    /// All slots are busy, or no more jobs may be taken.
    None,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Look whether a job may be taken.
    Look,
    /// Take a job.
    Fetch,
    /// Wait for this long at most, or until a marker, the end of a slot or another number of slots.
    Wait(Duration),
    /// Sleep for this long.
    Sleep(Duration),
}

fn next(state: State, event: Event) -> (State, Effect) {
    let fresh = State { pause: FIRST_PAUSE };
    match event {
        Event::Looked(Room::Free) => (state, Effect::Fetch),
        Event::Looked(Room::None) => (state, Effect::Wait(IDLE)),
        Event::Took => (fresh, Effect::Look),
        Event::FoundNothing(until) => (fresh, Effect::Wait(until)),
        Event::MustNotTake(until) => (state, Effect::Sleep(until)),
        Event::Failed => {
            let pause = (state.pause * 2).min(LONGEST_PAUSE);
            (State { pause }, Effect::Sleep(state.pause))
        }
        Event::Rested => (state, Effect::Look),
    }
}

impl Shared {
    /// Keeps the slots busy until `stop`.
    pub(super) async fn fill_slots(
        self: &Arc<Self>,
        busy: &mut JoinSet<FreeSlot>,
        stop: &CancellationToken,
    ) {
        let mut wanted = self.slots.subscribe();
        let mut slots = Slots::default();
        let mut marker = Marker::new(self.queue.clone(), &self.config.name);
        // Other clients list this connection as a worker, also if it never waits.
        tokio::select! {
            () = marker.open() => {}
            () = stop.cancelled() => {}
        }
        let mut state = State { pause: FIRST_PAUSE };
        let mut effect = Effect::Look;
        while !stop.is_cancelled() {
            let event = match effect {
                Effect::Look => {
                    slots.resize(*wanted.borrow_and_update());
                    Event::Looked(self.room(&slots))
                }
                Effect::Fetch => self.fetch_into(&mut slots, busy, state).await,
                Effect::Wait(idle) => {
                    self.wait(idle, &mut slots, &mut marker, &mut wanted, busy, stop).await;
                    Event::Rested
                }
                Effect::Sleep(pause) => {
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = stop.cancelled() => {}
                    }
                    Event::Rested
                }
            };
            (state, effect) = next(state, event);
        }
        marker.close().await;
    }

    fn room(&self, slots: &Slots) -> Room {
        if slots.free.is_empty() || self.quiet.is_cancelled() { Room::None } else { Room::Free }
    }

    /// Takes a job and starts it.
    async fn fetch_into(
        self: &Arc<Self>,
        slots: &mut Slots,
        busy: &mut JoinSet<FreeSlot>,
        state: State,
    ) -> Event {
        match self.fetch(slots).await {
            Ok(Taking::Job(slot, admitted)) => {
                self.outages.worked();
                busy.spawn(self.clone().work(slot, admitted));
                Event::Took
            }
            Ok(Taking::Nothing(until)) => {
                self.outages.worked();
                Event::FoundNothing(until)
            }
            Ok(Taking::NotNow(until)) => Event::MustNotTake(until),
            Err(error) => {
                self.failed();
                // The connection logs outages, once (`link/state.rs`).
                if !error.is_outage() {
                    tracing::warn!(%error, retry_in = ?state.pause, "cannot take jobs");
                }
                Event::Failed
            }
        }
    }

    /// Waits for work, for the end of a slot, or for another number of slots.
    async fn wait(
        &self,
        idle: Duration,
        slots: &mut Slots,
        marker: &mut Marker,
        wanted: &mut watch::Receiver<usize>,
        busy: &mut JoinSet<FreeSlot>,
        stop: &CancellationToken,
    ) {
        let may_take = self.room(slots) == Room::Free;
        tokio::select! {
            Some(ended) = busy.join_next() => match ended {
                Ok(slot) => slots.free.push(slot),
                Err(error) => tracing::error!(%error, "a slot ended in an unexpected way"),
            },
            woken = marker.wait(idle), if may_take || marker.is_waiting() => {
                if woken == Woken::ByMarker && (!may_take || stop.is_cancelled()) {
                    marker.pass_on().await;
                }
            }
            // The consumer itself holds the other end.
            Ok(()) = wanted.changed() => {}
            () = self.quiet.cancelled(), if !self.quiet.is_cancelled() => {}
            () = stop.cancelled() => {}
        }
        while let Some(Ok(slot)) = busy.try_join_next() {
            slots.free.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: State = State { pause: FIRST_PAUSE };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_free_slot_takes_a_job_and_a_full_consumer_waits() {
        assert_eq!(next(FRESH, Event::Looked(Room::Free)), (FRESH, Effect::Fetch));
        assert_eq!(next(FRESH, Event::Looked(Room::None)), (FRESH, Effect::Wait(IDLE)));
    }

    #[test]
    fn after_a_job_the_next_one_is_looked_for_at_once() {
        assert_eq!(next(FRESH, Event::Took), (FRESH, Effect::Look));
    }

    #[test]
    fn without_a_job_it_waits_as_long_as_told() {
        assert_eq!(next(FRESH, Event::FoundNothing(ms(40))), (FRESH, Effect::Wait(ms(40))));
        assert_eq!(next(FRESH, Event::Rested), (FRESH, Effect::Look));
    }

    #[test]
    fn pauses_double_with_every_failure_up_to_the_longest() {
        let (mut state, mut pauses) = (FRESH, Vec::new());
        for _ in 0..6 {
            let (after, effect) = next(state, Event::Failed);
            pauses.push(effect);
            state = next(after, Event::Rested).0;
        }
        let expected = [100, 200, 400, 800, 1000, 1000].map(|pause| Effect::Sleep(ms(pause)));
        assert_eq!(pauses, expected);
    }

    #[test]
    fn an_answer_makes_the_next_pause_short_again_and_a_doubt_does_not() {
        let slow = State { pause: LONGEST_PAUSE };
        assert_eq!(next(slow, Event::Took).0, FRESH);
        assert_eq!(next(slow, Event::FoundNothing(IDLE)).0, FRESH);
        assert_eq!(next(slow, Event::MustNotTake(ms(50))), (slow, Effect::Sleep(ms(50))));
        assert_eq!(next(slow, Event::Looked(Room::Free)).0, slow);
        assert_eq!(next(slow, Event::Rested).0, slow);
    }
}
