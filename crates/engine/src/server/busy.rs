//! Answering clients while a script runs too long.
//!
//! The script holds the executor's lock, so sessions cannot be reached: a connection answers by what it
//! knows itself. Few commands work, all others get `BUSY`. The transaction commands must work: a client
//! that sends a whole transaction without reading replies would otherwise lose its `MULTI`, and the rest
//! would run as single commands when the script ends. What they do to the session is *deferred*: it is
//! applied before the client's next command.
//!
//! ```text
//!   MULTI ─▶ +OK        deferred: begin
//!   INCR  ─▶ -BUSY      deferred: abort
//!   EXEC  ─▶ -EXECABORT deferred: discard
//! ```

use bytes::Bytes;

use super::client_command::same;
use super::connection::Connection;
use super::executor::{Executor, Next};
use super::loop_queue::ClientId;
use super::request::AuthState;
use super::shared::Shared;
use crate::command::{self, Command};
use crate::lua::BUSY;
use crate::reply::Reply;

/// The maximum number of deferred changes; a client that sends more gets `BUSY`.
const MAX_DEFERRED: usize = 1000;

/// A change of a session that waits until the script has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Deferred {
    /// `MULTI`.
    Begin,
    /// A command of a transaction was refused.
    Abort,
    /// `DISCARD`, or an `EXEC` that was refused: the transaction and all watches end.
    Discard,
    /// `WATCH`. The watch begins when the script has ended: until then the client can read nothing.
    Watch(Vec<Bytes>),
    /// `UNWATCH`.
    Unwatch,
}

impl Shared {
    /// Answers a request while a script runs too long.
    pub(super) fn reply_busy(
        &self,
        connection: &mut Connection,
        args: &[Bytes],
        reply: &mut Reply,
    ) -> Next {
        let checked = command::check(args);
        let name = checked.as_ref().map_or("", |command| command.name);
        if connection.auth_state == AuthState::Unauthenticated && name != "auth" && name != "quit" {
            reply.error("NOAUTH Authentication required.");
            return Next::Go;
        }
        let command = match checked {
            Ok(command) => command,
            Err(error) => {
                connection.refuse_while_busy(args, error.text(), reply);
                return Next::Go;
            }
        };
        let word = args.get(1).map(|word| word.to_ascii_lowercase()).unwrap_or_default();
        match (command.name, word.as_slice()) {
            ("quit", _) => {
                reply.ok();
                return Next::Close;
            }
            ("auth", _) if self.password.is_some() => self.authenticate(connection, args, reply),
            ("script", b"kill") => match self.interrupt.kill() {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(&error.to_string()),
            },
            ("shutdown", _) if connection.in_transaction => {
                let text = b"ERR Command not allowed inside a transaction";
                connection.refuse_while_busy(args, text, reply);
            }
            ("shutdown", b"nosave") if self.on_shutdown.is_some() => {
                // The script cannot be stopped and holds the lock, so the process exits as
                // requested.
                tracing::error!("SHUTDOWN NOSAVE while a script runs: the process ends at once");
                std::process::exit(1);
            }
            _ => connection.reply_busy(command, args, reply),
        }
        Next::Go
    }

    fn authenticate(&self, connection: &mut Connection, args: &[Bytes], reply: &mut Reply) {
        let (user, password) = match args {
            [_, password] => (&b"default"[..], password),
            [_, user, password] => (&user[..], password),
            _ => return reply.error("ERR syntax error"),
        };
        let own = self.password.as_ref();
        if user != b"default" || !own.is_some_and(|own| same(own.as_bytes(), password)) {
            return reply.error("WRONGPASS invalid username-password pair or user is disabled.");
        }
        // The session is created again as authenticated; an unauthenticated session has no state to
        // keep.
        connection.has_session = connection.auth_state == AuthState::Authenticated;
        connection.auth_state = AuthState::Authenticated;
        reply.ok();
    }
}

impl Connection {
    /// Answers a transaction command, or `BUSY`.
    fn reply_busy(&mut self, command: &Command, args: &[Bytes], reply: &mut Reply) {
        match (command.name, self.in_transaction) {
            _ if self.deferred.len() >= MAX_DEFERRED => {
                self.refuse_while_busy(args, BUSY.as_bytes(), reply);
            }
            ("multi", true) => reply.error("ERR MULTI calls can not be nested"),
            ("multi", false) => {
                self.in_transaction = true;
                self.deferred.push(Deferred::Begin);
                reply.ok();
            }
            ("discard", false) => reply.error("ERR DISCARD without MULTI"),
            ("discard", true) => {
                self.in_transaction = false;
                self.deferred.push(Deferred::Discard);
                reply.ok();
            }
            ("watch", true) => reply.error("ERR WATCH inside MULTI is not allowed"),
            ("watch", false) => {
                // Copied, because the arguments are slices of a network buffer.
                let keys = args[1..].iter().map(|key| Bytes::copy_from_slice(key)).collect();
                self.deferred.push(Deferred::Watch(keys));
                reply.ok();
            }
            ("unwatch", false) => {
                self.deferred.push(Deferred::Unwatch);
                reply.ok();
            }
            _ => self.refuse_while_busy(args, BUSY.as_bytes(), reply),
        }
    }

    /// Refuses a command, which aborts an open transaction; a refused `EXEC` ends it.
    fn refuse_while_busy(&mut self, args: &[Bytes], text: &[u8], reply: &mut Reply) {
        if args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"EXEC")) {
            self.in_transaction = false;
            if self.deferred.last() != Some(&Deferred::Discard) {
                self.deferred.push(Deferred::Discard);
            }
            let text = text.strip_prefix(b"ERR ").unwrap_or(text);
            let head = b"EXECABORT Transaction discarded because of: ";
            return reply.error_bytes(&[&head[..], text].concat());
        }
        if self.in_transaction && self.deferred.last() != Some(&Deferred::Abort) {
            self.deferred.push(Deferred::Abort);
        }
        reply.error_bytes(text);
    }
}

impl Executor {
    /// Applies changes of a session that were deferred while a script ran too long.
    pub(super) fn apply_deferred(&mut self, client: ClientId, deferred: Vec<Deferred>) {
        // Replies were sent at the time.
        let mut reply = Reply::new(crate::reply::Protocol::Resp2);
        for change in deferred {
            match change {
                Deferred::Begin => self.multi(client, &mut reply),
                Deferred::Abort => {
                    if let Some(session) = self.sessions.get_mut(&client) {
                        session.mark_transaction_aborted();
                    }
                }
                Deferred::Discard => {
                    self.end_transaction(client);
                    self.unwatch(client);
                }
                Deferred::Watch(keys) => self.watch(client, &keys, &mut reply),
                Deferred::Unwatch => self.unwatch(client),
            }
        }
    }
}
