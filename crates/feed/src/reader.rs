//! One reader of the feed: what it has missed, in pages from Redis, then what comes, from the hub's ring.
//!
//! ```text
//!   resumed ──▶ page ──▶ page ──▶ … ──▶ last page ──▶ live ──▶ Lagged: the reader is too slow and must resume
//!                 a new place in the ring is taken before every page, so nothing falls in between
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use stampede_broker::Position;
use tokio::sync::broadcast::{self, error::RecvError};

use crate::hub::{Hub, Message};
use crate::recent::Recent;
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
        let catching_up = begin == Begin::Resumed;
        let (page, recent) = (VecDeque::new(), Recent::default());
        Self { hub, ring, position, begin: Some(begin), catching_up, page, recent }
    }

    /// The place after which the next event comes.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Waits for the next message. Safe to cancel: nothing is lost.
    pub async fn next(&mut self) -> Heard {
        if self.begin.take() == Some(Begin::Reset) {
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
                return Heard::Event(event);
            }
            self.turn_page().await;
        }
        loop {
            match self.ring.recv().await {
                Ok(Message::Event(event)) if event.position <= self.position => {}
                Ok(Message::Event(event)) => {
                    self.position = event.position;
                    return Heard::Event(event);
                }
                Ok(Message::Lost) => {
                    self.position = Position::START;
                    return Heard::Reset(self.position);
                }
                Ok(Message::Restarted) => return Heard::Reset(self.position),
                Err(RecvError::Lagged(_)) => return Heard::Lagged,
                Err(RecvError::Closed) => return Heard::Ended,
            }
        }
    }

    /// Reads the next page; the last one ends the catching up.
    async fn turn_page(&mut self) {
        let ring = self.hub.ring();
        match self.hub.page(self.position, PAGE).await {
            Ok(Some((mut events, end))) => {
                events.retain(|event| self.recent.is_new(&event.id.to_string()));
                if events.is_empty() {
                    self.position = end;
                }
                self.page = events.into();
                self.ring = ring;
            }
            Ok(None) => {
                self.ring = ring;
                self.catching_up = false;
                self.recent = Recent::default();
            }
            Err(error) => {
                tracing::debug!(%error, "cannot read a page of the feed; trying again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
