//! `BITFIELD` and `BITFIELD_RO`: integers of any width at any bit of a string.

use bytes::Bytes;

use super::args::{Options, int, is};
use super::bitmap::{grow, offset, offset_of};
use crate::blob::Blob;
use crate::db::Db;
use crate::error::{Error, Result, SYNTAX};
use crate::number::parse_int;
use crate::reply::Reply;
use crate::value::bitmap::{Field, Overflow};

const BAD_TYPE: Error = Error::Fixed(
    "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 \
     is.",
);

/// One operation on an integer.
struct Operation {
    field: Field,
    bit: usize,
    change: Change,
    overflow: Overflow,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Set(i64),
    Add(i64),
}

impl Operation {
    /// The new integer and the integer to reply; `None` if the new one does not fit.
    fn apply(&self, old: i64) -> Option<(i64, i64)> {
        match self.change {
            Change::None => Some((old, old)),
            Change::Add(more) => {
                let new = self.field.fit(i128::from(old) + i128::from(more), self.overflow)?;
                Some((new, new))
            }
            Change::Set(value) => Some((self.field.fit_new(value, self.overflow)?, old)),
        }
    }

    fn last_bit(&self) -> usize {
        self.bit + self.field.bits - 1
    }
}

pub(super) fn bitfield(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let operations = parse(&args[2..])?;
    run(db, &args[1], &operations, reply)
}

pub(super) fn bitfield_ro(db: &mut Db, args: &[Bytes], reply: &mut Reply) -> Result {
    let operations = parse(&args[2..])?;
    if operations.iter().any(|one| one.change != Change::None) {
        return Err(Error::Fixed("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    run(db, &args[1], &operations, reply)
}

fn parse(args: &[Bytes]) -> Result<Vec<Operation>> {
    let (mut operations, mut overflow) = (Vec::new(), Overflow::Wrap);
    let mut options = Options::new(args);
    while let Some(word) = options.next() {
        let left = options.left();
        if is(word, "OVERFLOW") && left >= 1 {
            overflow = match options.value()?.to_ascii_uppercase().as_slice() {
                b"WRAP" => Overflow::Wrap,
                b"SAT" => Overflow::Saturate,
                b"FAIL" => Overflow::Fail,
                _ => return Err(Error::Fixed("ERR Invalid OVERFLOW type specified")),
            };
            continue;
        }
        let make: fn(i64) -> Change = match word.to_ascii_uppercase().as_slice() {
            b"GET" if left >= 2 => |_| Change::None,
            b"SET" if left >= 3 => Change::Set,
            b"INCRBY" if left >= 3 => Change::Add,
            _ => return Err(SYNTAX),
        };
        let field = Field::parse(options.value()?).ok_or(BAD_TYPE)?;
        let bit = bit_of(options.value()?, field)?;
        let change = if is(word, "GET") { Change::None } else { make(int(options.value()?)?) };
        operations.push(Operation { field, bit, change, overflow });
    }
    Ok(operations)
}

/// Parses an offset; `#3` means the fourth integer of this type.
fn bit_of(arg: &[u8], field: Field) -> Result<usize> {
    match arg.strip_prefix(b"#") {
        Some(index) => {
            offset_of(parse_int(index).and_then(|index| index.checked_mul(field.bits as i64)))
        }
        None => offset(arg),
    }
}

fn run(db: &mut Db, key: &Bytes, operations: &[Operation], reply: &mut Reply) -> Result {
    let writes = operations.iter().filter(|one| one.change != Change::None);
    let Some(last_written) = writes.map(Operation::last_bit).max() else {
        let text = db.read::<Blob>(key)?.map_or(&[][..], |text| text);
        reply.array(operations.len());
        operations.iter().for_each(|one| reply.int(one.field.read(text, one.bit)));
        return Ok(());
    };
    let mut changed = grow(db, key, last_written)?;
    reply.array(operations.len());
    db.create::<Blob>(key)?.edit(|bytes| {
        for one in operations {
            let old = one.field.read(bytes, one.bit);
            match one.apply(old) {
                Some((new, shown)) => {
                    if new != old {
                        one.field.write(bytes, one.bit, new);
                        changed = true;
                    }
                    reply.int(shown);
                }
                None => reply.nil(),
            }
        }
    });
    if changed {
        db.changed(key);
    }
    Ok(())
}
