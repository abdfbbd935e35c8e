//! The functions of `string` that differ from stock Lua: those with patterns, and `rep`.
//!
//! `gsub` calls functions of the script in between, so its loop is a C function without
//! destructors, and every step of it is a native function.

use std::ffi::c_int;

use memchr::memmem;
use mlua_sys as ffi;

use super::native::{Raise, enter, native};
use super::numeric;
use super::pattern::Matcher;
use super::stack::{Kind, Stack};

/// The special characters of patterns.
const SPECIALS: &[u8] = b"^$*+?.([%-";

/// `string.rep(text, count)`.
pub(super) fn repeat(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let text = stack.text(1)?;
    let count = i64::from(stack.check_integer(2)? as i32).max(0) as usize;
    if text.len().saturating_mul(count) > stack.state().memory.budget() {
        return Err(Raise::Plain("not enough memory".to_owned()));
    }
    stack.push_bytes(&text.repeat(count));
    Ok(1)
}

/// `string.find(text, pattern [, from [, plain]])`.
pub(super) fn find(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let (text, pattern) = (stack.text(1)?, stack.text(2)?);
    let from = start(stack, text)?;
    let until_nul = pattern.split(|byte| *byte == 0).next().unwrap_or_default();
    if stack.truth(4) || !until_nul.iter().any(|byte| SPECIALS.contains(byte)) {
        return Ok(match memmem::find(&text[from..], pattern) {
            Some(at) => {
                stack.push_number((from + at) as f64 + 1.0);
                stack.push_number((from + at + pattern.len()) as f64);
                2
            }
            None => {
                stack.push_nil();
                1
            }
        });
    }
    let mut matcher = Matcher::new(stack.state(), text, pattern);
    match search(&mut matcher, from)? {
        Some((from, to)) => {
            stack.push_number(from as f64 + 1.0);
            stack.push_number(to as f64);
            Ok(2 + if matcher.level > 0 { matcher.push_captures(stack, from, to)? } else { 0 })
        }
        None => {
            stack.push_nil();
            Ok(1)
        }
    }
}

/// `string.match(text, pattern [, from])`.
pub(super) fn find_captures(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let (text, pattern) = (stack.text(1)?, stack.text(2)?);
    let from = start(stack, text)?;
    let mut matcher = Matcher::new(stack.state(), text, pattern);
    match search(&mut matcher, from)? {
        Some((from, to)) => matcher.push_captures(stack, from, to),
        None => {
            stack.push_nil();
            Ok(1)
        }
    }
}

/// Argument 3, the start position, as an offset; a negative position counts from the end.
fn start(stack: &Stack<'_>, text: &[u8]) -> Result<usize, Raise> {
    let from = stack.optional_integer(3, 1)?;
    let from = if from < 0 { (from + text.len() as i64 + 1).max(0) } else { from };
    Ok((from.max(1) as usize - 1).min(text.len()))
}

/// The first match from an offset on.
fn search(matcher: &mut Matcher<'_>, from: usize) -> Result<Option<(usize, usize)>, Raise> {
    let anchored = matcher.take_anchor();
    for at in from..=matcher.source.len() {
        if let Some(to) = matcher.run(at)? {
            return Ok(Some((at, to)));
        }
        if anchored {
            break;
        }
    }
    Ok(None)
}

/// `string.gmatch(text, pattern)`: a closure over both and the current offset.
pub(super) fn gmatch(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    stack.text(1)?;
    stack.text(2)?;
    stack.push_copy(1);
    stack.push_copy(2);
    stack.push_number(0.0);
    stack.push_closure(native!(next_match), 3);
    Ok(1)
}

fn next_match(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let (text, pattern) = (stack.upvalue_text(1), stack.upvalue_text(2));
    let from = stack.upvalue_number(3) as usize;
    let mut matcher = Matcher::new(stack.state(), text, pattern);
    for at in from..=text.len() {
        if let Some(to) = matcher.run(at)? {
            stack.set_upvalue_number(3, if to == at { to + 1 } else { to } as f64);
            return matcher.push_captures(stack, at, to);
        }
    }
    Ok(0)
}

/// The progress of a `gsub`. It lives in a frame that errors jump over, so it owns nothing.
#[derive(Debug, Clone, Copy)]
struct Progress {
    /// The offset of the next character.
    at: usize,
    /// The end of the text that is already in the pieces.
    copied: usize,
    matches: i32,
    most: i32,
    pieces: usize,
    /// The start of the last match.
    from: usize,
    to: usize,
    done: bool,
}

/// The stack index of the table of pieces in `gsub`.
const PIECES: c_int = 4;

/// `string.gsub(text, pattern, replacement [, most])`.
///
/// # Safety
/// Only for Lua.
#[allow(unsafe_code)]
pub(super) unsafe extern "C-unwind" fn gsub(lua: *mut ffi::lua_State) -> c_int {
    let mut progress =
        Progress { at: 0, copied: 0, matches: 0, most: 0, pieces: 0, from: 0, to: 0, done: false };
    // SAFETY: Rust code runs inside `enter` and is done when `enter` returns or raises; this frame
    // owns nothing. The stack holds text, pattern, replacement and pieces, then the captures, which
    // the replacement value takes the place of.
    unsafe {
        enter(lua, |stack| begin_gsub(stack, &mut progress));
        ffi::lua_replace(lua, PIECES);
        ffi::lua_settop(lua, PIECES);
        while !progress.done {
            let captures = enter(lua, |stack| next_replaced(stack, &mut progress));
            if captures > 0 {
                if ffi::lua_type(lua, 3) == ffi::LUA_TFUNCTION {
                    ffi::lua_pushvalue(lua, 3);
                    ffi::lua_insert(lua, PIECES + 1);
                    ffi::lua_call(lua, captures, 1);
                } else {
                    ffi::lua_settop(lua, PIECES + 1);
                    ffi::lua_gettable_(lua, 3);
                }
                enter(lua, |stack| add_replacement(stack, &mut progress));
            }
            ffi::lua_settop(lua, PIECES);
        }
        enter(lua, |stack| end_gsub(stack, &progress))
    }
}

