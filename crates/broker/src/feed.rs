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
use redis::{Cmd, FromRedisValue, cmd, pipe};

use crate::cluster::lease::RELAY;
use crate::link::{Link, Restarts, info_field};
use crate::{Broker, Error, Leadership};

static APPEND: std::sync::LazyLock<redis::Script> =
    std::sync::LazyLock::new(|| redis::Script::new(stampede_scripts::feed::APPEND));

static RESTARTED: std::sync::LazyLock<redis::Script> =
    std::sync::LazyLock::new(|| redis::Script::new(stampede_scripts::feed::RESTARTED));

/// The stream.
const STREAM: &str = "stampede:{feed}";
/// Ids of the events of the relay's last call.
const TOLD: &str = "stampede:{feed}:told";
/// The id of the server that filled the stream last.
const SERVER: &str = "stampede:{feed}:server";
/// The name of our engine among servers.
const ENGINE: &str = "stampede";
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

/// What the stream says about a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The last entry; `START`: the stream is empty.
    pub newest: Position,
    /// Entries.
    pub length: u64,
    /// Whether the entry at the position is kept, and with it everything that came after.
    pub is_kept: bool,
}

/// Entries after a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// The last entry of the stream; `START`: the stream is empty.
    pub newest: Position,
    /// Whether the entry at the position was still kept: if not, entries may be missing before the first one.
    pub is_whole: bool,
}

/// Since when a process knows the server that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noticed {
    /// It has just started.
    AtStart,
    /// Another server answered before.
    Restart,
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

    /// Appends an event that tells of a restart, unless it was told already; `true`: this call has told it. A process that has
    /// just started cannot tell a restart of our engine from its own, and the engine loses nothing when its process dies.
    pub async fn note_restart(&self, noticed: Noticed, entry: &NewEntry) -> Result<bool, Error> {
        let mut info = cmd("INFO");
        info.arg("server");
        let info: String = self.broker.ask_home(info).await?;
        if noticed == Noticed::AtStart && info_field(&info, "server_name") == Some(ENGINE) {
            return Ok(false);
        }
        let was_another = if noticed == Noticed::Restart { "1" } else { "" };
        let mut call = RESTARTED.prepare_invoke();
        call.key(SERVER).key(STREAM).arg(info_field(&info, "run_id").unwrap_or_default());
        call.arg(was_another).arg(&entry.id).arg(&entry.event);
        let told: u64 = call.invoke_async(&mut self.broker.redis()).await?;
        Ok(told > 0)
    }

    /// Looks whether a position is still kept.
    pub async fn look(&self, position: Position) -> Result<Look, Error> {
        let mut look = pipe();
        look.add_command(newest()).add_command(entry_at(position)).cmd("XLEN").arg(STREAM);
        type Looked = (StreamRangeReply, StreamRangeReply, u64);
        let (newest, found, length): Looked = look.query_async(&mut self.broker.redis()).await?;
        Ok(Look { newest: place_of(&newest), length, is_kept: !found.ids.is_empty() })
    }

    /// The entries after a position, at most `count`.
    pub async fn after(&self, position: Position, count: usize) -> Result<Page, Error> {
        let mut look = pipe();
        look.cmd("XRANGE").arg(STREAM).arg(format!("({position}")).arg("+").arg("COUNT").arg(count);
        // After the page: an entry that is kept now was kept when the page was read.
        look.add_command(entry_at(position)).add_command(newest());
        type Looked = (StreamRangeReply, StreamRangeReply, StreamRangeReply);
        let (page, found, newest): Looked = look.query_async(&mut self.broker.redis()).await?;
        Ok(Page {
            entries: page.ids.into_iter().map(entry).collect(),
            newest: place_of(&newest),
            is_whole: position == Position::START || !found.ids.is_empty(),
        })
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
    pub async fn next(&mut self, after: Position) -> Result<Page, Error> {
        let mut read = cmd("XREAD");
        read.arg("COUNT").arg(AT_ONCE).arg("BLOCK").arg(BLOCK.as_millis() as u64);
        read.arg("STREAMS").arg(STREAM).arg(after.to_string());
        let mut calls = pipe();
        // After the entries: a process that was suspended may read them when those before are gone.
        calls.add_command(read).add_command(entry_at(after));
        type Answer = (Option<StreamReadReply>, StreamRangeReply);
        let (answer, found): Answer = calls.query_async(&mut self.link).await?;
        let keys = answer.into_iter().flat_map(|answer| answer.keys);
        let entries: Vec<Entry> = keys.flat_map(|key| key.ids).map(entry).collect();
        let newest = entries.last().map_or(after, |entry| entry.position);
        let is_whole = after == Position::START || !found.ids.is_empty();
        Ok(Page { entries, newest, is_whole })
    }
}

fn newest() -> Cmd {
    let mut last = cmd("XREVRANGE");
    last.arg(STREAM).arg("+").arg("-").arg("COUNT").arg(1);
    last
}

fn entry_at(position: Position) -> Cmd {
    let (mut find, position) = (cmd("XRANGE"), position.to_string());
    find.arg(STREAM).arg(&position).arg(&position).arg("COUNT").arg(1);
    find
}

fn place_of(found: &StreamRangeReply) -> Position {
    found.ids.first().map(|entry| place(&entry.id)).unwrap_or_default()
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
