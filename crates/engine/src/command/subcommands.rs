//! The subcommands of container commands, with their arity.
//!
//! Redis looks up a subcommand together with its command. An unknown subcommand is refused before
//! any other check and aborts an open transaction. Adding a subcommand? Add it here too.

use bytes::Bytes;

use super::{Command, SUBCOMMANDS, accepts};
use crate::error::{self, Result};

/// Name and arity of each subcommand; the arity counts both names.
#[rustfmt::skip]
const CONTAINERS: &[(&str, &[(&str, i32)])] = &[
    ("client", &[
        ("getname", 2), ("getredir", 2), ("id", 2), ("info", 2), ("kill", -3), ("list", -2), ("no-evict", 3),
        ("no-touch", 3), ("reply", 3), ("setinfo", 4), ("setname", 3), ("unblock", -3),
    ]),
    ("command", &[("count", 2), ("docs", -2), ("getkeys", -4), ("info", -2), ("list", -2)]),
    ("config", &[("get", -3), ("resetstat", 2), ("set", -4)]),
    ("memory", &[("usage", -3)]),
    ("object", &[("encoding", 3), ("freq", 3), ("help", 2), ("idletime", 3), ("refcount", 3)]),
    ("pubsub", &[("channels", -2), ("numpat", 2), ("numsub", -2), ("shardchannels", -2), ("shardnumsub", -2)]),
    ("script", &[("exists", -3), ("flush", -2), ("help", 2), ("kill", 2), ("load", 3)]),
    ("slowlog", &[("get", -2), ("len", 2), ("reset", 2)]),
    ("xgroup", &[("create", -5), ("createconsumer", 5), ("delconsumer", 5), ("destroy", 4), ("setid", -5)]),
    ("xinfo", &[("consumers", 4), ("groups", 3), ("stream", -3)]),
];

/// The subcommand of a call.
pub(super) enum Found {
    /// The command has no subcommands, or the call names none.
    None,
    Known(&'static str, i32),
    Unknown,
}

pub(super) fn find(command: &Command, args: &[Bytes]) -> Found {
    let Some(word) = args.get(1).filter(|_| command.flags.has(SUBCOMMANDS)) else {
        return Found::None;
    };
    let all =
        CONTAINERS.iter().find(|(name, _)| *name == command.name).map_or(&[][..], |row| row.1);
    let found = all.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
    found.map_or(Found::Unknown, |(name, arity)| Found::Known(name, *arity))
}

/// Checks that the subcommand exists and accepts this number of arguments.
pub(super) fn check(command: &Command, args: &[Bytes]) -> Result {
    match find(command, args) {
        Found::None if accepts(command.arity, args.len()) => Ok(()),
        Found::None => Err(error::arity(command.name)),
        Found::Known(_, arity) if accepts(arity, args.len()) => Ok(()),
        Found::Known(name, _) => Err(error::arity(&format!("{}|{name}", command.name))),
        Found::Unknown => Err(error::subcommand(command.name, &args[1])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::COMMANDS;

    #[test]
    fn what_has_subcommands_is_marked_in_the_table() {
        let marked: Vec<&str> =
            COMMANDS.iter().filter(|row| row.flags.has(SUBCOMMANDS)).map(|row| row.name).collect();
        let mut known: Vec<&str> = CONTAINERS.iter().map(|(name, _)| *name).collect();
        known.sort_by_key(|name| COMMANDS.iter().position(|row| row.name == *name));
        assert_eq!(marked, known);
    }

    #[test]
    fn subcommands_are_refused_in_the_words_of_redis() {
        for (line, text) in [
            ("CLIENT", "ERR wrong number of arguments for 'client' command"),
            ("client Nope x", "ERR unknown subcommand 'Nope'. Try CLIENT HELP."),
            ("CLIENT id x", "ERR wrong number of arguments for 'client|id' command"),
        ] {
            let args: Vec<Bytes> = line.split(' ').map(|arg| Bytes::from(arg.to_owned())).collect();
            let error = crate::command::check(&args).map(|row| row.name).unwrap_err();
            assert_eq!(String::from_utf8_lossy(error.text()), text);
        }
    }
}
