//! Commands: a table of rows with one function each, shared by clients, transactions and scripts.
//!
//! A command is `fn(&mut Db, &[Bytes], &mut Reply) -> Result`: it either writes one whole reply, or
//! returns an error before it has written any part of it. It reaches keys only through [`Db`] and reports
//! its changes there. If running its arguments again could give another result, it records a
//! deterministic effect instead. Commands here know nothing of connections; commands that need one
//! (`MULTI`, `SUBSCRIBE`, `CLIENT` …) are in `server/executor/connection_commands.rs`.
//!
//! Adding a command? Write the function in the file of its value type, add a row to `table.rs`, a
//! template to `tests/it/generate/templates.rs`, and its name to `docs/engine.md`.

mod args;
mod bitfield;
mod bitmap;
mod calls;
mod claim;
mod dump_restore;
mod expire;
mod group;
pub(crate) mod group_effects;
mod group_read;
mod hash;
mod key;
mod list;
mod list_move;
mod pending;
mod scan;
mod server;
mod set;
mod set_algebra;
mod sort;
mod stream;
mod stream_info;
mod stream_read;
mod string;
mod subcommands;
mod table;
mod zset;
mod zset_algebra;
mod zset_range;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use bytes::Bytes;

use self::subcommands::Found;
use crate::db::Db;
use crate::db::effects::{self, Malformed};
use crate::error::{self, Result};
use crate::reply::{Protocol, Reply};

pub(crate) use calls::Calls;
pub(crate) use table::COMMANDS;

/// A row of the command table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    /// The name in lower case.
    pub(crate) name: &'static str,
    /// The number of arguments, including the name; negative: the minimum number.
    pub(crate) arity: i32,
    /// The command's properties, as `COMMAND INFO` shows them and more.
    pub(crate) flags: Flags,
    /// Which arguments are keys.
    pub(crate) keys: Keys,
    /// The function that runs the command.
    pub(crate) run: fn(&mut Db, &[Bytes], &mut Reply) -> Result,
}

/// Properties of a command, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u16);

/// The command may change keys.
pub(crate) const WRITE: Flags = Flags(1);
/// The command only reads keys.
pub(crate) const READ: Flags = Flags(2);
/// The command may need memory or space in the journal (Redis's `denyoom`).
pub(crate) const GROW: Flags = Flags(4);
/// The command takes constant or logarithmic time.
pub(crate) const FAST: Flags = Flags(8);
/// The command may block on a key.
pub(crate) const BLOCKING: Flags = Flags(16);
/// Scripts may not call the command.
pub(crate) const NO_SCRIPT: Flags = Flags(32);
/// The command needs the connection: the server runs it, and `run` only refuses.
pub(crate) const CONNECTION: Flags = Flags(64);
/// The command may be called before authentication.
pub(crate) const NO_AUTH: Flags = Flags(128);
/// A RESP 2 client with subscriptions may call the command.
pub(crate) const WHILE_SUBSCRIBED: Flags = Flags(256);
/// The command is not queued in a transaction: it is run, or refused, at once.
pub(crate) const NOT_QUEUED: Flags = Flags(512);
/// The command consists of subcommands, named by the first argument.
pub(crate) const SUBCOMMANDS: Flags = Flags(1024);
/// The command is refused inside a transaction, which it aborts.
pub(crate) const NO_MULTI: Flags = Flags(2048);

impl Flags {
    /// The union of both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether `flag` is set.
    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }
}

/// Which arguments are keys: from `first` to `last` (negative: counted from the end), every
/// `step`th. All zero if there are none, or if their position depends on other arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keys {
    /// The first key; 1 is the first argument after the name.
    pub(crate) first: i32,
    /// The last key.
    pub(crate) last: i32,
    /// The distance from key to key.
    pub(crate) step: i32,
}

impl Command {
    /// The command's name with the subcommand of a call, such as `client|list`.
    pub(crate) fn full_name(&self, args: &[Bytes]) -> Cow<'static, str> {
        match subcommands::find(self, args) {
            Found::Known(name, _) => Cow::Owned(format!("{}|{name}", self.name)),
            _ => Cow::Borrowed(self.name),
        }
    }
}

