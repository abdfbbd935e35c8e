//! The hub: reads the stream once for all readers of a node, on one connection to Redis.
//!
//! Events go to a ring that all readers share, so a reader costs a place in it and no copy. A reader that falls behind
//! the ring is told so ([`Heard::Lagged`](crate::Heard)) and has to resume. What came before a reader is read in pages
//! from Redis, at the reader's own pace.

use std::sync::Arc;
use std::time::Duration;

use stampede_broker::{Broker, Error, Feed, Position};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::keep;
use crate::reader::{Begin, Reader};
use crate::recent::Recent;
use crate::seen::Seen;

/// Events that a slow reader may be behind.
const RING: usize = 4_096;
/// A reader waits so long for a hub that has just been started.
const START_PATIENCE: Duration = Duration::from_secs(2);
/// Pause after a failed call.
const PAUSE: Duration = Duration::from_millis(300);

/// What the hub tells its readers.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    /// An event.
    Event(Arc<Seen>),
    /// Redis has lost events: readers should read the state anew.
    Lost,
    /// Redis was restarted, or another server took over: it may have lost events that nobody has read yet.
    Restarted,
}

/// Reads the stream for the readers of this node. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Hub {
    shared: Arc<Shared>,
}

struct Shared {
    feed: Feed,
    ring: broadcast::Sender<Message>,
    /// The last event that was read; `None`: the hub has not reached Redis yet.
    last: watch::Sender<Option<Position>>,
    stop: CancellationToken,
}

impl Hub {
    /// A hub that reads when it runs and ends its readers at `stop`.
    pub fn new(broker: &Broker, stop: CancellationToken) -> Self {
        let (ring, last) = (broadcast::Sender::new(RING), watch::Sender::new(None));
        Self { shared: Arc::new(Shared { feed: broker.feed(), ring, last, stop }) }
    }

    /// Reads until the hub is stopped, through outages of Redis.
    pub async fn run(self) {
        let stop = self.shared.stop.clone();
        tokio::select! {
            () = self.read() => {}
            () = self.tell_restarts() => {}
            () = stop.cancelled() => {}
        }
    }

    async fn tell_restarts(&self) {
        let mut restarts = self.shared.feed.restarts();
        loop {
            restarts.next().await;
            // Fails only when there is no reader.
            let _ = self.shared.ring.send(Message::Restarted);
        }
    }

    async fn read(&self) {
        let mut recent = Recent::default();
        loop {
            if let Err(error) = self.read_until_failure(&mut recent).await {
                tracing::debug!(%error, "cannot read the feed; trying again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn read_until_failure(&self, recent: &mut Recent) -> Result<(), Error> {
        let Shared { feed, ring, last, .. } = &*self.shared;
        let mut reader = feed.reader().await?;
        let newest = feed.bounds().await?.map_or(Position::START, |bounds| bounds.last);
        let known = *last.borrow();
        let mut position = match known {
            // A Redis that lost its last second, or another Redis.
            Some(known) if newest < known => {
                let _ = ring.send(Message::Lost);
                newest
            }
            Some(known) => known,
            None => newest,
        };
        last.send_replace(Some(position));
        loop {
            for entry in reader.next(position).await? {
                position = entry.position;
                // Before the event is sent: a reader that begins now gets everything after `last`.
                last.send_replace(Some(position));
                if recent.is_new(&entry.id)
                    && let Some(seen) = Seen::read(entry)
                {
                    // Fails only when there is no reader.
                    let _ = ring.send(Message::Event(Arc::new(seen)));
                }
            }
        }
    }

    /// A reader of what comes from now on, or of everything after a position. Fails if Redis is away.
    pub async fn follow(&self, after: Option<Position>) -> Result<Reader, Error> {
        // Before anything is read: nothing may be missed in between.
        let ring = self.ring();
        if after.is_none()
            && let Some(last) = self.reached().await
        {
            return Ok(Reader::new(self.clone(), ring, last, Begin::Live));
        }
        let bounds = self.shared.feed.bounds().await?;
        let newest = bounds.map_or(Position::START, |bounds| bounds.last);
        Ok(match after {
            None => Reader::new(self.clone(), ring, newest, Begin::Resumed),
            Some(after) if is_kept(after, bounds) => {
                Reader::new(self.clone(), ring, after, Begin::Resumed)
            }
            Some(_) => Reader::new(self.clone(), ring, newest, Begin::Reset),
        })
    }

    /// The last event that was read; `None`: the hub does not reach Redis.
    async fn reached(&self) -> Option<Position> {
        let mut last = self.shared.last.subscribe();
        let reached = tokio::time::timeout(START_PATIENCE, last.wait_for(Option::is_some)).await;
        reached.ok()?.ok().and_then(|last| *last)
    }

    /// All messages from now on.
    pub(crate) fn ring(&self) -> broadcast::Receiver<Message> {
        self.shared.ring.subscribe()
    }

    /// A page of the events after a position, and the position of its last entry; `None`: there is none.
    pub(crate) async fn page(
        &self,
        after: Position,
        count: usize,
    ) -> Result<Option<(Vec<Arc<Seen>>, Position)>, Error> {
        let entries = self.shared.feed.after(after, count).await?;
        let Some(end) = entries.last().map(|entry| entry.position) else { return Ok(None) };
        Ok(Some((entries.into_iter().filter_map(Seen::read).map(Arc::new).collect(), end)))
    }

    /// Cancelled when the readers have to end.
    pub(crate) fn stop(&self) -> &CancellationToken {
        &self.shared.stop
    }
}

/// Whether everything after a position is still in the stream.
fn is_kept(after: Position, bounds: Option<stampede_broker::Bounds>) -> bool {
    match bounds {
        None => after == Position::START,
        // The stream is cut only when it is long.
        Some(bounds) if after == Position::START => bounds.length < keep::FEWEST,
        Some(bounds) => (bounds.first..=bounds.last).contains(&after),
    }
}

#[cfg(test)]
mod tests {
    use stampede_broker::Bounds;

    use super::*;

    #[test]
    fn a_position_that_is_gone_or_unknown_is_not_kept() {
        let at = |ms| Position { ms, nth: 0 };
        let bounds = |length| Some(Bounds { first: at(10), last: at(20), length });
        for (after, bounds, kept) in [
            (at(10), bounds(5), true),
            (at(15), bounds(5), true),
            (at(20), bounds(5), true),
            (at(9), bounds(5), false),
            (at(21), bounds(5), false),
            (Position::START, bounds(5), true),
            (Position::START, bounds(1_000_000), false),
            (Position::START, None, true),
            (at(10), None, false),
        ] {
            assert_eq!(is_kept(after, bounds), kept, "{after} in {bounds:?}");
        }
    }
}
