//! Conversion between RESP and Lua values, exactly as in Redis 7.0.
//!
//! ```text
//!   a command's reply  ──push_answer──▶  Lua value         (RESP bytes are parsed)
//!   a script's result  ──answer───────▶  the client's reply
//!   a script's error   ──failure──────▶  the client's reply
//! ```

use super::native::Raise;
use super::numeric;
use super::stack::{Kind, Stack};
use crate::reply::{Protocol, Reply};

/// The kind of value pushed, at the outermost level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    Value,
    /// A table with the field `err`.
    Error,
}

/// Pushes a command's reply as a Lua value.
pub(super) fn push_answer(stack: &mut Stack<'_>, bytes: &[u8]) -> Result<Pushed, Raise> {
    let mut rest = bytes;
    let kind = bytes.first().copied();
    push_next(stack, &mut rest)?;
    Ok(if kind == Some(b'-') { Pushed::Error } else { Pushed::Value })
}

fn push_next(stack: &mut Stack<'_>, rest: &mut &[u8]) -> Result<(), Raise> {
    if !stack.ensure(4) {
        return Err(Raise::Reply("ERR reached lua stack limit".to_owned()));
    }
    let line = take_line(rest)?;
    let (kind, text) = line.split_first().ok_or_else(malformed)?;
    match kind {
        b'$' | b'=' => match integer(text)? {
            len if len < 0 => stack.push_bool(false),
            len => {
                let value = take_bulk(rest, len as usize)?;
                match (kind, value.split_at_checked(4)) {
                    (b'=', Some((format, value))) => push_verbatim(stack, format, value),
                    _ => stack.push_bytes(value),
                }
            }
        },
        b':' => stack.push_number(integer(text)? as f64),
        b'+' => push_field(stack, "ok", |stack| stack.push_bytes(text)),
        b'-' => {
            push_error_table(stack, text);
            stack.push_bool(true);
            stack.raw_set_field(-2, "ignore_error_stats_update");
        }
        b'*' | b'>' => match integer(text)? {
            len if len < 0 => stack.push_bool(false),
            len => push_array(stack, rest, len as usize)?,
        },
        b'%' => push_map(stack, rest, integer(text)? as usize)?,
        b'~' => push_set(stack, rest, integer(text)? as usize)?,
        b'_' => stack.push_nil(),
        b'#' => stack.push_bool(text == b"t"),
        b',' => {
            let value = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            let value: f64 = value.ok_or_else(malformed)?;
            push_field(stack, "double", |stack| stack.push_number(value));
        }
        b'(' => push_field(stack, "big_number", |stack| stack.push_bytes(text)),
        _ => return Err(malformed()),
    }
    Ok(())
}

fn push_array(stack: &mut Stack<'_>, rest: &mut &[u8], len: usize) -> Result<(), Raise> {
    stack.push_table(len, 0);
    for n in 1..=len {
        push_next(stack, rest)?;
        stack.raw_set_at(-2, n);
    }
    Ok(())
}

fn push_map(stack: &mut Stack<'_>, rest: &mut &[u8], pairs: usize) -> Result<(), Raise> {
    stack.push_table(0, 1);
    stack.push_table(0, pairs);
    for _ in 0..pairs {
        push_next(stack, rest)?;
        push_next(stack, rest)?;
        stack.raw_set(-3)?;
    }
    stack.raw_set_field(-2, "map");
    Ok(())
}

fn push_set(stack: &mut Stack<'_>, rest: &mut &[u8], len: usize) -> Result<(), Raise> {
    stack.push_table(0, 1);
    stack.push_table(0, len);
    for _ in 0..len {
        push_next(stack, rest)?;
        stack.push_bool(true);
        stack.raw_set(-3)?;
    }
    stack.raw_set_field(-2, "set");
    Ok(())
}

fn push_verbatim(stack: &mut Stack<'_>, format: &[u8], value: &[u8]) {
    push_field(stack, "verbatim_string", |stack| {
        stack.push_table(0, 2);
        stack.push_bytes(value);
        stack.raw_set_field(-2, "string");
        stack.push_bytes(format.strip_suffix(b":").unwrap_or(format));
        stack.raw_set_field(-2, "format");
    });
}

