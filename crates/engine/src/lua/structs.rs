//! The library `struct`: packing values as C structures by a format.

use super::native::{Raise, native};
use super::stack::Stack;

/// The maximum size of an integer, in bytes.
const MAX_INTEGER: usize = 32;
/// The alignment of `!` without a number.
const MAX_ALIGN: usize = 8;

/// Pushes the library.
pub(super) fn push_library(stack: &mut Stack<'_>) {
    let functions = [("pack", native!(pack)), ("unpack", native!(unpack)), ("size", native!(size))];
    stack.push_table(0, functions.len());
    for (name, function) in functions {
        stack.push_function(function);
        stack.raw_set_field(-2, name);
    }
}

/// A format being parsed.
struct Format<'a> {
    rest: &'a [u8],
    big_endian: bool,
    align: usize,
}

/// One item of a format.
struct Item {
    option: u8,
    size: usize,
}

impl<'a> Format<'a> {
    fn new(text: &'a [u8]) -> Self {
        // The original reads C strings.
        let rest = text.split(|byte| *byte == 0).next().unwrap_or_default();
        Self { rest, big_endian: cfg!(target_endian = "big"), align: 1 }
    }

    fn next(&mut self) -> Result<Option<Item>, Raise> {
        let Some((option, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let size = match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > MAX_INTEGER {
                    return Err(Raise::Here(format!(
                        "integral size {size} is larger than limit of {MAX_INTEGER}"
                    )));
                }
                size
            }
            _ => 0,
        };
        Ok(Some(Item { option: *option, size }))
    }

    fn number(&mut self, default: usize) -> Result<usize, Raise> {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            return Ok(default);
        }
        let mut value = 0_i32;
        while let Some((&digit @ b'0'..=b'9', rest)) = self.rest.split_first() {
            let next =
                value.checked_mul(10).and_then(|value| value.checked_add(i32::from(digit - b'0')));
            value = next.ok_or_else(|| Raise::Here("integral size overflow".to_owned()))?;
            self.rest = rest;
        }
        Ok(value as usize)
    }

    /// The number of padding bytes before an item at `at`.
    fn padding(&self, at: usize, item: &Item) -> usize {
        if item.size == 0 || item.option == b'c' {
            return 0;
        }
        let size = item.size.min(self.align);
        size.wrapping_sub(at & (size - 1)) & (size - 1)
    }

    /// Handles byte order and alignment, which are no values.
    fn control(&mut self, item: &Item) -> Result<(), Raise> {
        match item.option {
            b' ' => {}
            b'>' => self.big_endian = true,
            b'<' => self.big_endian = false,
            b'!' => {
                let align = self.number(MAX_ALIGN)?;
                if !align.is_power_of_two() {
                    return Err(Raise::Here(format!("alignment {align} is not a power of 2")));
                }
                self.align = align;
            }
            option => {
                let option = char::from(option);
                return Err(Raise::Argument(1, format!("invalid format option '{option}'")));
            }
        }
        Ok(())
    }

    /// Converts between the byte order of the format and little endian.
    fn ordered(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.big_endian {
            bytes.reverse();
        }
        bytes
    }
}

/// `struct.pack(format, ...)`.
fn pack(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let mut format = Format::new(stack.text(1)?);
    let mut out: Vec<u8> = Vec::new();
    // The original has a nil here, which its messages show for the first missing value.
    stack.push_nil();
    let mut argument = 2;
    while let Some(item) = format.next()? {
        out.resize(out.len() + format.padding(out.len(), &item), 0);
        match item.option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let bytes = integer_bytes(stack.check_number(argument)?, item.size);
                out.extend(format.ordered(bytes));
                argument += 1;
            }
            b'x' => out.push(0),
            b'f' => {
                let value = stack.check_number(argument)? as f32;
                out.extend(format.ordered(value.to_le_bytes().to_vec()));
                argument += 1;
            }
            b'd' => {
                let value = stack.check_number(argument)?;
                out.extend(format.ordered(value.to_le_bytes().to_vec()));
                argument += 1;
            }
            b'c' | b's' => {
                let text = stack.text(argument)?;
                argument += 1;
                let len = if item.size == 0 { text.len() } else { item.size };
                let Some(text) = text.get(..len) else {
                    // The original counts the argument before it checks.
                    return Err(Raise::Argument(argument, "string too short".to_owned()));
                };
                out.extend_from_slice(text);
                if item.option == b's' {
                    out.push(0);
                }
            }
            _ => format.control(&item)?,
        }
    }
    stack.push_bytes(&out);
    Ok(1)
}

