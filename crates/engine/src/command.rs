//! Commands: a table of data, one function each, called alike by clients, transactions and scripts.
//!
//! A command is `fn(&mut Db, &[Bytes], &mut Reply) -> Result`: it either writes one whole reply or
//! returns an error before it has written any of it. It reaches keys through [`Db`] only, tells it
//! what it changed, and records another effect if running its arguments again could do something
//! else. It knows nothing of connections: what needs one (`MULTI`, `SUBSCRIBE`, `CLIENT` …) lives
//! with the connections.
//!
//! Adding a command? Write the function in the file of its value type, add a row to `table.rs`, and
//! a generator to `tests/it/generate/`.

mod args;
mod expire;
mod hash;
mod key;
mod list;
mod list_move;
mod scan;
mod server;
mod set;
mod set_algebra;
mod stream;
mod stream_read;
mod string;
mod subcommands;
mod table;
mod zset;
mod zset_algebra;
mod zset_range;

use std::borrow::Cow;

use bytes::Bytes;

use self::subcommands::Found;
use crate::db::Db;
use crate::db::effects::{self, Malformed};
use crate::error::{self, Result};
use crate::reply::{Protocol, Reply};

pub use table::COMMANDS;

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// In lower case.
    pub name: &'static str,
    /// How many arguments, the name included; at least so many if negative.
    pub arity: i32,
    /// What it does, in the sense of `COMMAND INFO`.
    pub flags: Flags,
    /// Which arguments are keys.
    pub keys: Keys,
    /// What it runs.
    pub run: fn(&mut Db, &[Bytes], &mut Reply) -> Result,
}

/// What a command does, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u16);

/// It may change keys.
pub const WRITE: Flags = Flags(1);
/// It only reads keys.
pub const READ: Flags = Flags(2);
/// It may need memory, or room in the journal.
pub const GROW: Flags = Flags(4);
/// It takes constant or logarithmic time.
pub const FAST: Flags = Flags(8);
/// It may wait for a key.
pub const WAIT: Flags = Flags(16);
/// Scripts may not call it.
pub const NO_SCRIPT: Flags = Flags(32);
/// It needs to know who calls: the server runs it, and `run` only refuses.
pub const CONNECTION: Flags = Flags(64);
/// It may be called before the password was given.
pub const NO_AUTH: Flags = Flags(128);
/// A client of RESP 2 that has subscribed to something may still call it.
pub const WHILE_SUBSCRIBED: Flags = Flags(256);
/// It does not belong into a transaction: it is run, or refused, at once.
pub const NOT_QUEUED: Flags = Flags(512);
/// Its first argument says which of several commands it is.
pub const SUBCOMMANDS: Flags = Flags(1024);
/// None of these.
pub const NONE: Flags = Flags(0);

impl Flags {
    /// All flags of both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether it has this flag.
    pub const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }
}

/// Which arguments are keys: from `first` to `last` (counted from the end if negative), every
/// `step`th. All zero if there are none, or if only the command itself knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// The first key, 1 being the first argument.
    pub first: i32,
    /// The last key.
    pub last: i32,
    /// The distance from key to key.
    pub step: i32,
}

impl Command {
    /// Its name together with that of the subcommand which a call names.
    pub fn full_name(&self, args: &[Bytes]) -> Cow<'static, str> {
        match subcommands::find(self, args) {
            Found::Known(name, _) => Cow::Owned(format!("{}|{name}", self.name)),
            _ => Cow::Borrowed(self.name),
        }
    }
}

/// Whether an arity allows so many arguments, the name included.
fn accepts(arity: i32, count: usize) -> bool {
    let wanted = arity.unsigned_abs() as usize;
    if arity < 0 { count >= wanted } else { count == wanted }
}

/// Finds a command by its name in any case.
pub fn find(name: &[u8]) -> Option<&'static Command> {
    table::find(name)
}

/// Checks a call without running it, as `MULTI` does when it queues one.
pub fn check(args: &[Bytes]) -> Result<&'static Command> {
    let command = args.first().and_then(|name| find(name));
    let command = command.ok_or_else(|| error::unknown_command(args))?;
    subcommands::check(command, args)?;
    Ok(command)
}

/// Whether there is such a command, and such a subcommand if it is one of several.
pub fn knows(args: &[Bytes]) -> bool {
    let command = args.first().and_then(|name| find(name));
    command.is_some_and(|command| !matches!(subcommands::find(command, args), Found::Unknown))
}

/// Runs a command and writes its reply, unless it waits (see [`Db::take_wait`]).
pub fn call(db: &mut Db, args: &[Bytes], reply: &mut Reply) {
    match check(args) {
        Ok(command) => run(db, command, args, reply),
        Err(error) => reply.error_bytes(error.text()),
    }
}

/// Runs a command that was found by [`check`] with these arguments.
pub fn run(db: &mut Db, command: &Command, args: &[Bytes], reply: &mut Reply) {
    let changes = db.begin_command();
    if let Err(error) = (command.run)(db, args, reply) {
        reply.error_bytes(error.text());
    }
    db.end_command(changes, args);
}

/// Runs the effects of a record again. The clock must stand at 0 and recording be paused.
pub fn replay(db: &mut Db, record: &Bytes) -> std::result::Result<(), Malformed> {
    let mut reply = Reply::new(Protocol::Resp2);
    for effect in effects::decode(record) {
        let (index, args) = effect?;
        if !db.select(index) {
            return Err(Malformed);
        }
        call(db, &args, &mut reply);
        reply.take();
    }
    Ok(())
}