fn push_field(stack: &mut Stack<'_>, name: &str, push: impl FnOnce(&mut Stack<'_>)) {
    stack.push_table(0, 1);
    push(stack);
    stack.raw_set_field(-2, name);
}

/// Pushes an error table; a text without an error code gets `ERR`.
pub(super) fn push_error_table(stack: &mut Stack<'_>, text: &[u8]) {
    let newline = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let trim = |text: &[u8]| {
        let start = text.iter().position(|byte| !newline(byte)).unwrap_or(text.len());
        let end = text.iter().rposition(|byte| !newline(byte)).map_or(start, |last| last + 1);
        text[start..end].to_vec()
    };
    let text = match text.iter().position(|byte| *byte == b' ') {
        Some(space) => [&text[..=space], &trim(&text[space + 1..])].concat(),
        None => [b"ERR ", &trim(text)[..]].concat(),
    };
    push_field(stack, "err", |stack| stack.push_bytes(&text));
}

fn take_line<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], Raise> {
    let end = rest.iter().position(|byte| *byte == b'\r').ok_or_else(malformed)?;
    let line = &rest[..end];
    *rest = rest.get(end + 2..).ok_or_else(malformed)?;
    Ok(line)
}

fn take_bulk<'b>(rest: &mut &'b [u8], len: usize) -> Result<&'b [u8], Raise> {
    let value = rest.get(..len).ok_or_else(malformed)?;
    *rest = rest.get(len + 2..).ok_or_else(malformed)?;
    Ok(value)
}

fn integer(text: &[u8]) -> Result<i64, Raise> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(malformed)
}

/// A malformed reply: a bug of the host, not of the script.
fn malformed() -> Raise {
    Raise::Reply("ERR the server's own answer is malformed".to_owned())
}

/// A table that is being written.
enum Open {
    /// The next index, and the length.
    Array { next: usize, len: usize },
    /// A map or a set; its last key is on top of the stack.
    Pairs { with_values: bool, value_next: bool },
}

/// Writes a script's result, the topmost value, as the client's reply.
///
/// Nesting is kept on the Lua stack and in a vector. So a table that contains itself reaches Lua's
/// limit and yields an error, instead of overflowing the Rust stack.
pub(super) fn answer(stack: &mut Stack<'_>, inner: Protocol, reply: &mut Reply) {
    let mut open: Vec<Open> = Vec::new();
    stack.own_top();
    loop {
        write_value(stack, inner, &mut open, reply);
        // Continue with the open tables: push the next value to write, or close the table.
        loop {
            let Some(top) = open.last_mut() else { return };
            match top {
                Open::Array { next, len } if *next < *len => {
                    *next += 1;
                    let n = *next;
                    stack.raw_get_at(-1, n);
                    break;
                }
                Open::Array { .. } => stack.pop(1),
                Open::Pairs { value_next, .. } if *value_next => {
                    // The value is already on top, above its key.
                    *value_next = false;
                    break;
                }
                Open::Pairs { with_values, value_next } => {
                    if stack.next(-2) {
                        if *with_values {
                            *value_next = true;
                        } else {
                            stack.pop(1);
                        }
                        stack.push_copy(if *with_values { -2 } else { -1 });
                        break;
                    }
                    // The inner table and its container.
                    stack.pop(2);
                }
            }
            open.pop();
        }
    }
}

/// Writes and pops the topmost value, or opens it if it is a table.
fn write_value(stack: &mut Stack<'_>, inner: Protocol, open: &mut Vec<Open>, reply: &mut Reply) {
    if !stack.ensure(4) {
        reply.error("ERR reached lua stack limit");
        stack.pop(1);
        return;
    }
    match stack.kind(-1) {
        Kind::String => reply.bulk(stack.bytes(-1).unwrap_or_default()),
        Kind::Number => reply.int(numeric::to_i64(stack.number(-1).unwrap_or_default())),
        Kind::Boolean => match (stack.truth(-1), inner) {
            (truth, Protocol::Resp3) => reply.boolean(truth),
            (true, Protocol::Resp2) => reply.int(1),
            (false, Protocol::Resp2) => reply.nil(),
        },
        Kind::Table => return write_table(stack, open, reply),
        _ => reply.nil(),
    }
    stack.pop(1);
}

