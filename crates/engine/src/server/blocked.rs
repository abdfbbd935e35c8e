//! Blocked clients: clients whose command (`BLPOP`, `XREAD BLOCK` …) waits for a key.
//!
//! ```text
//!   BLPOP q 5 ──key empty──▶ blocked (queue of `q`, deadline) ──q changed──▶ run again ──▶ reply
//!                                    ├── deadline ──▶ nil                       └─ still empty: stays blocked
//!                                    └── disconnect ──▶ removed
//! ```
//!
//! Keys become ready while a command, script or transaction runs. Blocked clients are served after the
//! whole of it, in the order in which they blocked. A command is run again only if the key holds the type
//! it wants: `BLPOP` stays blocked while the key is a hash. A client that waits for several keys is served
//! from the key that became ready, as in Redis 7.0. `XREADGROUP` is answered with an error when its stream or
//! its group is gone.

use std::collections::{BTreeSet, HashMap, VecDeque};

use bytes::Bytes;

use super::executor::{Executor, Recorded};
use super::loop_queue::{ClientId, LoopMessage, SendKind};
use super::session::ReplyMode;
use crate::blob::Blob;
use crate::command;
use crate::db::{BlockRequest, Blocking};
use crate::journal::{Journal, Position};
use crate::number::parse_int;
use crate::reply::{Protocol, Reply};
use crate::value::Value;

const ZERO: Bytes = Bytes::from_static(b"0");
const ONE: Bytes = Bytes::from_static(b"1");
const STREAM: &str = "stream";
const GROUP_GONE: &str = "NOGROUP the consumer group this client was blocked on no longer exists";
const STREAM_GONE: &str = "UNBLOCKED the stream key no longer exists";

/// A blocked command and the keys it waits for.
#[derive(Debug)]
pub(super) struct BlockedCommand {
    args: Vec<Bytes>,
    db: usize,
    keys: Vec<Blob>,
    deadline_ms: Option<i64>,
    /// The type of value that the command takes from.
    wants: &'static str,
    /// The record whose sync the command waits for (`WAITAOF`), instead of a key.
    until: Option<Position>,
    /// The consumer group of `XREADGROUP`.
    group: Option<Bytes>,
}

/// The blocked clients, by key and by deadline.
#[derive(Debug, Default)]
pub(super) struct BlockedClients {
    queues: HashMap<(usize, Blob), VecDeque<ClientId>>,
    deadlines: BTreeSet<(i64, ClientId)>,
    syncs: BTreeSet<(Position, ClientId)>,
    clients: usize,
}

impl BlockedClients {
    /// The number of blocked clients.
    pub(super) fn len(&self) -> usize {
        self.clients
    }

    /// Whether a client waits for a sync of the journal.
    pub(super) fn waits_for_sync(&self) -> bool {
        !self.syncs.is_empty()
    }

    /// The earliest deadline.
    pub(super) fn next_deadline_ms(&self) -> Option<i64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }
}

