//! Commands on keys of any type.

use bytes::Bytes;

use super::args::{Options, is};
use crate::db::{DATABASES, Db};
use crate::error::{
    DB_OUT_OF_RANGE, Error, NO_SUCH_KEY, NOT_INTEGER, Result, SAME_OBJECT, SYNTAX, arity,
    subcommand,
};
use crate::number::parse_int;
use crate::reply::Reply;

pub(super) fn del(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.int(args[1..].iter().filter(|key| db.remove(key).is_some()).count() as i64);
    Ok(())
}

pub(super) fn exists(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.int(args[1..].iter().filter(|key| db.exists(key)).count() as i64);
    Ok(())
}

pub(super) fn type_of(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.status(db.value(&args[1]).map_or("none", |value| value.type_name()));
    Ok(())
}

pub(super) fn rename(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    if !db.exists(&args[1]) {
        return Err(NO_SUCH_KEY);
    }
    if args[1] != args[2] {
        db.rename(&args[1], &args[2]);
    }
    reply.ok();
    Ok(())
}

pub(super) fn renamenx(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    if !db.exists(&args[1]) {
        return Err(NO_SUCH_KEY);
    }
    let free = !db.exists(&args[2]);
    if free {
        db.rename(&args[1], &args[2]);
    }
    reply.int(free.into());
    Ok(())
}

pub(super) fn move_key(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (key, from) = (&args[1], db.selected());
    let to = database(&args[2])?;
    if to == from {
        return Err(SAME_OBJECT);
    }
    let wanted = db.exists(key);
    db.select(to);
    let moved = wanted && !db.exists(key);
    if moved {
        db.select(from);
        let taken = db.remove(key);
        db.select(to);
        if let Some((value, expiry)) = taken {
            db.set(key, value);
            if expiry.is_some() {
                db.set_expiry(key, expiry);
            }
        }
    }
    db.select(from);
    reply.int(moved.into());
    Ok(())
}

pub(super) fn copy(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (from, to) = (&args[1], &args[2]);
    let source = db.selected();
    let (mut target, mut replace) = (source, false);
    let mut options = Options::new(&args[3..]);
    while let Some(word) = options.next() {
        if is(word, "REPLACE") {
            replace = true;
        } else if is(word, "DB") && options.left() >= 1 {
            target = database(options.value()?)?;
        } else {
            return Err(SYNTAX);
        }
    }
    if source == target && from == to {
        return Err(SAME_OBJECT);
    }
    let value = db.value(from).cloned();
    let expiry = db.expiry(from).flatten();
    let mut copied = false;
    if let Some(value) = value {
        db.select(target);
        copied = replace || !db.exists(to);
        if copied {
            db.set(to, value);
            if expiry.is_some() {
                db.set_expiry(to, expiry);
            }
        }
        db.select(source);
    }
    reply.int(copied.into());
    Ok(())
}

/// Parses the index of a logical database.
pub(super) fn database(arg: &[u8]) -> Result<usize> {
    let index = parse_int(arg).ok_or(NOT_INTEGER)?;
    if i32::try_from(index).is_err() {
        return Err(Error::Fixed(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ));
    }
    usize::try_from(index).ok().filter(|index| *index < DATABASES).ok_or(DB_OUT_OF_RANGE)
}

pub(super) fn randomkey(db: &mut Db, _: &[Bytes], reply: &mut Reply) -> Result {
    // Expired keys are rare, because active expiry removes them.
    for _ in 0..100 {
        if db.is_empty() {
            break;
        }
        let index = db.random_below(db.len());
        let (key, expired) = db.key_at(index);
        if !expired {
            reply.bulk(key);
            return Ok(());
        }
    }
    reply.nil();
    Ok(())
}

pub(super) fn dbsize(db: &mut Db, _: &[Bytes], reply: &mut Reply) -> Result {
    reply.int(db.len() as i64);
    Ok(())
}

pub(super) fn flushdb(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    check_flush(args)?;
    db.flush(db.selected());
    reply.ok();
    Ok(())
}

pub(super) fn flushall(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    check_flush(args)?;
    (0..DATABASES).for_each(|index| db.flush(index));
    reply.ok();
    Ok(())
}

fn check_flush(args: &[Bytes]) -> Result {
    match &args[1..] {
        [] => Ok(()),
        [word] if is(word, "ASYNC") || is(word, "SYNC") => Ok(()),
        _ => Err(SYNTAX),
    }
}

pub(super) fn object(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let word = String::from_utf8_lossy(&args[1]).to_lowercase();
    match (word.as_str(), args.len()) {
        ("help", 2) => {
            let lines = [
                "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                "ENCODING <key>",
                "    Return the kind of internal representation used in order to store the value",
                "    associated with a <key>.",
                "FREQ <key>",
                "    Return the access frequency index of the <key>. The returned integer is",
                "    proportional to the logarithm of the recent access frequency of the key.",
                "IDLETIME <key>",
                "    Return the idle time of the <key>, that is the approximated number of",
                "    seconds elapsed since the last access to the key.",
                "REFCOUNT <key>",
                "    Return the number of references of the value associated with the specified",
                "    <key>.",
                "HELP",
                "    Prints this help.",
            ];
            reply.array(lines.len());
            lines.iter().for_each(|line| reply.status(line));
        }
        ("encoding" | "refcount" | "idletime" | "freq", 3) => {
            let Some(value) = db.value(&args[2]) else {
                reply.nil();
                return Ok(());
            };
            match word.as_str() {
                "encoding" => reply.bulk(value.encoding().as_bytes()),
                "refcount" => reply.int(1),
                "idletime" => reply.int(0),
                _ => {
                    return Err(Error::Fixed(
                        "ERR An LFU maxmemory policy is not selected, access frequency not \
                         tracked. Please note that when switching between policies at runtime LRU \
                         and LFU data will take some time to adjust.",
                    ));
                }
            }
        }
        ("encoding" | "refcount" | "idletime" | "freq" | "help", _) => {
            return Err(arity(&format!("object|{word}")));
        }
        _ => return Err(subcommand("object", &args[1])),
    }
    Ok(())
}
