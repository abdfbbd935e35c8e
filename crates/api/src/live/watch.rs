//! One reader of the feed: the events that its key may see, heartbeats, and the key checked again and again.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use stampede_feed::{Heard, Position, Reader, Seen, may_see};
use stampede_identity::Identity;
use stampede_model::Principal;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

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
        Self { reader, caller, identity, credential, from, beat, check }
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
                    Heard::Lagged => return Step::Lagged,
                    Heard::Ended => return Step::Stopped,
                },
                _ = self.beat.tick() => return Step::Beat(self.reader.position()),
                _ = self.check.tick() => {
                    if !self.is_still_known().await {
                        return Step::KeyEnded;
                    }
                }
            }
        }
    }

    /// Checks the key. While the database is away, nothing is known, and the stream goes on: it has no news either.
    async fn is_still_known(&mut self) -> bool {
        match self.identity.principal(&self.credential, self.from).await {
            Ok(Ok(caller)) => {
                self.caller = caller;
                true
            }
            Ok(Err(_)) => false,
            Err(_) => true,
        }
    }
}

fn every(time: Duration) -> Interval {
    let mut ticks = interval_at(Instant::now() + time, time);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