impl Executor {
    /// Blocks a client.
    pub(super) fn block_client(&mut self, client: ClientId, wait: BlockRequest) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        let db = session.db;
        let mut keys: Vec<Blob> = Vec::with_capacity(wait.keys.len());
        for key in &wait.keys {
            if !keys.iter().any(|known| **known == **key) {
                keys.push(Blob::new(key));
            }
        }
        for key in &keys {
            self.db.await_key(db, key);
            self.blocked.queues.entry((db, key.clone())).or_default().push_back(client);
        }
        if let Some(deadline) = wait.deadline_ms {
            self.blocked.deadlines.insert((deadline, client));
        }
        self.blocked.clients += 1;
        // Copied, because the arguments are slices of a network buffer that they would keep alive.
        let args: Vec<Bytes> = wait.args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
        let wants = wanted_type(&args[0]);
        if wants == STREAM {
            self.db.add_stream_reader();
        }
        let group = args[0].eq_ignore_ascii_case(b"XREADGROUP").then(|| args[2].clone());
        session.blocked = Some(BlockedCommand {
            args,
            db,
            keys,
            deadline_ms: wait.deadline_ms,
            wants,
            group,
            until: None,
        });
    }

    /// Blocks a client until a record is synced; a timeout of 0 means none.
    pub(super) fn block_until_synced(
        &mut self,
        client: ClientId,
        until: Position,
        timeout_ms: i64,
    ) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        let deadline_ms = (timeout_ms > 0).then(|| self.db.now_ms().saturating_add(timeout_ms));
        session.blocked = Some(BlockedCommand {
            args: Vec::new(),
            db: session.db,
            keys: Vec::new(),
            deadline_ms,
            wants: "",
            group: None,
            until: Some(until),
        });
        if let Some(deadline) = deadline_ms {
            self.blocked.deadlines.insert((deadline, client));
        }
        self.blocked.syncs.insert((until, client));
        self.blocked.clients += 1;
    }

    /// Replies to clients that waited for a sync which is done.
    pub(super) fn serve_synced(&mut self) {
        let Some(durable) = self.journal.as_ref().map(Journal::durable) else { return };
        while let Some((until, client)) = self.blocked.syncs.first().copied()
            && until <= durable
        {
            self.unblock_with(client, |reply| reply_synced(1, reply));
            self.blocked.syncs.remove(&(until, client));
        }
    }

    /// Unblocks a client without a reply; `false` if it was not blocked.
    pub(super) fn unblock_client(&mut self, client: ClientId) -> bool {
        let session = self.sessions.get_mut(&client);
        let Some(blocked) = session.and_then(|session| session.blocked.take()) else {
            return false;
        };
        for key in blocked.keys {
            self.db.release_key(blocked.db, &key);
            let queue_key = (blocked.db, key);
            if let Some(queue) = self.blocked.queues.get_mut(&queue_key) {
                queue.retain(|other| *other != client);
                if queue.is_empty() {
                    self.blocked.queues.remove(&queue_key);
                }
            }
        }
        if let Some(deadline) = blocked.deadline_ms {
            self.blocked.deadlines.remove(&(deadline, client));
        }
        if let Some(until) = blocked.until {
            self.blocked.syncs.remove(&(until, client));
        }
        if blocked.wants == STREAM {
            self.db.remove_stream_reader();
        }
        self.blocked.clients -= 1;
        true
    }

    /// Serves clients blocked on ready keys, and on keys that become ready thereby.
    pub(super) fn serve_ready(&mut self) {
        while self.db.has_ready() {
            for (db, key) in self.db.take_ready() {
                self.serve_key(db, key);
            }
        }
    }

    fn serve_key(&mut self, db: usize, key: Blob) {
        let queue_key = (db, key);
        let Some(queue) = self.blocked.queues.get(&queue_key) else { return };
        let clients: Vec<ClientId> = queue.iter().copied().collect();
        for client in clients {
            self.db.select(db);
            let Some(session) = self.sessions.get(&client) else { continue };
            let Some(blocked) = &session.blocked else { continue };
            let args = match blocked.chance(self.db.value(&queue_key.1)) {
                Chance::None => continue,
                Chance::Lost(reason) => {
                    self.unblock_with(client, |reply| reply.error(reason));
                    continue;
                }
                Chance::Run => narrowed(&blocked.args, &queue_key.1),
            };
            let mut reply = Reply::new(session.protocol);
            self.db.set_blocking(Blocking::Allowed);
            command::call(&mut self.db, &args, &mut reply);
            if self.db.take_block_request().is_none() {
                if self.commit() == Recorded::No {
                    reply.truncate(0);
                    reply.error_bytes(self.not_recorded().as_bytes());
                }
                self.unblock_with_reply(client, reply);
            }
        }
    }

    /// Replies to blocked clients whose deadline has passed.
    pub(super) fn time_out_blocked(&mut self, now_ms: i64) {
        while let Some((deadline, client)) = self.blocked.deadlines.first().copied()
            && deadline <= now_ms
        {
            self.unblock_as_timed_out(client);
            // Also removes the deadline of a client that has disconnected; otherwise the loop would
            // not end.
            self.blocked.deadlines.remove(&(deadline, client));
        }
    }

    /// Unblocks a client as if its time were up; `false` if it was not blocked.
    pub(super) fn unblock_as_timed_out(&mut self, client: ClientId) -> bool {
        let session = self.sessions.get(&client);
        let until = session.and_then(|one| one.blocked.as_ref()).and_then(|one| one.until);
        match until {
            Some(_) => self.unblock_with(client, |reply| reply_synced(0, reply)),
            None => self.unblock_with(client, Reply::nil_array),
        }
    }

    /// Unblocks a client with a reply; `false` if it was not blocked.
    pub(super) fn unblock_with(
        &mut self,
        client: ClientId,
        write: impl FnOnce(&mut Reply),
    ) -> bool {
        let protocol = self.sessions.get(&client).map_or(Protocol::Resp2, |one| one.protocol);
        let mut reply = Reply::new(protocol);
        write(&mut reply);
        self.unblock_with_reply(client, reply)
    }

    fn unblock_with_reply(&mut self, client: ClientId, mut reply: Reply) -> bool {
        if !self.unblock_client(client) {
            return false;
        }
        let depends_on = self.message_depends_on();
        if let Some(session) = self.sessions.get_mut(&client) {
            session.written = self.position;
            // The client goes on in any case; `CLIENT REPLY` only drops the bytes.
            if session.reply_mode != ReplyMode::On {
                reply.truncate(0);
                session.reply_mode = session.reply_mode.after_reply();
            }
            let (to, bytes) = (session.address.slot, reply.take().freeze());
            let message = LoopMessage::Send { to, bytes, depends_on, kind: SendKind::Unblock };
            session.address.loop_queue.push(message, self.lock_holder);
        }
        true
    }
}

