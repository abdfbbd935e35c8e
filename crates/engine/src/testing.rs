//! Internals for this crate's integration tests. Not part of the public interface: may change at any time.
//!
//! The tests compare the keyspace and the command table with a real redis-server. A running server
//! would not do: they set the clock, read the recorded effects and replay them.

use bytes::Bytes;

use crate::command::{self, COMMANDS, CONNECTION, FAST, GROW, NO_SCRIPT, READ, WRITE};
use crate::db::Db;
use crate::dump::dump;
use crate::reply::Reply;

pub use crate::reply::Protocol;

/// The number of logical databases.
pub const DATABASES: usize = crate::db::DATABASES;

/// One key as the commands that create it, with its database.
pub type DumpedKey = (usize, Vec<Vec<Vec<u8>>>);

/// A row of the command table.
#[derive(Debug, Clone)]
pub struct CommandRow {
    /// The name in lower case.
    pub name: &'static str,
    /// The number of arguments, including the name; negative: the minimum number.
    pub arity: i32,
    /// The flags that `COMMAND INFO` of Redis has too.
    pub flags: Vec<&'static str>,
    /// The first key, the last key and the step between keys.
    pub keys: [i32; 3],
    /// Whether the command needs a connection, so that a [`Keyspace`] refuses it.
    pub needs_connection: bool,
}

/// The command table.
pub fn commands() -> Vec<CommandRow> {
    let flags = [
        (WRITE, "write"),
        (READ, "readonly"),
        (GROW, "denyoom"),
        (FAST, "fast"),
        (command::BLOCKING, "blocking"),
        (NO_SCRIPT, "noscript"),
    ];
    let row = |row: &command::Command| CommandRow {
        name: row.name,
        arity: row.arity,
        flags: flags
            .iter()
            .filter(|(flag, _)| row.flags.has(*flag))
            .map(|(_, name)| *name)
            .collect(),
        keys: [row.keys.first, row.keys.last, row.keys.step],
        needs_connection: row.flags.has(CONNECTION),
    };
    COMMANDS.iter().map(row).collect()
}

/// A keyspace without a server, and all effects that its commands have recorded.
#[derive(Debug)]
pub struct Keyspace {
    db: Db,
    reply: Reply,
    effects: Vec<u8>,
}

impl Keyspace {
    /// An empty keyspace that replies in a protocol.
    pub fn new(protocol: Protocol) -> Self {
        Self { db: Db::new(), reply: Reply::new(protocol), effects: Vec::new() }
    }

    /// Sets the clock, in microseconds since 1970.
    pub fn set_time_us(&mut self, now_us: i64) {
        self.db.set_time_us(now_us);
    }

    /// Runs a command and returns its reply.
    pub fn call(&mut self, args: &[Vec<u8>]) -> Vec<u8> {
        let args: Vec<Bytes> = args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
        command::call(&mut self.db, &args, &mut self.reply);
        self.effects.extend_from_slice(self.db.effects().as_bytes());
        self.db.effects().clear();
        self.reply.take().to_vec()
    }

    /// Whether the value of a key has an ordered encoding in Redis 7.0 too, where a set is never a
    /// list.
    pub fn is_ordered(&mut self, key: &[u8]) -> bool {
        let shape = self.db.value(key).map_or(("", ""), |one| (one.type_name(), one.encoding()));
        matches!(shape, (_, "intset") | ("hash" | "zset", "listpack"))
    }

    /// A new keyspace, made by replaying all recorded effects; `None` if they are malformed.
    pub fn replayed(&self) -> Option<Self> {
        let mut again = Self::new(self.reply.protocol());
        again.db.effects().pause();
        command::replay(&mut again.db, &Bytes::copy_from_slice(&self.effects)).ok()?;
        Some(again)
    }

    /// All keys of all databases, in an order that does not depend on the hash table.
    pub fn contents(&mut self) -> Vec<DumpedKey> {
        let mut all = Vec::new();
        for index in 0..DATABASES {
            self.db.select(index);
            let mut cursor = 0;
            loop {
                cursor = self.db.scan(cursor, |key, value, expiry| {
                    let (mut commands, mut members) = (Vec::new(), Vec::new());
                    let unordered = matches!(value.encoding(), "hashtable");
                    dump(key, value, expiry, |args| {
                        let mut args: Vec<Vec<u8>> = args.iter().map(|arg| arg.to_vec()).collect();
                        if unordered && args[0] != b"PEXPIREAT" {
                            members.extend(args.drain(2..));
                        }
                        commands.push(args);
                    });
                    members.sort();
                    commands.dedup();
                    commands.push(members);
                    all.push((index, commands));
                });
                if cursor == 0 {
                    break;
                }
            }
        }
        all.sort();
        all
    }
}
