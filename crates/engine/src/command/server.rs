//! Server commands that need no connection.

use bytes::Bytes;

use super::args::{Options, int, is};
use super::key::database;
use super::{BLOCKING, COMMANDS, Command, FAST, GROW, NO_SCRIPT, READ, WRITE, find};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{NEEDS_CONNECTION, Result, SYNTAX, arity, subcommand};
use crate::glob;
use crate::reply::Reply;

/// The table's function for commands that need a connection: refuses.
pub(super) fn connection(_: &mut Db, _: &[Bytes], _: &mut Reply) -> Result {
    Err(NEEDS_CONNECTION)
}

pub(super) fn ping(_: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    match &args[1..] {
        [] => reply.status("PONG"),
        [text] => reply.bulk(text),
        _ => return Err(arity("ping")),
    }
    Ok(())
}

pub(super) fn echo(_: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.bulk(&args[1]);
    Ok(())
}

pub(super) fn time(db: &mut Db, _: &[Bytes], reply: &mut Reply) -> Result {
    let now = db.now_us();
    reply.array(2);
    reply.bulk((now / 1_000_000).to_string().as_bytes());
    reply.bulk((now % 1_000_000).to_string().as_bytes());
    Ok(())
}

/// Selects a database for the following commands; the connection then reads [`Db::selected`].
pub(super) fn select(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    db.select(database(&args[1])?);
    reply.ok();
    Ok(())
}

pub(super) fn memory(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    if !is(&args[1], "USAGE") {
        return Err(subcommand("memory", &args[1]));
    }
    let key = args.get(2).ok_or_else(|| arity("memory|usage"))?;
    let mut options = Options::new(&args[3..]);
    while let Some(word) = options.next() {
        if !is(word, "SAMPLES") || options.left() == 0 || int(options.value()?)? < 0 {
            return Err(SYNTAX);
        }
    }
    let slot = 64 + Blob::new(key).heap_size();
    match db.value(key) {
        Some(value) => reply.int((slot + value.heap_size()) as i64),
        None => reply.nil(),
    }
    Ok(())
}

pub(super) fn command(_: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let Some(word) = args.get(1) else {
        reply.array(COMMANDS.len());
        COMMANDS.iter().for_each(|row| describe(row, reply));
        return Ok(());
    };
    let rest = &args[2..];
    match word.to_ascii_uppercase().as_slice() {
        b"COUNT" if rest.is_empty() => reply.int(COMMANDS.len() as i64),
        b"COUNT" => return Err(arity("command|count")),
        b"INFO" if rest.is_empty() => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|row| describe(row, reply));
        }
        b"INFO" => {
            reply.array(rest.len());
            for name in rest {
                match find(name) {
                    Some(row) => describe(row, reply),
                    None => reply.nil(),
                }
            }
        }
        // Clients use the documentation only for hints.
        b"DOCS" => reply.map(0),
        b"LIST" => list(rest, reply)?,
        b"GETKEYS" if rest.is_empty() => return Err(arity("command|getkeys")),
        _ => return Err(subcommand("command", word)),
    }
    Ok(())
}

fn list(rest: &[Bytes], reply: &mut Reply) -> Result {
    let pattern: &[u8] = match rest {
        [] => b"*",
        [filter, by, pattern] if is(filter, "FILTERBY") && is(by, "PATTERN") => pattern,
        _ => return Err(SYNTAX),
    };
    let names = COMMANDS.iter().map(|row| row.name.as_bytes());
    let found: Vec<&[u8]> = names.filter(|name| glob::matches(pattern, name)).collect();
    reply.set(found.len());
    found.iter().for_each(|name| reply.bulk(name));
    Ok(())
}

fn describe(row: &Command, reply: &mut Reply) {
    let words = [
        (WRITE, "write"),
        (READ, "readonly"),
        (GROW, "denyoom"),
        (FAST, "fast"),
        (NO_SCRIPT, "noscript"),
        (BLOCKING, "blocking"),
    ];
    let flags: Vec<&str> =
        words.iter().filter(|(flag, _)| row.flags.has(*flag)).map(|(_, word)| *word).collect();
    reply.array(10);
    reply.bulk(row.name.as_bytes());
    reply.int(row.arity.into());
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.status(flag));
    for number in [row.keys.first, row.keys.last, row.keys.step] {
        reply.int(number.into());
    }
    // Categories, tips, key specifications and subcommands are empty.
    (0..4).for_each(|_| reply.array(0));
}
