//! The library `cjson`: its settings and `cjson.encode`. `json_decode.rs` has `cjson.decode`.
//!
//! The output is that of lua-cjson 2.1 in Redis: numbers as `%.14g`, slashes escaped, an empty
//! table as `{}`, and a table as an array if all its keys are positive integers and not too sparse.

use super::json_decode::decode;
use super::native::{Raise, native};
use super::numeric;
use super::stack::{Kind, Stack};

/// The maximum nesting depth, whatever a script configures: the Rust stack is finite.
pub(super) const MAX_DEPTH: usize = 1000;

/// The settings; as in Redis, they persist until the VM is flushed.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonConfig {
    convert_sparse: bool,
    sparse_ratio: i32,
    sparse_safe: i32,
    encode_depth: i32,
    pub(super) decode_depth: i32,
    precision: i32,
    keep_buffer: bool,
    encode_invalid: InvalidNumbers,
    pub(super) decode_invalid: bool,
}

/// How to handle numbers that JSON does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InvalidNumbers {
    Refuse,
    Write,
    Null,
}

impl Default for JsonConfig {
    fn default() -> Self {
        Self {
            convert_sparse: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth: 1000,
            decode_depth: 1000,
            precision: 14,
            keep_buffer: true,
            encode_invalid: InvalidNumbers::Refuse,
            decode_invalid: true,
        }
    }
}

/// Pushes the library.
pub(super) fn push_library(stack: &mut Stack<'_>) {
    let functions = [
        ("encode", native!(encode)),
        ("decode", native!(decode)),
        ("encode_sparse_array", native!(encode_sparse_array)),
        ("encode_max_depth", native!(encode_max_depth)),
        ("decode_max_depth", native!(decode_max_depth)),
        ("encode_number_precision", native!(encode_number_precision)),
        ("encode_keep_buffer", native!(encode_keep_buffer)),
        ("encode_invalid_numbers", native!(encode_invalid_numbers)),
        ("decode_invalid_numbers", native!(decode_invalid_numbers)),
        ("new", native!(new)),
    ];
    stack.push_table(0, functions.len() + 3);
    for (name, function) in functions {
        stack.push_function(function);
        stack.raw_set_field(-2, name);
    }
    stack.push_null_pointer();
    stack.raw_set_field(-2, "null");
    stack.push_bytes(b"cjson");
    stack.raw_set_field(-2, "_NAME");
    stack.push_bytes(b"2.1.0");
    stack.raw_set_field(-2, "_VERSION");
}

/// `cjson.new()`: another copy of the library, with shared settings.
fn new(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    push_library(stack);
    Ok(1)
}

/// `cjson.encode(value)`.
fn encode(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.args() != 1 {
        return Err(Raise::Argument(1, "expected 1 argument".to_owned()));
    }
    let state = stack.state();
    let mut out = state.scratch.borrow_mut();
    out.clear();
    let encoder = Encoder { config: state.json.get(), limit: state.memory.budget() };
    stack.push_copy(1);
    encoder.append(stack, 0, &mut out)?;
    stack.pop(1);
    stack.push_bytes(&out);
    if out.capacity() > 1 << 20 {
        *out = Vec::new();
    }
    Ok(1)
}

struct Encoder {
    config: JsonConfig,
    /// The maximum size of the text: tables that share parts can be exponentially large.
    limit: usize,
}

impl Encoder {
    /// Appends the topmost value.
    fn append(&self, stack: &mut Stack<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), Raise> {
        if out.len() > self.limit {
            return Err(Raise::Plain("not enough memory".to_owned()));
        }
        stack.state().step()?;
        match stack.kind(-1) {
            Kind::String => append_string(stack.bytes(-1).unwrap_or_default(), out),
            Kind::Number => self.append_number(stack.number(-1).unwrap_or_default(), out)?,
            Kind::Boolean => {
                out.extend_from_slice(if stack.truth(-1) { b"true" } else { b"false" });
            }
            Kind::Nil => out.extend_from_slice(b"null"),
            Kind::LightUserdata if stack.is_null_pointer(-1) => out.extend_from_slice(b"null"),
            Kind::Table => self.append_table(stack, depth + 1, out)?,
            kind => return Err(cannot(kind, "type not supported")),
        }
        Ok(())
    }