/// The reply of `WAITAOF`: the number of local syncs, and of replicas that have synced.
pub(super) fn reply_synced(local: i64, reply: &mut Reply) {
    reply.array(2);
    reply.int(local);
    reply.int(0);
}

/// What a ready key means for a blocked command.
#[derive(Debug, PartialEq, Eq)]
enum Chance {
    /// The command stays blocked.
    None,
    /// The command is run again.
    Run,
    /// The command can never succeed and is answered with this error.
    Lost(&'static str),
}

impl BlockedCommand {
    fn chance(&self, value: Option<&Value>) -> Chance {
        match (value, &self.group) {
            (Some(Value::Stream(stream)), Some(group))
                if !stream.groups.contains_key(&group[..]) =>
            {
                Chance::Lost(GROUP_GONE)
            }
            (Some(value), _) if value.type_name() == self.wants => Chance::Run,
            (_, Some(_)) => Chance::Lost(STREAM_GONE),
            (_, None) => Chance::None,
        }
    }
}

/// The blocked command restricted to the ready key; the other keys are not looked at, not even for
/// their type.
fn narrowed(args: &[Bytes], key: &[u8]) -> Vec<Bytes> {
    let (name, key) = (args[0].clone(), Bytes::copy_from_slice(key));
    let rest = match args[0].to_ascii_lowercase().as_slice() {
        b"blpop" | b"brpop" | b"bzpopmin" | b"bzpopmax" => vec![key, ZERO],
        b"blmpop" | b"bzmpop" => {
            let count = parse_int(&args[2]).map_or(0, |count| count as usize);
            let options = args.get(3 + count..).unwrap_or_default();
            [&[ZERO, ONE, key], options].concat()
        }
        name @ (b"xread" | b"xreadgroup") => {
            // A group or a consumer may be called `streams`.
            let skipped = if name == b"xread" { 1 } else { 4 };
            let options = args.get(skipped..).unwrap_or_default();
            let streams = options.iter().position(|arg| arg.eq_ignore_ascii_case(b"streams"));
            let (head, pairs) = args.split_at(streams.map_or(args.len(), |at| skipped + at + 1));
            let (keys, ids) = pairs.split_at(pairs.len() / 2);
            let found = keys.iter().zip(ids).find(|(other, _)| **other == key);
            [&head[1..], &[key], &[found.map_or(ZERO, |(_, id)| id.clone())]].concat()
        }
        // The other commands wait for one key only.
        _ => args[1..].to_vec(),
    };
    [vec![name], rest].concat()
}

/// The type that a blocking command takes from.
fn wanted_type(command: &[u8]) -> &'static str {
    match command.first().zip(command.get(1)) {
        Some((_, b'z' | b'Z')) => "zset",
        Some((b'x' | b'X', _)) => STREAM,
        _ => "list",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{BLOCKING, COMMANDS};

    #[test]
    fn a_command_is_run_again_for_the_key_that_is_ready() {
        for (line, key, expected) in [
            ("BLPOP a b c 5", "b", "BLPOP b 0"),
            ("bzpopmin a b 0", "a", "bzpopmin a 0"),
            ("BLMPOP 7 3 a b c LEFT COUNT 2", "c", "BLMPOP 0 1 c LEFT COUNT 2"),
            (
                "XREAD COUNT 2 BLOCK 0 STREAMS a b a 1-0 2-0 3-0",
                "a",
                "XREAD COUNT 2 BLOCK 0 STREAMS a 1-0",
            ),
            (
                "XREADGROUP GROUP streams streams NOACK COUNT 2 BLOCK 0 STREAMS a b > >",
                "b",
                "XREADGROUP GROUP streams streams NOACK COUNT 2 BLOCK 0 STREAMS b >",
            ),
            ("BLMOVE a b LEFT RIGHT 0", "a", "BLMOVE a b LEFT RIGHT 0"),
        ] {
            let args: Vec<Bytes> = line.split(' ').map(|arg| Bytes::from(arg.to_owned())).collect();
            let words = narrowed(&args, key.as_bytes());
            let words: Vec<_> = words.iter().map(|arg| String::from_utf8_lossy(arg)).collect();
            assert_eq!(words.join(" "), expected);
        }
    }

    #[test]
    fn every_command_that_waits_has_its_type() {
        let waiting = COMMANDS.iter().filter(|row| row.flags.has(BLOCKING));
        let found: Vec<_> =
            waiting.map(|row| (row.name, wanted_type(row.name.as_bytes()))).collect();
        let expected = [
            ("blmove", "list"),
            ("blmpop", "list"),
            ("blpop", "list"),
            ("brpop", "list"),
            ("brpoplpush", "list"),
            ("bzmpop", "zset"),
            ("bzpopmax", "zset"),
            ("bzpopmin", "zset"),
            ("xread", "stream"),
            ("xreadgroup", "stream"),
        ];
        assert_eq!(found, expected);
    }
}