/// Checks the arguments and pushes the table of pieces.
fn begin_gsub(stack: &mut Stack<'_>, progress: &mut Progress) -> Result<usize, Raise> {
    let text = stack.text(1)?;
    stack.text(2)?;
    progress.most = stack.optional_integer(4, text.len() as i64 + 1)? as i32;
    progress.done = progress.most <= 0;
    if !matches!(stack.kind(3), Kind::Number | Kind::String | Kind::Function | Kind::Table) {
        return Err(Raise::Argument(3, "string/function/table expected".to_owned()));
    }
    // The table takes the slot of the fourth argument, which may be missing.
    while stack.top() < PIECES as usize {
        stack.push_nil();
    }
    stack.push_table(0, 0);
    Ok(1)
}

/// Finds the next match. A text replacement is completed here for all matches. For a function or a
/// table, pushes the captures of one match and adds the text before it to the pieces.
fn next_replaced(stack: &mut Stack<'_>, progress: &mut Progress) -> Result<usize, Raise> {
    let (text, pattern) = (stack.text(1)?, stack.text(2)?);
    let is_text = matches!(stack.kind(3), Kind::Number | Kind::String);
    let replacement = if is_text { stack.text(3)? } else { b"" };
    let limit = stack.state().memory.budget();
    let mut matcher = Matcher::new(stack.state(), text, pattern);
    let anchored = matcher.take_anchor();
    let mut out = Vec::new();
    while progress.matches < progress.most {
        let found = matcher.run(progress.at)?;
        if let Some(to) = found {
            progress.matches += 1;
            (progress.from, progress.to) = (progress.at, to);
            out.extend_from_slice(&text[progress.copied..progress.at]);
            progress.copied = to;
        }
        match found {
            Some(to) if to > progress.at => progress.at = to,
            _ if progress.at < text.len() => progress.at += 1,
            _ => progress.done = true,
        }
        progress.done |= anchored || progress.matches >= progress.most;
        if found.is_some() {
            if !is_text {
                add_piece(stack, progress, &out);
                return matcher.push_captures(stack, progress.from, progress.to);
            }
            append_replacement(
                stack,
                &matcher,
                replacement,
                (progress.from, progress.to),
                &mut out,
            )?;
            if out.len() > limit {
                return Err(Raise::Plain("not enough memory".to_owned()));
            }
        }
        if progress.done {
            break;
        }
    }
    progress.done = true;
    add_piece(stack, progress, &out);
    Ok(0)
}

fn append_replacement(
    stack: &mut Stack<'_>,
    matcher: &Matcher<'_>,
    replacement: &[u8],
    (from, to): (usize, usize),
    out: &mut Vec<u8>,
) -> Result<(), Raise> {
    let mut bytes = replacement.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match bytes.next().copied().unwrap_or(0) {
            b'0' => out.extend_from_slice(&matcher.source[from..to]),
            digit @ b'1'..=b'9' => {
                matcher.push_capture(stack, usize::from(digit - b'1'), from, to)?;
                match stack.number(-1).filter(|_| stack.kind(-1) == Kind::Number) {
                    Some(position) => numeric::append_general(out, position, 14),
                    None => out.extend_from_slice(stack.bytes(-1).unwrap_or_default()),
                }
                stack.pop(1);
            }
            other => out.push(other),
        }
    }
    Ok(())
}

/// Takes the replacement that the function or table gave for the last match, which is on top.
fn add_replacement(stack: &mut Stack<'_>, progress: &mut Progress) -> Result<usize, Raise> {
    let text = stack.text(1)?;
    let top = stack.args();
    match stack.kind(-1) {
        Kind::Nil => add_piece(stack, progress, &text[progress.from..progress.to]),
        Kind::Boolean if !stack.truth(-1) => {
            add_piece(stack, progress, &text[progress.from..progress.to])
        }
        Kind::String | Kind::Number => {
            let value = stack.text(top)?;
            add_piece(stack, progress, value);
        }
        kind => return Err(Raise::Here(format!("invalid replacement value (a {})", kind.name()))),
    }
    Ok(0)
}

fn add_piece(stack: &mut Stack<'_>, progress: &mut Progress, piece: &[u8]) {
    if !piece.is_empty() {
        progress.pieces += 1;
        stack.push_bytes(piece);
        stack.raw_set_at(PIECES, progress.pieces);
    }
}

/// Joins the pieces and the text after the last match.
fn end_gsub(stack: &mut Stack<'_>, progress: &Progress) -> Result<usize, Raise> {
    let text = stack.text(1)?;
    let limit = stack.state().memory.budget();
    let mut out = Vec::new();
    for n in 1..=progress.pieces {
        stack.raw_get_at(PIECES, n);
        out.extend_from_slice(stack.bytes(-1).unwrap_or_default());
        stack.pop(1);
        if out.len() > limit {
            return Err(Raise::Plain("not enough memory".to_owned()));
        }
    }
    out.extend_from_slice(&text[progress.copied..]);
    stack.push_bytes(&out);
    stack.push_number(progress.matches.into());
    Ok(2)
}
