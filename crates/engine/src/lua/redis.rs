//! The library `redis`: `call`, `pcall` and other functions for scripts.

use bytes::Bytes;
use sha1::{Digest, Sha1};

use super::convert::{Pushed, push_answer, push_error_table};
use super::host::Level;
use super::native::{Raise, native};
use super::numeric;
use super::stack::{Kind, Stack};
use crate::reply::{Protocol, Reply};

/// Pushes the library.
pub(super) fn push_library(stack: &mut Stack<'_>, version: &str) {
    let functions = [
        ("call", native!(call)),
        ("pcall", native!(pcall)),
        ("error_reply", native!(error_reply)),
        ("status_reply", native!(status_reply)),
        ("sha1hex", native!(sha1hex)),
        ("log", native!(log)),
        ("setresp", native!(setresp)),
        ("set_repl", native!(set_repl)),
        ("replicate_commands", native!(replicate_commands)),
        ("acl_check_cmd", native!(acl_check_cmd)),
        // There is no debugger.
        ("breakpoint", native!(breakpoint)),
        ("debug", native!(|_| Ok(0))),
    ];
    let numbers = [
        ("LOG_DEBUG", 0),
        ("LOG_VERBOSE", 1),
        ("LOG_NOTICE", 2),
        ("LOG_WARNING", 3),
        ("REPL_NONE", 0),
        ("REPL_AOF", 1),
        ("REPL_SLAVE", 2),
        ("REPL_REPLICA", 2),
        ("REPL_ALL", 3),
        ("REDIS_VERSION_NUM", version_number(version)),
    ];
    stack.push_table(0, 32);
    for (name, function) in functions {
        stack.push_function(function);
        stack.raw_set_field(-2, name);
    }
    for (name, number) in numbers {
        stack.push_number(number.into());
        stack.raw_set_field(-2, name);
    }
    stack.push_bytes(version.as_bytes());
    stack.raw_set_field(-2, "REDIS_VERSION");
}

/// Encodes a version: `7.0.15` is `0x0007000f`.
fn version_number(version: &str) -> u32 {
    version.split('.').take(3).fold(0, |number, part| number << 8 | part.parse().unwrap_or(0))
}

fn call(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    match perform(stack)? {
        Pushed::Value => Ok(1),
        Pushed::Error => Err(Raise::Top),
    }
}

fn pcall(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    match perform(stack) {
        Ok(_) => Ok(1),
        // Errors of `pcall` itself become results too, but a stopped script stays stopped.
        Err(Raise::Reply(text)) if !stack.state().must_stop() => {
            stack.drop_args();
            push_error_table(stack, text.as_bytes());
            Ok(1)
        }
        Err(raise) => Err(raise),
    }
}

/// Runs the command given by the arguments and pushes its reply.
fn perform(stack: &mut Stack<'_>) -> Result<Pushed, Raise> {
    let state = stack.state();
    state.check_asked()?;
    let mut command = state.command.borrow_mut();
    command.clear();
    take_args(stack, &mut command)?;
    stack.drop_args();
    let mut reply = state.reply.borrow_mut();
    let answered = state.with_host(|host| {
        host.call(&command, &mut reply);
        state.note_write(host);
    });
    command.clear();
    if answered.is_none() {
        let text = "ERR redis.call/pcall can only be called inside a script invocation";
        return Err(Raise::Reply(text.to_owned()));
    }
    let pushed = push_answer(stack, reply.as_bytes());
    drop(reply.take());
    pushed
}

