//! Commands on one list. Commands that move elements or block are in `list_move.rs`.

use bytes::Bytes;

use super::args::{Options, count, int, is, positions, signed_count};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{Error, INDEX_OUT_OF_RANGE, NO_SUCH_KEY, Result, SYNTAX, arity};
use crate::reply::Reply;
use crate::value::List;
use crate::value::list::End;

pub(super) fn lpush(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    push(db, args, End::Left, reply)
}

pub(super) fn rpush(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    push(db, args, End::Right, reply)
}

pub(super) fn lpushx(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    push_existing(db, args, End::Left, reply)
}

pub(super) fn rpushx(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    push_existing(db, args, End::Right, reply)
}

fn push(db: &mut Db, args: &[Bytes], end: End, reply: &mut Reply) -> Result {
    let list = db.create::<List>(&args[1])?;
    args[2..].iter().for_each(|element| list.push(end, Blob::new(element)));
    reply.int(list.len() as i64);
    db.changed(&args[1]);
    Ok(())
}

fn push_existing(db: &mut Db, args: &[Bytes], end: End, reply: &mut Reply) -> Result {
    if db.read::<List>(&args[1])?.is_some() {
        return push(db, args, end, reply);
    }
    reply.int(0);
    Ok(())
}

pub(super) fn lpop(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    pop(db, args, End::Left, "lpop", reply)
}

pub(super) fn rpop(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    pop(db, args, End::Right, "rpop", reply)
}

fn pop(db: &mut Db, args: &[Bytes], end: End, name: &str, reply: &mut Reply) -> Result {
    if args.len() > 3 {
        return Err(arity(name));
    }
    let wanted = args.get(2).map(|arg| count(arg)).transpose()?;
    match (db.write::<List>(&args[1])?, wanted) {
        (None, None) => reply.nil(),
        (None, Some(_)) => reply.nil_array(),
        (Some(_), Some(0)) => reply.array(0),
        (Some(list), None) => {
            let element = list.pop(end).unwrap_or_default();
            reply.bulk(&element);
            db.changed_or_emptied(&args[1]);
        }
        (Some(list), Some(wanted)) => {
            reply.array(wanted.min(list.len()));
            for _ in 0..wanted.min(list.len()) {
                reply.bulk(&list.pop(end).unwrap_or_default());
            }
            db.changed_or_emptied(&args[1]);
        }
    }
    Ok(())
}

pub(super) fn llen(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    reply.int(db.read::<List>(&args[1])?.map_or(0, |list| list.len() as i64));
    Ok(())
}

pub(super) fn lindex(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let element = match db.read::<List>(&args[1])? {
        Some(list) => list.get(int(&args[2])?),
        None => None,
    };
    match element {
        Some(element) => reply.bulk(element),
        None => reply.nil(),
    }
    Ok(())
}

pub(super) fn lset(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let list = db.write::<List>(&args[1])?.ok_or(NO_SUCH_KEY)?;
    let element = list.get_mut(int(&args[2])?).ok_or(INDEX_OUT_OF_RANGE)?;
    *element = Blob::new(&args[3]);
    db.changed(&args[1]);
    reply.ok();
    Ok(())
}

pub(super) fn lrange(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (start, end) = (int(&args[2])?, int(&args[3])?);
    let Some(list) = db.read::<List>(&args[1])? else {
        reply.array(0);
        return Ok(());
    };
    let elements = list.range(positions(start, end, list.len()));
    reply.array(elements.len());
    elements.for_each(|element| reply.bulk(element));
    Ok(())
}

pub(super) fn ltrim(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (start, end) = (int(&args[2])?, int(&args[3])?);
    if let Some(list) = db.write::<List>(&args[1])? {
        list.keep(positions(start, end, list.len()));
        db.changed_or_emptied(&args[1]);
    }
    reply.ok();
    Ok(())
}

pub(super) fn lrem(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let wanted = int(&args[2])?;
    let Some(list) = db.write::<List>(&args[1])? else {
        reply.int(0);
        return Ok(());
    };
    let from = if wanted < 0 { End::Right } else { End::Left };
    let most = if wanted == 0 { usize::MAX } else { wanted.unsigned_abs() as usize };
    let removed = list.remove_equal(&args[3], from, most);
    if removed > 0 {
        db.changed_or_emptied(&args[1]);
    }
    reply.int(removed as i64);
    Ok(())
}

pub(super) fn linsert(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let after = is(&args[2], "AFTER");
    if !after && !is(&args[2], "BEFORE") {
        return Err(SYNTAX);
    }
    let Some(list) = db.write::<List>(&args[1])? else {
        reply.int(0);
        return Ok(());
    };
    let Some(pivot) = list.iter().position(|element| **element == args[3]) else {
        reply.int(-1);
        return Ok(());
    };
    list.insert(pivot + usize::from(after), Blob::new(&args[4]));
    reply.int(list.len() as i64);
    db.changed(&args[1]);
    Ok(())
}

pub(super) fn lpos(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (mut rank, mut most, mut depth) = (1, None, 0);
    let mut options = Options::new(&args[3..]);
    while let Some(word) = options.next() {
        let no_less = |arg: &[u8], text| match int(arg) {
            Ok(value @ 0..) => Ok(value),
            _ => Err(Error::Fixed(text)),
        };
        if is(word, "RANK") && options.left() >= 1 {
            rank = signed_count(options.value()?)?;
            if rank == 0 {
                return Err(Error::Fixed(
                    "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                     second ... or use negative to start from the end of the list",
                ));
            }
        } else if is(word, "COUNT") && options.left() >= 1 {
            most = Some(no_less(options.value()?, "ERR COUNT can't be negative")?);
        } else if is(word, "MAXLEN") && options.left() >= 1 {
            depth = no_less(options.value()?, "ERR MAXLEN can't be negative")?;
        } else {
            return Err(SYNTAX);
        }
    }
    let limit = |value: i64| if value == 0 { usize::MAX } else { value as usize };
    let found: Vec<usize> = match db.read::<List>(&args[1])? {
        None => Vec::new(),
        Some(list) => {
            let equal = |(at, element): (usize, &Blob)| (**element == args[2]).then_some(at);
            let skip = rank.unsigned_abs() as usize - 1;
            let (depth, most) = (limit(depth), limit(most.unwrap_or(1)));
            let all = list.iter().enumerate();
            if rank > 0 {
                all.take(depth).filter_map(equal).skip(skip).take(most).collect()
            } else {
                all.rev().take(depth).filter_map(equal).skip(skip).take(most).collect()
            }
        }
    };
    if most.is_some() {
        reply.array(found.len());
        found.iter().for_each(|at| reply.int(*at as i64));
    } else {
        match found.first() {
            Some(at) => reply.int(*at as i64),
            None => reply.nil(),
        }
    }
    Ok(())
}
