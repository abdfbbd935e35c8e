//! The library `cmsgpack`: MessagePack, compatible with lua-cmsgpack 0.4.
//!
//! Decoding keeps its nesting in a vector and its values on the Lua stack. So hostile input reaches
//! Lua's limit of 8,000 values instead of overflowing the Rust stack.

use super::native::{Raise, native};
use super::numeric::to_i64;
use super::stack::{Kind, Stack};

/// The nesting depth below which tables are packed as nil.
const MAX_NESTING: usize = 16;

/// Pushes the library.
pub(super) fn push_library(stack: &mut Stack<'_>) {
    let functions = [
        ("pack", native!(pack)),
        ("unpack", native!(unpack)),
        ("unpack_one", native!(unpack_one)),
        ("unpack_limit", native!(unpack_limit)),
    ];
    let texts = [
        ("_NAME", "cmsgpack"),
        ("_VERSION", "lua-cmsgpack 0.4.0"),
        ("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
        ("_DESCRIPTION", "MessagePack C implementation for Lua"),
    ];
    stack.push_table(0, functions.len() + texts.len());
    for (name, function) in functions {
        stack.push_function(function);
        stack.raw_set_field(-2, name);
    }
    for (name, text) in texts {
        stack.push_bytes(text.as_bytes());
        stack.raw_set_field(-2, name);
    }
}

/// `cmsgpack.pack(...)`: packs all arguments.
fn pack(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.args() == 0 {
        return Err(Raise::Argument(0, "MessagePack pack needs input.".to_owned()));
    }
    let state = stack.state();
    let limit = state.memory.budget();
    let mut out = state.scratch.borrow_mut();
    out.clear();
    for index in 1..=stack.args() {
        stack.push_copy(index as i32);
        append(stack, 0, limit, &mut out)?;
        stack.pop(1);
    }
    stack.push_bytes(&out);
    if out.capacity() > 1 << 20 {
        *out = Vec::new();
    }
    Ok(1)
}

/// Appends the topmost value.
fn append(
    stack: &mut Stack<'_>,
    level: usize,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Raise> {
    // Tables that share parts can be exponentially large.
    if out.len() > limit || !stack.ensure(4) {
        return Err(Raise::Plain("not enough memory".to_owned()));
    }
    stack.state().step()?;
    match stack.kind(-1) {
        Kind::String => append_bytes(stack.bytes(-1).unwrap_or_default(), out),
        Kind::Boolean => out.push(if stack.truth(-1) { 0xc3 } else { 0xc2 }),
        Kind::Number => append_number(stack.number(-1).unwrap_or_default(), out),
        Kind::Table if level < MAX_NESTING => append_table(stack, level, limit, out)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

fn append_table(
    stack: &mut Stack<'_>,
    level: usize,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<(), Raise> {
    let (is_array, count) = measure(stack);
    if is_array {
        let len = stack.raw_len(-1);
        append_header(len, (0x90, 15), [0xdc, 0xdd], out);
        for n in 1..=len {
            stack.raw_get_at(-1, n);
            append(stack, level + 1, limit, out)?;
            stack.pop(1);
        }
        return Ok(());
    }
    append_header(count, (0x80, 15), [0xde, 0xdf], out);
    stack.push_nil();
    while stack.next(-2) {
        stack.push_copy(-2);
        append(stack, level + 1, limit, out)?;
        stack.pop(1);
        append(stack, level + 1, limit, out)?;
        stack.pop(1);
    }
    Ok(())
}

/// Whether the topmost table is an array with the keys 1 to n, and n.
fn measure(stack: &mut Stack<'_>) -> (bool, usize) {
    let (mut max, mut count, mut is_array) = (0, 0, true);
    stack.push_nil();
    while stack.next(-2) {
        stack.pop(1);
        match (stack.kind(-1), stack.number(-1)) {
            (Kind::Number, Some(key)) if key > 0.0 && f64::from(key as i32) == key => {
                max = max.max(key as usize);
            }
            _ => is_array = false,
        }
        count += 1;
    }
    (is_array && max == count, count)
}

/// Appends a length: in the first byte if it fits, else in two or four bytes after one of `codes`.
fn append_header(len: usize, short: (u8, usize), codes: [u8; 2], out: &mut Vec<u8>) {
    if len <= short.1 {
        out.push(short.0 | len as u8);
    } else if len <= 0xffff {
        out.push(codes[0]);
        out.extend_from_slice(&(len as u16).to_be_bytes());
    } else {
        out.push(codes[1]);
        out.extend_from_slice(&(len as u32).to_be_bytes());
    }
}

fn append_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    if (32..=0xff).contains(&bytes.len()) {
        out.extend_from_slice(&[0xd9, bytes.len() as u8]);
    } else {
        append_header(bytes.len(), (0xa0, 31), [0xda, 0xdb], out);
    }
    out.extend_from_slice(bytes);
}

fn append_number(value: f64, out: &mut Vec<u8>) {
    let whole = to_i64(value);
    if whole as f64 != value {
        let short = value as f32;
        if f64::from(short) == value {
            out.push(0xca);
            out.extend_from_slice(&short.to_be_bytes());
        } else {
            out.push(0xcb);
            out.extend_from_slice(&value.to_be_bytes());
        }
        return;
    }
    let bytes = whole.to_be_bytes();
    let (code, len) = match whole {
        -32..=0x7f => return out.push(whole as u8),
        0x80..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..-32 => (0xd0, 1),
        -0x8000..-0x80 => (0xd1, 2),
        -0x8000_0000..-0x8000 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    out.push(code);
    out.extend_from_slice(&bytes[8 - len..]);
}

/// `cmsgpack.unpack(text)`: all values.
fn unpack(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let text = stack.text(1)?;
    let mut rest = text;
    let mut count = 0;
    while !rest.is_empty() {
        read_value(stack, &mut rest)?;
        count += 1;
    }
    Ok(count)
}

/// `cmsgpack.unpack_one(text [, offset])`: the next offset, or -1, and one value.
fn unpack_one(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let offset = stack.optional_integer(2, 0)?;
    unpack_some(stack, 1, offset)
}

/// `cmsgpack.unpack_limit(text, limit [, offset])`: the next offset, or -1, and at most `limit` values.
fn unpack_limit(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let limit = stack.check_integer(2)?;
    let offset = stack.optional_integer(3, 0)?;
    if limit == 0 && offset == 0 {
        return unpack(stack);
    }
    unpack_some(stack, limit, offset)
}

fn unpack_some(stack: &mut Stack<'_>, limit: i64, offset: i64) -> Result<usize, Raise> {
    let text = stack.text(1)?;
    let len = text.len();
    if offset < 0 || limit < 0 {
        // Redis prints the length where its message says limit.
        return Err(Raise::Here(format!(
            "Invalid request to unpack with offset of {} and limit of {}.",
            offset as i32, len as i32
        )));
    }
    let Some(mut rest) = text.get(offset as usize..) else {
        return Err(Raise::Here(format!(
            "Start offset {} greater than input length {}.",
            offset as i32, len as i32
        )));
    };
    // The offset comes before the values but is known after them, so its slot is reserved.
    stack.push_nil();
    let place = stack.top();
    let mut count = 0;
    while !rest.is_empty() && count < limit {
        read_value(stack, &mut rest)?;
        count += 1;
    }
    let next = if rest.is_empty() { -1.0 } else { (len - rest.len()) as f64 };
    stack.ensure(1);
    stack.push_number(next);
    stack.replace(place);
    Ok(count as usize + 1)
}

/// A table that is being read.
struct Open {
    left: usize,
    /// The next index of an array; `None` for a map.
    index: Option<usize>,
    /// Whether a key on the stack waits for its value.
    has_key: bool,
}

/// The result of reading one code.
enum Begun {
    /// A scalar; it was pushed.
    Value,
    /// A table; it was pushed empty.
    Table(Open),
}

/// Pushes one value, including all elements of a table.
fn read_value(stack: &mut Stack<'_>, rest: &mut &[u8]) -> Result<(), Raise> {
    let mut open: Vec<Open> = Vec::new();
    loop {
        if !stack.ensure(2) {
            let text = "stack overflow (too many return values at once; \
                        use unpack_one or unpack_limit instead.)";
            return Err(Raise::Here(text.to_owned()));
        }
        match begin(stack, rest)? {
            Begun::Table(table) if table.left > 0 => {
                open.push(table);
                continue;
            }
            Begun::Table(_) | Begun::Value => {}
        }
        // A value is complete: store it, which may complete its table, and so on.
        loop {
            let Some(table) = open.last_mut() else { return Ok(()) };
            if store(stack, table)? > 0 {
                break;
            }
            open.pop();
        }
    }
}

/// Stores the topmost value in the table below it, or leaves it as a key; returns the number of
/// missing elements.
fn store(stack: &mut Stack<'_>, table: &mut Open) -> Result<usize, Raise> {
    match &mut table.index {
        Some(index) => {
            stack.raw_set_at(-2, *index);
            *index += 1;
            table.left -= 1;
        }
        None if table.has_key => {
            stack.raw_set(-3)?;
            table.has_key = false;
            table.left -= 1;
        }
        None => table.has_key = true,
    }
    Ok(table.left)
}

/// Reads one code and its data, except the elements of a table.
fn begin(stack: &mut Stack<'_>, rest: &mut &[u8]) -> Result<Begun, Raise> {
    let code = take::<1>(rest)?[0];
    match code {
        0..=0x7f => stack.push_number(code.into()),
        0xe0.. => stack.push_number((code as i8).into()),
        0xc0 => stack.push_nil(),
        0xc2 | 0xc3 => stack.push_bool(code == 0xc3),
        0xcc => stack.push_number(u8::from_be_bytes(take(rest)?).into()),
        0xcd => stack.push_number(u16::from_be_bytes(take(rest)?).into()),
        0xce => stack.push_number(u32::from_be_bytes(take(rest)?).into()),
        // The original pushes an unsigned number as a signed one.
        0xcf | 0xd3 => stack.push_number(i64::from_be_bytes(take(rest)?) as f64),
        0xd0 => stack.push_number(i8::from_be_bytes(take(rest)?).into()),
        0xd1 => stack.push_number(i16::from_be_bytes(take(rest)?).into()),
        0xd2 => stack.push_number(i32::from_be_bytes(take(rest)?).into()),
        0xca => stack.push_number(f32::from_be_bytes(take(rest)?).into()),
        0xcb => stack.push_number(f64::from_be_bytes(take(rest)?)),
        0xa0..=0xbf | 0xd9..=0xdb => {
            let len = match code {
                0xd9 => u8::from_be_bytes(take(rest)?).into(),
                0xda => u16::from_be_bytes(take(rest)?).into(),
                0xdb => u32::from_be_bytes(take(rest)?) as usize,
                _ => usize::from(code & 0x1f),
            };
            let (text, after) = rest.split_at_checked(len).ok_or_else(missing)?;
            stack.push_bytes(text);
            *rest = after;
        }
        0x80..=0x9f | 0xdc..=0xdf => {
            let left = match code {
                0xdc | 0xde => u16::from_be_bytes(take(rest)?).into(),
                0xdd | 0xdf => u32::from_be_bytes(take(rest)?) as usize,
                _ => usize::from(code & 0xf),
            };
            let is_array = matches!(code, 0x90..=0x9f | 0xdc | 0xdd);
            // Every element takes at least one byte, so a longer table is malformed.
            let room = left.min(rest.len());
            if is_array {
                stack.push_table(room, 0)
            } else {
                stack.push_table(0, room / 2)
            }
            return Ok(Begun::Table(Open { left, index: is_array.then_some(1), has_key: false }));
        }
        0xc1 | 0xc4..=0xc9 | 0xd4..=0xd8 => {
            return Err(Raise::Here("Bad data format in input.".to_owned()));
        }
    }
    Ok(Begun::Value)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Raise> {
    let (bytes, after) = rest.split_first_chunk::<N>().ok_or_else(missing)?;
    *rest = after;
    Ok(*bytes)
}

fn missing() -> Raise {
    Raise::Here("Missing bytes in input.".to_owned())
}
