//! The feed in Redis: a stream of events for outside readers, with bounded length.
//!
//! One node at a time, which holds the relay's lease, appends what the store's outbox has ([`Feed::append`]). Messages
//! that nothing stores are appended by whoever has them ([`Feed::add`]). Readers follow the stream on a connection of
//! their own ([`FeedReader`]) and read what they have missed in pages ([`Feed::after`]).
//!
//! Each entry has two fields: `id`, which names the event however often it is appended, and `event`, a JSON text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use redis::streams::{StreamId, StreamRangeReply, StreamReadReply};
use redis::{FromRedisValue, cmd, pipe};

use crate::cluster::lease::RELAY;
use crate::link::{Link, Restarts};
use crate::{Broker, Error, Leadership};

static APPEND: std::sync::LazyLock<redis::Script> =
    std::sync::LazyLock::new(|| redis::Script::new(stampede_scripts::feed::APPEND));

/// The stream.
const STREAM: &str = "stampede:{feed}";
/// Ids of the events of the relay's last call.
const TOLD: &str = "stampede:{feed}:told";
/// The channel on which a process says that the outbox has rows.
const NUDGES: &str = "stampede:{feed}:nudge";
/// Entries read in one call.
const AT_ONCE: usize = 500;
/// How long one call waits for the next entry.
const BLOCK: Duration = Duration::from_secs(5);

/// The place of an entry: Redis' clock in milliseconds, and a number. Entries that come later have larger places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Milliseconds since 1970 by Redis' clock.
    pub ms: u64,
    /// The number within the millisecond.
    pub nth: u64,
}

/// The text is no position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not the id of an event in the stream (expected one like 1763459200000-0)")]
pub struct ParsePositionError;

impl Position {
    /// Before the first entry.
    pub const START: Self = Self { ms: 0, nth: 0 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.nth)
    }
}

impl FromStr for Position {
    type Err = ParsePositionError;

    fn from_str(text: &str) -> Result<Self, ParsePositionError> {
        let (ms, nth) = text.split_once('-').unwrap_or((text, "0"));
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().map_err(|_| ParsePositionError),
            false => Err(ParsePositionError),
        };
        Ok(Self { ms: number(ms)?, nth: number(nth)? })
    }
}

/// An event to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntry {
    /// Names the event.
    pub id: String,
    /// The event as JSON.
    pub event: String,
}

/// An event in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub position: Position,
    /// Names the event.
    pub id: String,
    /// The event as JSON.
    pub event: String,
}

/// The ends of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The first entry that is kept.
    pub first: Position,
    /// The last entry.
    pub last: Position,
    /// Entries.
    pub length: u64,
}

/// The feed. Cheap to clone.
#[derive(Clone)]
pub struct Feed {
    broker: Broker,
}

impl Broker {
    /// The feed of events.
    pub fn feed(&self) -> Feed {
        Feed { broker: self.clone() }
    }
}

impl Feed {
    /// The channel on which a process says that the outbox has rows.
    pub const NUDGES: &str = NUDGES;

    /// Notices when another server answers than before: it may lack the newest events.
    pub fn restarts(&self) -> Restarts {
        self.broker.restarts()
    }

    /// Appends events in order and keeps about `keep` entries; `false` if another node relays by now. Events of the
    /// last call are not appended again.
    pub async fn append(
        &self,
        relay: &Leadership,
        entries: &[NewEntry],
        keep: u64,
    ) -> Result<bool, Error> {
        let mut call = APPEND.prepare_invoke();
        call.key(RELAY).key(STREAM).key(TOLD).arg(relay.text()).arg(keep);
        for entry in entries {
            call.arg(&entry.id).arg(&entry.event);
        }
        let appended: i64 = call.invoke_async(&mut self.broker.redis()).await?;
        Ok(appended >= 0)
    }

    /// Appends an event that nothing stores.
    pub async fn add(&self, entry: &NewEntry, keep: u64) -> Result<(), Error> {
        let mut add = cmd("XADD");
        add.arg(STREAM).arg("MAXLEN").arg("~").arg(keep).arg("*");
        add.arg("id").arg(&entry.id).arg("event").arg(&entry.event);
        let _: String = add.query_async(&mut self.broker.redis()).await?;
        Ok(())
    }

    /// Tells the node that relays that the outbox has rows. Best effort.
    pub async fn nudge(&self) -> Result<(), Error> {
        self.broker.publish(NUDGES, &[String::new()]).await
    }

    /// The ends of the stream; `None`: it is empty.
    pub async fn bounds(&self) -> Result<Option<Bounds>, Error> {
        let mut look = pipe();
        look.cmd("XRANGE").arg(STREAM).arg("-").arg("+").arg("COUNT").arg(1);
        look.cmd("XREVRANGE").arg(STREAM).arg("+").arg("-").arg("COUNT").arg(1);
        look.cmd("XLEN").arg(STREAM);
        type Looked = (StreamRangeReply, StreamRangeReply, u64);
        let (first, last, length): Looked = look.query_async(&mut self.broker.redis()).await?;
        let place = |found: StreamRangeReply| found.ids.first().map(|entry| place(&entry.id));
        Ok(place(first).zip(place(last)).map(|(first, last)| Bounds { first, last, length }))
    }

    /// The entries after a position, at most `count`.
    pub async fn after(&self, position: Position, count: usize) -> Result<Vec<Entry>, Error> {
        let mut range = cmd("XRANGE");
        range.arg(STREAM).arg(format!("({position}")).arg("+").arg("COUNT").arg(count);
        let found: StreamRangeReply = range.query_async(&mut self.broker.redis()).await?;
        Ok(found.ids.into_iter().map(entry).collect())
    }

    /// A connection of its own that follows the stream.
    pub async fn reader(&self) -> Result<FeedReader, Error> {
        let link = self.broker.blocking_connection(BLOCK, "stampede:feed").await?;
        Ok(FeedReader { link })
    }
}

/// Follows the stream.
pub struct FeedReader {
    link: Link,
}

impl FeedReader {
    /// The next entries after a position; none if nothing came within a few seconds.
    pub async fn next(&mut self, after: Position) -> Result<Vec<Entry>, Error> {
        let mut read = cmd("XREAD");
        read.arg("COUNT").arg(AT_ONCE).arg("BLOCK").arg(BLOCK.as_millis() as u64);
        read.arg("STREAMS").arg(STREAM).arg(after.to_string());
        let answer: Option<StreamReadReply> = read.query_async(&mut self.link).await?;
        let entries = answer.into_iter().flat_map(|answer| answer.keys).flat_map(|key| key.ids);
        Ok(entries.map(entry).collect())
    }
}

fn place(id: &str) -> Position {
    // Redis writes no other.
    id.parse().unwrap_or_default()
}

fn entry(found: StreamId) -> Entry {
    let mut fields = found.map;
    let mut text = |name: &str| {
        let value = fields.remove(name);
        value.and_then(|value| String::from_redis_value(value).ok()).unwrap_or_default()
    };
    Entry { position: place(&found.id), id: text("id"), event: text("event") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_ordered_and_read_back() {
        let early: Position = "1763459200000-9".parse().unwrap();
        let late: Position = "1763459200000-10".parse().unwrap();
        assert!(early < late);
        assert_eq!(late.to_string(), "1763459200000-10");
        assert_eq!("5".parse(), Ok(Position { ms: 5, nth: 0 }));
        for text in ["", "-", "a", "1-", "-1", "+1", "1-2-3", "1 ", "99999999999999999999-0"] {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
    }
}