    fn append_table(
        &self,
        stack: &mut Stack<'_>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Raise> {
        let deepest = MAX_DEPTH.min(self.config.encode_depth.max(0) as usize);
        if depth > deepest || !stack.ensure(3) {
            return Err(Raise::Here(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        match self.array_len(stack)? {
            Some(len) => {
                out.push(b'[');
                for n in 1..=len {
                    if n > 1 {
                        out.push(b',');
                    }
                    stack.raw_get_at(-1, n);
                    self.append(stack, depth, out)?;
                    stack.pop(1);
                }
                out.push(b']');
            }
            None => self.append_object(stack, depth, out)?,
        }
        Ok(())
    }

    fn append_object(
        &self,
        stack: &mut Stack<'_>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Raise> {
        out.push(b'{');
        let start = out.len();
        stack.push_nil();
        while stack.next(-2) {
            if out.len() > start {
                out.push(b',');
            }
            match stack.kind(-2) {
                Kind::Number => {
                    out.push(b'"');
                    self.append_number(stack.number(-2).unwrap_or_default(), out)?;
                    out.push(b'"');
                }
                Kind::String => append_string(stack.bytes(-2).unwrap_or_default(), out),
                kind => return Err(cannot(kind, "table key must be a number or string")),
            }
            out.push(b':');
            self.append(stack, depth, out)?;
            stack.pop(1);
        }
        out.push(b'}');
        Ok(())
    }

    /// The length of the topmost table if it is an array; an empty table is not.
    fn array_len(&self, stack: &mut Stack<'_>) -> Result<Option<usize>, Raise> {
        let (mut max, mut items) = (0_i64, 0_i64);
        stack.push_nil();
        while stack.next(-2) {
            stack.pop(1);
            match (stack.kind(-1), stack.number(-1)) {
                (Kind::Number, Some(key)) if key >= 1.0 && key.floor() == key => {
                    max = max.max(i64::from(key.min(f64::from(i32::MAX)) as i32));
                    items += 1;
                }
                _ => {
                    stack.pop(1);
                    return Ok(None);
                }
            }
        }
        let ratio = i64::from(self.config.sparse_ratio);
        if ratio > 0 && max > items * ratio && max > i64::from(self.config.sparse_safe) {
            if !self.config.convert_sparse {
                return Err(cannot(Kind::Table, "excessively sparse array"));
            }
            return Ok(None);
        }
        Ok((max > 0).then_some(max as usize))
    }

    fn append_number(&self, value: f64, out: &mut Vec<u8>) -> Result<(), Raise> {
        match self.config.encode_invalid {
            _ if value.is_finite() => {}
            InvalidNumbers::Refuse => return Err(cannot(Kind::Number, "must not be NaN or Inf")),
            InvalidNumbers::Null => {
                out.extend_from_slice(b"null");
                return Ok(());
            }
            InvalidNumbers::Write if value.is_nan() => {
                out.extend_from_slice(b"nan");
                return Ok(());
            }
            InvalidNumbers::Write => {}
        }
        numeric::append_general(out, value, self.config.precision as usize);
        Ok(())
    }
}

fn cannot(kind: Kind, reason: &str) -> Raise {
    Raise::Here(format!("Cannot serialise {}: {reason}", kind.name()))
}

fn append_string(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut plain = 0;
    for (at, byte) in text.iter().enumerate() {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'/' => b'/',
            0x08 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            0x0c => b'f',
            b'\r' => b'r',
            0..0x20 | 0x7f => 0,
            _ => continue,
        };
        out.extend_from_slice(&text[plain..at]);
        plain = at + 1;
        if short == 0 {
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
        } else {
            out.extend_from_slice(&[b'\\', short]);
        }
    }
    out.extend_from_slice(&text[plain..]);
    out.push(b'"');
}

/// Runs a function that changes settings and has at most `args` arguments.
fn configure(
    stack: &mut Stack<'_>,
    args: usize,
    change: impl FnOnce(&mut Stack<'_>, &mut JsonConfig) -> Result<(), Raise>,
) -> Result<usize, Raise> {
    if stack.args() > args {
        return Err(Raise::Argument(args + 1, "found too many arguments".to_owned()));
    }
    let mut config = stack.state().json.get();
    change(stack, &mut config)?;
    stack.state().json.set(config);
    Ok(args)
}

fn integer(
    stack: &mut Stack<'_>,
    at: usize,
    value: &mut i32,
    min: i32,
    max: i32,
) -> Result<(), Raise> {
    if !matches!(stack.kind(at as i32), Kind::None | Kind::Nil) {
        let wanted = stack.check_integer(at)? as i32;
        if !(min..=max).contains(&wanted) {
            let text = format!("expected integer between {min} and {max}");
            return Err(Raise::Argument(1, text));
        }
        *value = wanted;
    }
    stack.push_number((*value).into());
    Ok(())
}

/// An option by name or as a boolean, where `true` is the second name. Leaves the choice on top.
fn choice(stack: &mut Stack<'_>, at: usize, names: &[&str], chosen: usize) -> Result<usize, Raise> {
    let chosen = match stack.kind(at as i32) {
        Kind::None | Kind::Nil => chosen,
        Kind::Boolean => usize::from(stack.truth(at as i32)),
        _ => {
            let text = stack.text(at)?;
            let found = names.iter().position(|name| name.as_bytes() == text);
            found.ok_or_else(|| {
                let text = String::from_utf8_lossy(text);
                Raise::Argument(at, format!("invalid option '{text}'"))
            })?
        }
    };
    match chosen {
        0 => stack.push_bool(false),
        1 => stack.push_bool(true),
        other => stack.push_bytes(names[other].as_bytes()),
    }
    Ok(chosen)
}

fn switch(stack: &mut Stack<'_>, at: usize, value: &mut bool) -> Result<(), Raise> {
    *value = choice(stack, at, &["off", "on"], usize::from(*value))? == 1;
    Ok(())
}

fn encode_sparse_array(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    configure(stack, 3, |stack, config| {
        switch(stack, 1, &mut config.convert_sparse)?;
        integer(stack, 2, &mut config.sparse_ratio, 0, i32::MAX)?;
        integer(stack, 3, &mut config.sparse_safe, 0, i32::MAX)
    })
}

fn encode_max_depth(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    configure(stack, 1, |stack, config| integer(stack, 1, &mut config.encode_depth, 1, i32::MAX))
}

fn decode_max_depth(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    configure(stack, 1, |stack, config| integer(stack, 1, &mut config.decode_depth, 1, i32::MAX))
}

fn encode_number_precision(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    configure(stack, 1, |stack, config| integer(stack, 1, &mut config.precision, 1, 14))
}

fn encode_keep_buffer(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    configure(stack, 1, |stack, config| switch(stack, 1, &mut config.keep_buffer))
}

fn encode_invalid_numbers(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    configure(stack, 1, |stack, config| {
        let names = ["off", "on", "null"];
        config.encode_invalid = match choice(stack, 1, &names, config.encode_invalid as usize)? {
            0 => InvalidNumbers::Refuse,
            1 => InvalidNumbers::Write,
            _ => InvalidNumbers::Null,
        };
        Ok(())
    })
}

fn decode_invalid_numbers(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    configure(stack, 1, |stack, config| switch(stack, 1, &mut config.decode_invalid))
}
