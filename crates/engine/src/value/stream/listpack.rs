//! The size of a stream block in Redis's listpack form.
//!
//! Blocks are not stored in that form here; the size only decides when a new block begins, as in
//! Redis.

use super::Id;
use crate::number::parse_int;

/// The size of the header, the end mark and the master entry with its fields.
pub(super) fn block<T: AsRef<[u8]>>(fields: &[T]) -> usize {
    let counters = int(1) + int(0) + int(fields.len() as i64) + int(0);
    7 + counters + fields.iter().map(|field| text(field.as_ref())).sum::<usize>()
}

/// The size of an entry in a block that begins with `first`.
pub(super) fn entry<T: AsRef<[u8]>>(first: Id, id: Id, texts: &[T], own_fields: bool) -> usize {
    let pairs = texts.len() as i64 / 2;
    let ids = int(id.ms.wrapping_sub(first.ms) as i64) + int(id.seq.wrapping_sub(first.seq) as i64);
    let values: usize = texts.iter().skip(1).step_by(2).map(|value| text(value.as_ref())).sum();
    let flags = int(0);
    if !own_fields {
        return flags + ids + values + int(pairs + 3);
    }
    let fields: usize = texts.iter().step_by(2).map(|field| text(field.as_ref())).sum();
    flags + ids + int(pairs) + fields + values + int(2 * pairs + 4)
}

fn text(text: &[u8]) -> usize {
    if let Some(value) = parse_int(text) {
        return int(value);
    }
    let head = match text.len() {
        0..64 => 1,
        64..4096 => 2,
        _ => 5,
    };
    let size = head + text.len();
    size + back_length(size)
}

fn int(value: i64) -> usize {
    let size = match value {
        0..=127 => 1,
        -4096..=4095 => 2,
        -32_768..=32_767 => 3,
        -8_388_608..=8_388_607 => 4,
        -2_147_483_648..=2_147_483_647 => 5,
        _ => 9,
    };
    size + 1
}

/// The size of the backward length that follows each element.
fn back_length(size: usize) -> usize {
    match size {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}
