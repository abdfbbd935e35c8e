//! `MONITOR`: shows every command to the clients that asked for it.
//!
//! Lines are collected while a command, transaction or script runs, and sent when it has ended. Passwords
//! are not shown, nor are commands that administrate the server, as in Redis.

use std::fmt::Write;

use bytes::{Bytes, BytesMut};

use super::event_loop::MAX_MESSAGE_BYTES;
use super::executor::Executor;
use super::loop_queue::{ClientId, LoopMessage, SendKind};
use super::session::ReplyMode;
use crate::command::Command;
use crate::error::{Error, Result};
use crate::reply::Reply;

/// The sender that lines show for commands of scripts.
pub(super) const SCRIPT: &str = "lua";

/// The clients that see all commands, and lines that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct Monitors {
    clients: Vec<ClientId>,
    lines: BytesMut,
}

impl Monitors {
    /// Whether nobody looks.
    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Adds the line of a command. `(db, now_us)` are the database and the clock.
    pub(super) fn note(&mut self, (db, now_us): (usize, i64), from: &str, args: &[Bytes]) {
        // More than a client may leave unread: the monitors will be disconnected.
        if self.is_empty() || self.lines.len() > MAX_MESSAGE_BYTES {
            return;
        }
        let (seconds, micros) = (now_us / 1_000_000, now_us % 1_000_000);
        let _ = write!(self.lines, "+{seconds}.{micros:06} [{db} {from}]");
        let hidden = hidden_args(args);
        for (index, arg) in args.iter().enumerate() {
            let shown: &[u8] = if hidden.contains(&index) { b"(redacted)" } else { arg };
            self.lines.extend_from_slice(b" \"");
            shown.iter().for_each(|byte| escape(*byte, &mut self.lines));
            self.lines.extend_from_slice(b"\"");
        }
        self.lines.extend_from_slice(b"\r\n");
    }
}

fn escape(byte: u8, line: &mut BytesMut) {
    match byte {
        b'\\' | b'"' => line.extend_from_slice(&[b'\\', byte]),
        b'\n' => line.extend_from_slice(b"\\n"),
        b'\r' => line.extend_from_slice(b"\\r"),
        b'\t' => line.extend_from_slice(b"\\t"),
        0x07 => line.extend_from_slice(b"\\a"),
        0x08 => line.extend_from_slice(b"\\b"),
        b' '..=b'~' => line.extend_from_slice(&[byte]),
        _ => {
            let _ = write!(line, "\\x{byte:02x}");
        }
    }
}

/// The arguments that are passwords: all of `AUTH`, and two after the word `AUTH` of `HELLO`.
fn hidden_args(args: &[Bytes]) -> std::ops::Range<usize> {
    let is = |index: usize, word: &[u8]| {
        args.get(index).is_some_and(|arg| arg.eq_ignore_ascii_case(word))
    };
    if is(0, b"auth") {
        return 1..args.len();
    }
    let word = (2..args.len()).find(|index| is(0, b"hello") && is(*index, b"auth"));
    word.map_or(0..0, |at| at + 1..at + 3)
}

/// Whether a command administrates the server, so that no monitor sees it.
pub(super) fn is_hidden(command: &Command, args: &[Bytes]) -> bool {
    let name = command.full_name(args);
    match command.name {
        "bgrewriteaof" | "config" | "debug" | "monitor" | "shutdown" | "slowlog" => true,
        "client" => {
            matches!(&*name, "client|kill" | "client|list" | "client|no-evict" | "client|unblock")
        }
        _ => false,
    }
}

impl Executor {
    /// `MONITOR`.
    pub(super) fn monitor(&mut self, client: ClientId, reply: &mut Reply) -> Result {
        if self.in_transaction() {
            return Err(Error::Fixed("ERR MONITOR isn't allowed for DENY BLOCKING client"));
        }
        let Some(session) = self.sessions.get_mut(&client) else { return Ok(()) };
        // As in Redis, a second `MONITOR` has no reply.
        if !std::mem::replace(&mut session.monitors, true) {
            self.monitors.clients.push(client);
            reply.ok();
        }
        Ok(())
    }

    /// Ends `MONITOR` of a client.
    pub(super) fn stop_monitoring(&mut self, client: ClientId) {
        if let Some(session) = self.sessions.get_mut(&client) {
            session.monitors = false;
        }
        self.monitors.clients.retain(|other| *other != client);
    }

    /// Shows a client's command to the monitors.
    pub(super) fn show_to_monitors(&mut self, client: ClientId, command: &Command, args: &[Bytes]) {
        if is_hidden(command, args) {
            return;
        }
        if let Some(session) = self.sessions.get(&client) {
            self.monitors.note((session.db, self.db.now_us()), &session.peer, args);
        }
    }

    /// Sends the lines of the last command to the monitors' loops.
    pub(super) fn post_to_monitors(&mut self) {
        if self.monitors.lines.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.monitors.lines).freeze();
        let seen = |client: &ClientId| {
            self.sessions.get(client).filter(|one| one.reply_mode == ReplyMode::On)
        };
        for session in self.monitors.clients.iter().filter_map(seen) {
            if bytes.len() > MAX_MESSAGE_BYTES {
                let client = session.id;
                tracing::warn!(client, "a monitor was disconnected: too many commands at once");
                self.request_close(session);
                continue;
            }
            let (to, depends_on) = (session.address.slot, self.message_depends_on());
            let bytes = bytes.clone();
            let message = LoopMessage::Send { to, bytes, depends_on, kind: SendKind::PubSub };
            session.address.loop_queue.push(message, self.lock_holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(args: &[&[u8]]) -> String {
        let mut monitors = Monitors { clients: vec![1], ..Monitors::default() };
        let args: Vec<Bytes> = args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
        monitors.note((3, 1_794_952_177_000_042), "127.0.0.1:5", &args);
        String::from_utf8_lossy(&monitors.lines).into_owned()
    }

    #[test]
    fn a_line_has_the_form_of_redis() {
        let text = line(&[b"SET", b"k", b"a\"\\\r\n\t\x07\x08\0\x7f\xff\x1b "]);
        let expected = "+1794952177.000042 [3 127.0.0.1:5] \"SET\" \"k\" \
                        \"a\\\"\\\\\\r\\n\\t\\a\\b\\x00\\x7f\\xff\\x1b \"\r\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn passwords_are_not_shown() {
        for (args, shown) in [
            (&[&b"AUTH"[..], b"secret"][..], r#""AUTH" "(redacted)""#),
            (&[b"auth", b"default", b"secret"], r#""auth" "(redacted)" "(redacted)""#),
            (
                &[b"HELLO", b"3", b"AUTH", b"default", b"secret", b"SETNAME", b"n"],
                r#""HELLO" "3" "AUTH" "(redacted)" "(redacted)" "SETNAME" "n""#,
            ),
            (&[b"HELLO", b"3", b"AUTH"], r#""HELLO" "3" "AUTH""#),
            (&[b"SET", b"auth", b"v"], r#""SET" "auth" "v""#),
        ] {
            let text = line(args);
            assert!(text.ends_with(&format!("] {shown}\r\n")), "{text}");
        }
    }
}