fn write_table(stack: &mut Stack<'_>, open: &mut Vec<Open>, reply: &mut Reply) {
    for field in ["err", "ok", "double", "big_number", "verbatim_string", "map", "set"] {
        stack.raw_get_field(-1, field);
        match (field, stack.kind(-1)) {
            ("err", Kind::String) => reply.error_bytes(trim_end(until_nul(stack.bytes(-1)))),
            ("ok", Kind::String) => {
                let text = String::from_utf8_lossy(until_nul(stack.bytes(-1)));
                reply.status(&text.replace(['\r', '\n'], " "));
            }
            ("double", Kind::Number) => {
                reply.double(stack.number(-1).unwrap_or_default());
            }
            ("big_number", Kind::String) => {
                let plain = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
                let text: Vec<u8> = stack.bytes(-1).unwrap_or_default().iter().map(plain).collect();
                reply.big_number(&text);
            }
            ("verbatim_string", Kind::Table) if write_verbatim(stack, reply) => {}
            ("map" | "set", Kind::Table) => {
                let len = count_pairs(stack);
                if field == "map" {
                    reply.map(len)
                } else {
                    reply.set(len)
                }
                stack.push_nil();
                open.push(Open::Pairs { with_values: field == "map", value_next: false });
                return;
            }
            _ => {
                stack.pop(1);
                continue;
            }
        }
        stack.pop(2);
        return;
    }
    let len = count_items(stack);
    reply.array(len);
    open.push(Open::Array { next: 0, len });
}

fn write_verbatim(stack: &mut Stack<'_>, reply: &mut Reply) -> bool {
    stack.raw_get_field(-1, "format");
    stack.raw_get_field(-2, "string");
    let complete = stack.kind(-2) == Kind::String && stack.kind(-1) == Kind::String;
    if complete {
        let format = until_nul(stack.bytes(-2)).to_vec();
        reply.verbatim_as(&format, stack.bytes(-1).unwrap_or_default());
    }
    stack.pop(2);
    complete
}

/// The number of values of the array on top before its first nil.
fn count_items(stack: &mut Stack<'_>) -> usize {
    let mut len = 0;
    loop {
        stack.raw_get_at(-1, len + 1);
        let ended = stack.kind(-1) == Kind::Nil;
        stack.pop(1);
        if ended {
            return len;
        }
        len += 1;
    }
}

fn count_pairs(stack: &mut Stack<'_>) -> usize {
    let mut len = 0;
    stack.push_nil();
    while stack.next(-2) {
        stack.pop(1);
        len += 1;
    }
    len
}

/// Writes a script's error, the topmost value, as the client's reply.
pub(super) fn failure(stack: &mut Stack<'_>, sha: &str, reply: &mut Reply) {
    if stack.kind(-1) != Kind::Table {
        let message = stack.bytes(-1).unwrap_or(b"execution failure");
        return reply
            .error_bytes(&[b"ERR Error running script ", sha.as_bytes(), b", ", message].concat());
    }
    let field = |stack: &mut Stack<'_>, name| {
        stack.raw_get_field(-1, name);
        let value = match stack.kind(-1) {
            Kind::Number => {
                let mut text = Vec::new();
                numeric::append_general(&mut text, stack.number(-1).unwrap_or_default(), 14);
                Some(text)
            }
            _ => stack.bytes(-1).map(|text| until_nul(Some(text)).to_vec()),
        };
        stack.pop(1);
        value
    };
    // Redis 7.0 crashes without this field.
    let mut text = field(stack, "err").unwrap_or_else(|| b"ERR unknown error".to_vec());
    if let (Some(source), Some(line)) = (field(stack, "source"), field(stack, "line")) {
        text.extend_from_slice(format!(" script: {sha}, on ").as_bytes());
        text.extend_from_slice(&[&source, &b":"[..], &line, b"."].concat());
    }
    reply.error_bytes(trim_end(&text));
}

/// The text up to its first zero byte, as C strings end there.
fn until_nul(text: Option<&[u8]>) -> &[u8] {
    let text = text.unwrap_or_default();
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Removes line breaks at the end of an error; others become spaces elsewhere.
fn trim_end(text: &[u8]) -> &[u8] {
    let end =
        text.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
    &text[..end]
}