/// A number as an integer of `size` bytes, little endian.
fn integer_bytes(value: f64, size: usize) -> Vec<u8> {
    // C converts a negative number to signed and any other to unsigned.
    let value = if value < 0.0 { super::numeric::to_i64(value) as u64 } else { to_u64(value) };
    let mut bytes = value.to_le_bytes().to_vec();
    bytes.resize(size, 0);
    bytes
}

/// A C cast to `unsigned long` as on x86-64.
fn to_u64(value: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if value < HALF {
        super::numeric::to_i64(value) as u64
    } else {
        (super::numeric::to_i64(value - HALF) as u64) ^ (1 << 63)
    }
}

/// `struct.unpack(format, data [, from])`: the values and the next position.
fn unpack(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let mut format = Format::new(stack.text(1)?);
    let data = stack.text(2)?;
    let offset = stack.optional_integer(3, 1)?;
    if offset < 1 {
        return Err(Raise::Argument(3, "offset must be 1 or greater".to_owned()));
    }
    let mut at = offset as usize - 1;
    let too_short = || Raise::Argument(2, "data string too short".to_owned());
    let before = stack.top();
    while let Some(item) = format.next()? {
        at = at.wrapping_add(format.padding(at, &item));
        let slice = |size: usize| data.get(at..at.checked_add(size)?);
        let mut used = item.size;
        let value = slice(item.size).ok_or_else(too_short)?;
        if !stack.ensure(1) {
            return Err(Raise::Here("stack overflow (too many results)".to_owned()));
        }
        match item.option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let bytes = format.ordered(value.to_vec());
                stack.push_number(integer(&bytes, item.option.is_ascii_lowercase()));
            }
            b'x' => {}
            b'f' => {
                let bytes = format.ordered(value.to_vec());
                let bytes = <[u8; 4]>::try_from(bytes).map_err(|_| too_short())?;
                stack.push_number(f32::from_le_bytes(bytes).into());
            }
            b'd' => {
                let bytes = format.ordered(value.to_vec());
                let bytes = <[u8; 8]>::try_from(bytes).map_err(|_| too_short())?;
                stack.push_number(f64::from_le_bytes(bytes));
            }
            b'c' if item.size == 0 => {
                // The value before it is its length and not a result.
                let len = (stack.top() > before).then(|| stack.number(-1)).flatten();
                let Some(len) = len else {
                    return Err(Raise::Here("format 'c0' needs a previous size".to_owned()));
                };
                stack.pop(1);
                used = to_u64(len) as usize;
                stack.push_bytes(slice(used).ok_or_else(too_short)?);
            }
            b'c' => stack.push_bytes(value),
            b's' => {
                let tail = &data[at..];
                let Some(len) = tail.iter().position(|byte| *byte == 0) else {
                    return Err(Raise::Here("unfinished string in data".to_owned()));
                };
                used = len + 1;
                stack.push_bytes(&tail[..len]);
            }
            _ => format.control(&item)?,
        }
        at = at.wrapping_add(used);
    }
    stack.ensure(1);
    stack.push_number(at as f64 + 1.0);
    Ok(stack.top() - before)
}

/// An integer from little-endian bytes; only the lowest eight count.
fn integer(bytes: &[u8], signed: bool) -> f64 {
    let value = bytes.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    if !signed {
        return value as f64;
    }
    match bytes.len() {
        0 => 0.0,
        len @ 1..8 => {
            let unused = 64 - 8 * len as u32;
            (((value << unused) as i64) >> unused) as f64
        }
        _ => value as i64 as f64,
    }
}

/// `struct.size(format)`.
fn size(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let mut format = Format::new(stack.text(1)?);
    let mut at = 0_usize;
    while let Some(item) = format.next()? {
        at = at.saturating_add(format.padding(at, &item));
        match (item.option, item.size) {
            (b's', _) => {
                return Err(Raise::Argument(1, "option 's' has no fixed size".to_owned()));
            }
            (b'c', 0) => {
                return Err(Raise::Argument(1, "option 'c0' has no fixed size".to_owned()));
            }
            (option, _) if !option.is_ascii_alphanumeric() => format.control(&item)?,
            _ => {}
        }
        at = at.saturating_add(item.size);
    }
    stack.push_number(at as f64);
    Ok(1)
}
