//! One reader of the feed: the events that its key may see, heartbeats, and the key checked again and again.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use stampede_feed::{Heard, Position, Reader, Seen, may_see};
use stampede_identity::Identity;
use stampede_model::Principal;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};
use tokio_util::task::AbortOnDropHandle;

/// Time between two heartbeats. Proxies end connections that are silent for a minute.
const BEAT_EVERY: Duration = Duration::from_secs(15);
/// Time between two checks of the key: a revoked key reads on for so long at most.
const CHECK_EVERY: Duration = Duration::from_secs(30);

/// What a reader does next.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Sends an event.
    Event(Arc<Seen>),
    /// Tells that events are gone.
    Reset(Position),
    /// Everything that was missed is told.
    CaughtUp,
    /// Tells that the stream is alive, and up to where it has come.
    Beat(Position),
    /// Ends: the key is not valid any more.
    KeyEnded,
    /// Ends: the reader is too slow.
    Lagged,
    /// Ends: the node stops.
    Stopped,
}

/// A reader of the feed.
pub(crate) struct Watch {
    reader: Reader,
    caller: Principal,
    identity: Identity,
    credential: String,
    from: Option<IpAddr>,
    beat: Interval,
    check: Interval,
    /// A check of the key that is not answered yet. A task of its own: a client that sends without pause cancels every wait
    /// for the next step.
    checking: Option<AbortOnDropHandle<Known>>,
}

/// What a check of a key has found.
enum Known {
    /// The key is valid.
    As(Box<Principal>),
    /// It is not valid any more.
    Ended,
    /// The database is away: nothing is known, and the stream goes on. It has no news either.
    Unknown,
}

impl Watch {
    /// A reader for a caller with this key.
    pub(crate) fn new(
        reader: Reader,
        caller: Principal,
        identity: Identity,
        credential: String,
        from: Option<IpAddr>,
    ) -> Self {
        let (beat, check) = (every(BEAT_EVERY), every(CHECK_EVERY));
        Self { reader, caller, identity, credential, from, beat, check, checking: None }
    }

    /// The place after which the next event comes.
    pub(crate) fn position(&self) -> Position {
        self.reader.position()
    }

    /// Goes on with another reader.
    pub(crate) fn read_with(&mut self, reader: Reader) {
        self.reader = reader;
    }

    /// Waits for the next step. Safe to cancel.
    pub(crate) async fn next(&mut self) -> Step {
        loop {
            tokio::select! {
                heard = self.reader.next() => match heard {
                    Heard::Event(event) if may_see(&self.caller, &event) => return Step::Event(event),
                    Heard::Event(_) => {}
                    Heard::Reset(position) => return Step::Reset(position),
                    Heard::CaughtUp => return Step::CaughtUp,
                    Heard::Lagged => return Step::Lagged,
                    Heard::Ended => return Step::Stopped,
                },
                _ = self.beat.tick() => return Step::Beat(self.reader.position()),
                _ = self.check.tick(), if self.checking.is_none() => {
                    self.checking = Some(self.check_key());
                }
                known = answer(&mut self.checking) => {
                    self.checking = None;
                    match known {
                        Known::As(caller) => self.caller = *caller,
                        Known::Ended => return Step::KeyEnded,
                        Known::Unknown => {}
                    }
                }
            }
        }
    }

    fn check_key(&self) -> AbortOnDropHandle<Known> {
        let (identity, credential, from) =
            (self.identity.clone(), self.credential.clone(), self.from);
        AbortOnDropHandle::new(tokio::spawn(async move {
            match identity.principal(&credential, from).await {
                Ok(Ok(caller)) => Known::As(Box::new(caller)),
                Ok(Err(_)) => Known::Ended,
                Err(_) => Known::Unknown,
            }
        }))
    }
}

/// Waits for the answer of a check; for ever if there is none.
async fn answer(checking: &mut Option<AbortOnDropHandle<Known>>) -> Known {
    match checking {
        // A check that panicked found nothing.
        Some(check) => check.await.unwrap_or(Known::Unknown),
        None => std::future::pending().await,
    }
}

fn every(time: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + time, time);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