fn take_args(stack: &Stack<'_>, command: &mut Vec<Bytes>) -> Result<(), Raise> {
    if stack.args() == 0 {
        let text = "ERR Please specify at least one argument for this redis lib call";
        return Err(Raise::Reply(text.to_owned()));
    }
    for index in 1..=stack.args() as i32 {
        command.push(match stack.kind(index) {
            Kind::String => Bytes::copy_from_slice(stack.bytes(index).unwrap_or_default()),
            Kind::Number => {
                let mut text = Vec::with_capacity(24);
                numeric::append_general(&mut text, stack.number(index).unwrap_or_default(), 17);
                Bytes::from(text)
            }
            _ => {
                command.clear();
                let text = "ERR Lua redis lib command arguments must be strings or integers";
                return Err(Raise::Reply(text.to_owned()));
            }
        });
    }
    Ok(())
}

fn error_reply(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.args() != 1 || stack.kind(1) != Kind::String {
        push_error_table(stack, b"ERR wrong number or type of arguments");
        return Ok(1);
    }
    let text = stack.text(1)?;
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    push_error_table(stack, text.strip_prefix(b"-").unwrap_or(text));
    Ok(1)
}

fn status_reply(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.args() != 1 || stack.kind(1) != Kind::String {
        push_error_table(stack, b"ERR wrong number or type of arguments");
        return Ok(1);
    }
    stack.push_table(0, 1);
    stack.push_copy(1);
    stack.raw_set_field(-2, "ok");
    Ok(1)
}

fn sha1hex(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.args() != 1 {
        return Err(Raise::Reply("ERR wrong number of arguments".to_owned()));
    }
    // Redis hashes an empty text for a value that is neither a string nor a number.
    let text = stack.text(1).unwrap_or_default();
    stack.push_bytes(sha1_hex(text).as_bytes());
    Ok(1)
}

/// The SHA-1 of a text in lower-case hexadecimal.
pub(super) fn sha1_hex(text: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
    Sha1::digest(text).iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

fn log(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.args() < 2 {
        return Err(Raise::Reply("ERR redis.log() requires two arguments or more.".to_owned()));
    }
    let Some(level) = stack.number(1) else {
        return Err(Raise::Reply("ERR First argument must be a number (log level).".to_owned()));
    };
    let level = match numeric::to_i32(level) {
        0 => Level::Debug,
        1 => Level::Verbose,
        2 => Level::Notice,
        3 => Level::Warning,
        _ => return Err(Raise::Reply("ERR Invalid debug level.".to_owned())),
    };
    let mut words: Vec<&[u8]> = Vec::new();
    for index in 2..=stack.args() {
        words.extend(stack.text(index));
    }
    let line = words.join(&b' ');
    stack.state().with_host(|host| host.log(level, &line));
    Ok(0)
}

fn setresp(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.args() != 1 {
        return Err(Raise::Reply("ERR redis.setresp() requires one argument.".to_owned()));
    }
    let protocol = match stack.number(1).map(numeric::to_i32) {
        Some(2) => Protocol::Resp2,
        Some(3) => Protocol::Resp3,
        _ => return Err(Raise::Reply("ERR RESP version must be 2 or 3.".to_owned())),
    };
    stack.state().protocol.set(protocol);
    stack.state().reply.replace(Reply::new(protocol));
    Ok(0)
}

/// Effects are always recorded, so this only checks its argument.
fn set_repl(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.args() != 1 {
        return Err(Raise::Reply("ERR redis.set_repl() requires two arguments.".to_owned()));
    }
    if numeric::to_i32(stack.number(1).unwrap_or_default()) & !3 != 0 {
        let text =
            "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Err(Raise::Reply(text.to_owned()));
    }
    Ok(0)
}

fn replicate_commands(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    stack.push_bool(true);
    Ok(1)
}

fn breakpoint(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    stack.push_bool(false);
    Ok(1)
}

fn acl_check_cmd(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let mut command = Vec::new();
    take_args(stack, &mut command)?;
    let known = stack.state().with_host(|host| host.knows(&command[0])).unwrap_or(false);
    if !known {
        let text = "ERR Invalid command passed to redis.acl_check_cmd()";
        return Err(Raise::Reply(text.to_owned()));
    }
    stack.push_bool(true);
    Ok(1)
}