/// Whether an arity allows this number of arguments, including the name.
fn accepts(arity: i32, count: usize) -> bool {
    let wanted = arity.unsigned_abs() as usize;
    if arity < 0 { count >= wanted } else { count == wanted }
}

/// Finds a command by its name, in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    table::find(name)
}

/// Checks name, subcommand and arity of a call without running it.
pub(crate) fn check(args: &[Bytes]) -> Result<&'static Command> {
    let command = args.first().and_then(|name| find(name));
    let command = command.ok_or_else(|| error::unknown_command(args))?;
    subcommands::check(command, args)?;
    Ok(command)
}

/// Whether the command and its subcommand exist.
pub(crate) fn knows(args: &[Bytes]) -> bool {
    let command = args.first().and_then(|name| find(name));
    command.is_some_and(|command| !matches!(subcommands::find(command, args), Found::Unknown))
}

/// Runs a command and writes its reply, unless it blocks (see [`Db::take_block_request`]).
pub(crate) fn call(db: &mut Db, args: &[Bytes], reply: &mut Reply) {
    match check(args) {
        Ok(command) => {
            run(db, command, args, reply);
        }
        Err(error) => reply.error_bytes(error.text()),
    }
}

/// Whether a command was answered with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was not.
    Done,
    /// It was.
    Failed,
}

/// Runs a command that [`check`] has returned for these arguments.
///
/// A panic is a mistake of the engine. A command that only reads has changed nothing: it is answered
/// with an error, and the engine goes on. After the panic of a write the keyspace may hold half of
/// it, so the panic goes on and stops the server; a restart has what the journal has.
pub(crate) fn run(db: &mut Db, command: &Command, args: &[Bytes], reply: &mut Reply) -> Outcome {
    let (changes, start, selected) = (db.begin_command(), reply.len(), db.selected());
    if command.flags.has(WRITE) && !db.effects().has_room(args) {
        reply.error_bytes(error::RECORD_TOO_LARGE.text());
        return Outcome::Failed;
    }
    let result = match catch_unwind(AssertUnwindSafe(|| (command.run)(db, args, reply))) {
        Ok(result) => result,
        Err(panic) => {
            let name = command.name;
            tracing::error!(command = name, "a command panicked; please report this mistake");
            if command.flags.has(WRITE) {
                resume_unwind(panic);
            }
            reply.truncate(start);
            db.select(selected);
            Err(error::INTERNAL)
        }
    };
    db.end_command(changes, args);
    match result {
        Ok(()) => Outcome::Done,
        Err(error) => {
            reply.error_bytes(error.text());
            Outcome::Failed
        }
    }
}

/// Replays the effects of a record. The clock must be 0 and recording must be paused.
pub(crate) fn replay(db: &mut Db, record: &Bytes) -> std::result::Result<(), Malformed> {
    let mut reply = Reply::new(Protocol::Resp2);
    for effect in effects::decode(record) {
        let (index, args) = effect?;
        // An effect of a newer version must not be dropped silently.
        let is_known = args.first().is_some_and(|name| is_effect(name));
        if !is_known || !db.select(index) {
            return Err(Malformed);
        }
        apply(db, &args, &mut reply);
        reply.take();
    }
    Ok(())
}

/// Whether a record or a dump may hold a command of this name.
pub(crate) fn is_effect(name: &[u8]) -> bool {
    group_effects::is_effect(name) || find(name).is_some_and(|command| command.flags.has(WRITE))
}

/// Runs one command of a record or of a dump: any command, or one that only the journal has.
pub(crate) fn apply(db: &mut Db, args: &[Bytes], reply: &mut Reply) {
    match group_effects::apply(db, args) {
        None => call(db, args, reply),
        Some(Ok(())) => {}
        Some(Err(error)) => reply.error_bytes(error.text()),
    }
}
