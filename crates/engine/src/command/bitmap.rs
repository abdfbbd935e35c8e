//! Commands on the bits of strings. Integers inside bitmaps (`BITFIELD`) are in `bitfield.rs`.

use bytes::Bytes;

use super::args::{int, is};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{Error, Result, SYNTAX};
use crate::number::parse_int;
use crate::reply::Reply;
use crate::value::{Value, bitmap, string};

const BAD_OFFSET: Error = Error::Fixed("ERR bit offset is not an integer or out of range");
const BAD_BIT: Error = Error::Fixed("ERR bit is not an integer or out of range");

/// Parses the offset of a bit; its byte must be within the maximum length of a string.
pub(super) fn offset(arg: &[u8]) -> Result<usize> {
    offset_of(parse_int(arg))
}

/// Checks an offset that was computed.
pub(super) fn offset_of(offset: Option<i64>) -> Result<usize> {
    let offset = offset.and_then(|offset| usize::try_from(offset).ok());
    offset.filter(|offset| offset / 8 < string::MAX_LEN).ok_or(BAD_OFFSET)
}

/// Makes a string at least so long that it has the bit; `true` if it has grown.
pub(super) fn grow(db: &mut Db, key: &Bytes, bit: usize) -> Result<bool> {
    let len = bit / 8 + 1;
    let text = db.create::<Blob>(key)?;
    let grows = text.len() < len;
    if grows {
        text.edit(|bytes| bytes.resize(len, 0));
    }
    Ok(grows)
}

pub(super) fn setbit(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let key = &args[1];
    let bit = offset(&args[2])?;
    let on = match parse_int(&args[3]) {
        Some(on @ (0 | 1)) => on == 1,
        _ => return Err(BAD_BIT),
    };
    db.read::<Blob>(key)?;
    let grown = grow(db, key, bit)?;
    let text = db.create::<Blob>(key)?;
    let old = bitmap::get(text, bit);
    if old != on {
        text.edit(|bytes| bitmap::set(bytes, bit, on));
    }
    if grown || old != on {
        db.changed(key);
    }
    reply.int(old.into());
    Ok(())
}

pub(super) fn getbit(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let bit = offset(&args[2])?;
    reply.int(db.read::<Blob>(&args[1])?.is_some_and(|text| bitmap::get(text, bit)).into());
    Ok(())
}

/// The unit of a range of a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte,
    Bit,
}

impl Unit {
    fn parse(arg: Option<&Bytes>) -> Result<Self> {
        match arg {
            None => Ok(Self::Byte),
            Some(word) if is(word, "BYTE") => Ok(Self::Byte),
            Some(word) if is(word, "BIT") => Ok(Self::Bit),
            Some(_) => Err(SYNTAX),
        }
    }

    /// The first and the last bit of a range of a text of `len` bytes; `None` if it is empty.
    fn bits(self, start: i64, end: i64, len: usize) -> Option<(usize, usize)> {
        let total = if self == Self::Bit { len as i64 * 8 } else { len as i64 };
        let from_end = |index: i64| if index < 0 { (index + total).max(0) } else { index };
        let (start, end) = (from_end(start), from_end(end).min(total - 1));
        if start > end {
            return None;
        }
        let (start, end) = (start as usize, end as usize);
        Some(if self == Self::Bit { (start, end) } else { (start * 8, end * 8 + 7) })
    }
}

pub(super) fn bitcount(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let Some(text) = db.read::<Blob>(&args[1])? else {
        reply.int(0);
        return Ok(());
    };
    let bits = match &args[2..] {
        [] => Unit::Byte.bits(0, -1, text.len()),
        [start, end, unit @ ..] if unit.len() < 2 => {
            let (start, end) = (int(start)?, int(end)?);
            if start < 0 && end < 0 && start > end {
                None
            } else {
                Unit::parse(unit.first())?.bits(start, end, text.len())
            }
        }
        _ => return Err(SYNTAX),
    };
    reply.int(bits.map_or(0, |(first, last)| bitmap::count(text, first, last)) as i64);
    Ok(())
}

pub(super) fn bitpos(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let on = match int(&args[2])? {
        bit @ (0 | 1) => bit == 1,
        _ => return Err(Error::Fixed("ERR The bit argument must be 1 or 0.")),
    };
    let Some(text) = db.read::<Blob>(&args[1])? else {
        // A missing key is an endless array of zeros.
        reply.int(if on { -1 } else { 0 });
        return Ok(());
    };
    let range = &args[3..];
    let bits = match range {
        [] => Unit::Byte.bits(0, -1, text.len()),
        [start] => Unit::Byte.bits(int(start)?, -1, text.len()),
        [start, end, unit @ ..] if unit.len() < 2 => {
            let (start, unit) = (int(start)?, Unit::parse(unit.first())?);
            unit.bits(start, int(end)?, text.len())
        }
        _ => return Err(SYNTAX),
    };
    let found = bits.and_then(|(first, last)| bitmap::position(text, on, first, last));
    // Without an explicit end, zeros follow the text.
    let beyond = bits.filter(|_| !on && range.len() < 2).map(|(_, last)| last + 1);
    reply.int(found.or(beyond).map_or(-1, |bit| bit as i64));
    Ok(())
}

pub(super) fn bitop(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let (target, sources) = (&args[2], &args[3..]);
    let combine: fn(u8, u8) -> u8 = match args[1].to_ascii_uppercase().as_slice() {
        b"AND" => |a, b| a & b,
        b"OR" => |a, b| a | b,
        b"XOR" => |a, b| a ^ b,
        b"NOT" if sources.len() == 1 => |a, _| !a,
        b"NOT" => {
            return Err(Error::Fixed("ERR BITOP NOT must be called with a single source key."));
        }
        _ => return Err(SYNTAX),
    };
    let mut texts: Vec<Blob> = Vec::with_capacity(sources.len());
    for key in sources {
        texts.push(db.read::<Blob>(key)?.cloned().unwrap_or_default());
    }
    let len = texts.iter().map(|text| text.len()).max().unwrap_or(0);
    let mut texts = texts.into_iter();
    let mut result = texts.next().map_or_else(Vec::new, |text| text.to_vec());
    result.resize(len, 0);
    if is(&args[1], "NOT") {
        result.iter_mut().for_each(|byte| *byte = combine(*byte, 0));
    }
    for text in texts {
        // A shorter text is continued with zeros.
        let bytes = text.iter().copied().chain(std::iter::repeat(0));
        result.iter_mut().zip(bytes).for_each(|(byte, other)| *byte = combine(*byte, other));
    }
    if result.is_empty() {
        db.remove(target);
    } else {
        db.set(target, Value::String(Blob::from(result)));
    }
    reply.int(len as i64);
    Ok(())
}
