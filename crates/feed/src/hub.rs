//! The hub: reads the stream once for all readers of a node, on one connection to Redis.
//!
//! Events go to a ring that all readers share, so a reader costs a place in it and no copy. A reader that falls behind
//! the ring is told so ([`Heard::Lagged`](crate::Heard)) and has to resume. What came before a reader is read in pages
//! from Redis, at the reader's own pace.

use std::sync::Arc;
use std::time::Duration;

use stampede_broker::{Broker, Error, Feed, Look, Noticed, Page, Position};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::keep;
use crate::reader::{Begin, Reader};
use crate::recent::Recent;
use crate::restart;
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
    /// Events are gone that nobody here has read: readers should read the state anew. What follows came after this position.
    Lost(Position),
    /// At this position Redis was restarted, or another server took over: it may have lost events.
    Restarted(Position),
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
            () = self.note_restarts() => {}
            () = stop.cancelled() => {}
        }
    }

    /// Writes restarts of Redis into the stream, where everybody who resumes later finds them, too.
    async fn note_restarts(&self) {
        let feed = &self.shared.feed;
        let (mut restarts, mut noticed) = (feed.restarts(), Noticed::AtStart);
        loop {
            while let Err(error) = feed.note_restart(noticed, &restart::entry()).await {
                tracing::debug!(%error, "cannot note which Redis answers; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            restarts.next().await;
            noticed = Noticed::Restart;
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
        let known = *last.borrow();
        let newest = feed.look(known.unwrap_or_default()).await?.newest;
        let mut position = match known {
            // A Redis that lost its last second, or another Redis: what it tells from now on has smaller positions.
            Some(known) if newest < known => {
                let _ = ring.send(Message::Lost(newest));
                newest
            }
            Some(known) => known,
            None => newest,
        };
        last.send_replace(Some(position));
        loop {
            let page = reader.next(position).await?;
            if !page.is_whole && !page.entries.is_empty() {
                // The stream was cut behind the last event that was read, or has lost it.
                let _ = ring.send(Message::Lost(position));
            }
            for entry in page.entries {
                position = entry.position;
                // Before the event is sent: a reader that begins now gets everything after `last`.
                last.send_replace(Some(position));
                if recent.is_new(&entry.id)
                    && let Some(seen) = Seen::read(entry)
                {
                    let message = match restart::is_one(&seen) {
                        true => Message::Restarted(position),
                        false => Message::Event(Arc::new(seen)),
                    };
                    // Fails only when there is no reader.
                    let _ = ring.send(message);
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
        let look = self.shared.feed.look(after.unwrap_or_default()).await?;
        let (position, begin) = beginning(after, look);
        Ok(Reader::new(self.clone(), ring, position, begin))
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

    /// A page of the entries after a position.
    pub(crate) async fn page(&self, after: Position, count: usize) -> Result<Page, Error> {
        self.shared.feed.after(after, count).await
    }

    /// Cancelled when the readers have to end.
    pub fn stop(&self) -> &CancellationToken {
        &self.shared.stop
    }
}

/// Where a reader begins that asks for everything after a position.
fn beginning(after: Option<Position>, look: Look) -> (Position, Begin) {
    match after {
        None => (look.newest, Begin::Resumed),
        // The stream is cut only when it is long.
        Some(Position::START) if look.length < keep::FEWEST => (Position::START, Begin::Resumed),
        Some(Position::START) => (Position::START, Begin::Cut),
        Some(after) if look.is_kept => (after, Begin::Resumed),
        Some(_) => (look.newest, Begin::Reset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_without_its_entry_is_reset_and_the_start_of_a_long_stream_too() {
        let at = |ms| Position { ms, nth: 0 };
        let newest = at(20);
        for (after, length, is_kept, wanted) in [
            (None, 5, false, (newest, Begin::Resumed)),
            (Some(at(10)), 5, true, (at(10), Begin::Resumed)),
            (Some(newest), 5, true, (newest, Begin::Resumed)),
            (Some(at(10)), 5, false, (newest, Begin::Reset)),
            (Some(at(21)), 5, false, (newest, Begin::Reset)),
            (Some(Position::START), 5, false, (Position::START, Begin::Resumed)),
            (Some(Position::START), 0, false, (Position::START, Begin::Resumed)),
            (Some(Position::START), 1_000_000, false, (Position::START, Begin::Cut)),
        ] {
            let look = Look { newest, length, is_kept };
            assert_eq!(beginning(after, look), wanted, "{after:?} in {look:?}");
        }
    }
}
