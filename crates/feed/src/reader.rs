//! One reader of the feed: what it has missed, in pages from Redis, then what comes, from the hub's ring.
//!
//! ```text
//!   resumed ──▶ page ──▶ page ──▶ … ──▶ last page ──▶ live ──▶ Lagged: the reader is too slow and must resume
//!                 a new place in the ring is taken before every page, so nothing falls in between
//! ```
//! Every page tells whether the entry before it is still kept. If not, the stream was cut or has lost entries: Reset.
//! Messages of the hub that a new place in the ring skips are no loss: the page itself tells of gaps and restarts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use stampede_broker::Position;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::hub::{Hub, Message};
use crate::recent::Recent;
use crate::restart;
use crate::seen::Seen;

/// Events of one page.
const PAGE: usize = 100;
/// Pause after a page that could not be read.
const PAUSE: Duration = Duration::from_millis(500);

/// What a reader hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// An event.
    Event(Arc<Seen>),
    /// Events after the reader's position are gone: the state must be read anew. What follows came after this position.
    Reset(Position),
    /// Everything that the reader had missed is told: what follows is live. A reader that began live does not hear it.
    CaughtUp,
    /// The reader is too slow: it must resume from the position of its last event.
    Lagged,
    /// The node stops: the reader should resume on another one.
    Ended,
}

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// With the next event.
    Live,
    /// With a page of what it has missed.
    Resumed,
    /// With the message that its position is gone.
    Reset,
    /// With the message that events are gone, then with pages of those that are kept.
    Cut,
}

/// Follows the feed.
pub struct Reader {
    hub: Hub,
    ring: broadcast::Receiver<Message>,
    /// The last event that was heard or skipped.
    position: Position,
    begin: Option<Begin>,
    catching_up: bool,
    page: VecDeque<Arc<Seen>>,
    /// Events of the pages: the hub drops those that come twice by itself.
    recent: Recent,
}

impl Reader {
    pub(crate) fn new(
        hub: Hub,
        ring: broadcast::Receiver<Message>,
        position: Position,
        begin: Begin,
    ) -> Self {
        let catching_up = begin != Begin::Live;
        let (page, recent) = (VecDeque::new(), Recent::default());
        Self { hub, ring, position, begin: Some(begin), catching_up, page, recent }
    }

    /// The place after which the next event comes.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Waits for the next message. Safe to cancel: nothing is lost.
    pub async fn next(&mut self) -> Heard {
        if matches!(self.begin.take(), Some(Begin::Reset | Begin::Cut)) {
            return Heard::Reset(self.position);
        }
        let stop = self.hub.stop().clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => Heard::Ended,
            heard = self.hear() => heard,
        }
    }

    async fn hear(&mut self) -> Heard {
        while self.catching_up {
            if let Some(event) = self.page.pop_front() {
                self.position = event.position;
                return match restart::is_one(&event) {
                    true => Heard::Reset(self.position),
                    false => Heard::Event(event),
                };
            }
            if let Some(heard) = self.turn_page().await {
                return heard;
            }
        }
        loop {
            match self.ring.recv().await {
                Ok(Message::Event(event)) if event.position <= self.position => {}
                Ok(Message::Event(event)) => {
                    self.position = event.position;
                    return Heard::Event(event);
                }
                Ok(Message::Restarted(position)) if position <= self.position => {}
                // A smaller position: another Redis.
                Ok(Message::Lost(position) | Message::Restarted(position)) => {
                    self.position = position;
                    return Heard::Reset(self.position);
                }
                Err(RecvError::Lagged(_)) => return Heard::Lagged,
                Err(RecvError::Closed) => return Heard::Ended,
            }
        }
    }

    /// Reads the next page. An empty one ends the catching up.
    async fn turn_page(&mut self) -> Option<Heard> {
        let ring = self.hub.ring();
        let page = match self.hub.page(self.position, PAGE).await {
            Ok(page) => page,
            Err(error) => {
                tracing::debug!(%error, "cannot read a page of the feed; trying again");
                tokio::time::sleep(PAUSE).await;
                return None;
            }
        };
        self.ring = ring;
        let end = page.entries.last().map(|entry| entry.position);
        let events = page.entries.into_iter().filter(|entry| self.recent.is_new(&entry.id));
        self.page = events.filter_map(Seen::read).map(Arc::new).collect();
        match end {
            Some(end) if self.page.is_empty() => self.position = end,
            Some(_) => {}
            // Another Redis has smaller positions.
            None if !page.is_whole => self.position = self.position.min(page.newest),
            None => {
                self.catching_up = false;
                self.recent = Recent::default();
                return Some(Heard::CaughtUp);
            }
        }
        (!page.is_whole).then_some(Heard::Reset(self.position))
    }
}
