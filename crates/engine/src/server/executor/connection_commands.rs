//! Commands that need the connection: scripts, transactions, subscriptions, server commands.

use bytes::Bytes;

use super::{Executor, Next};
use crate::blob::Blob;
use crate::command::Command;
use crate::db::{Blocking, Db};
use crate::error::{
    Error, NEGATIVE_TIMEOUT, NOT_INTEGER, NOT_POSITIVE, Result, SYNTAX, TIMEOUT_NOT_INTEGER,
    TIMEOUT_OUT_OF_RANGE,
};
use crate::number::parse_int;
use crate::reply::{Protocol, Reply};
use crate::server::blocked::reply_synced;
use crate::server::loop_queue::ClientId;
use crate::server::pubsub::Kind;
use crate::server::session::ReplyMode;

impl Executor {
    pub(super) fn connection_command(
        &mut self,
        client: ClientId,
        command: &'static Command,
        args: &[Bytes],
        reply: &mut Reply,
    ) -> Next {
        self.try_connection_command(client, command, args, reply).unwrap_or_else(|error| {
            reply.error_bytes(error.text());
            Next::Go
        })
    }

    /// Runs a command flagged [`CONNECTION`](crate::command::CONNECTION). Adding one? It also needs
    /// a row in `table.rs`.
    fn try_connection_command(
        &mut self,
        client: ClientId,
        command: &'static Command,
        args: &[Bytes],
        reply: &mut Reply,
    ) -> Result<Next> {
        let rest = &args[1..];
        match command.name {
            "eval" | "evalsha" | "eval_ro" | "evalsha_ro" => {
                return Ok(self.eval(client, args, reply));
            }
            "script" => self.scripts.script_command(args, self.settings.script_limits(), reply),
            "publish" => {
                let count = self.pubsub.publish(&args[1], &args[2]);
                reply.int(count as i64);
            }
            "multi" => self.multi(client, reply),
            "exec" => {
                self.blocking = Blocking::Denied;
                let next = self.exec(client, reply);
                self.blocking = Blocking::Allowed;
                return Ok(next);
            }
            "discard" => self.discard(client, reply),
            "watch" => self.watch(client, rest, reply),
            "unwatch" => {
                self.unwatch(client);
                reply.ok();
            }
            "subscribe" => self.subscribe(client, Kind::Channel, rest, reply),
            "psubscribe" => self.subscribe(client, Kind::Pattern, rest, reply),
            "unsubscribe" => self.unsubscribe(client, Kind::Channel, rest, reply),
            "punsubscribe" => self.unsubscribe(client, Kind::Pattern, rest, reply),
            "pubsub" => self.pubsub.command(args, reply)?,
            "auth" => self.auth(client, args, reply)?,
            "hello" => self.hello(client, args, reply)?,
            "client" => return self.client_command(client, args, reply),
            "reset" => self.reset(client, reply),
            "quit" => {
                reply.ok();
                return Ok(Next::Close);
            }
            "info" => self.info(rest, reply),
            "config" => self.config_command(args, reply)?,
            "slowlog" => self.slowlog.command(args, reply)?,
            "debug" => self.debug_command(args, reply)?,
            "bgrewriteaof" => self.compact_now(reply),
            "lastsave" => reply.int(self.stats.last_save),
            "role" => {
                reply.array(3);
                reply.bulk(b"master");
                reply.int(0);
                reply.array(0);
            }
            "wait" => wait(args, reply)?,
            "waitaof" => return self.waitaof(client, args, reply),
            "monitor" => self.monitor(client, reply)?,
            "shutdown" => return self.shutdown(rest, reply),
            name => unreachable!("{name} is in the table, but nothing runs it"),
        }
        Ok(Next::Go)
    }

    /// `RESET`: returns the session to the state of a new connection.
    fn reset(&mut self, client: ClientId, reply: &mut Reply) {
        self.end_transaction(client);
        self.unwatch(client);
        self.forget_subscriptions(client);
        self.stop_monitoring(client);
        let authenticated = self.settings.password.is_none();
        if let Some(session) = self.sessions.get_mut(&client) {
            session.db = 0;
            session.protocol = Protocol::Resp2;
            session.authenticated = authenticated;
            session.name = Blob::EMPTY;
            session.reply_mode = ReplyMode::On;
        }
        reply.set_protocol(Protocol::Resp2);
        reply.status("RESET");
    }

    fn shutdown(&mut self, words: &[Bytes], reply: &mut Reply) -> Result<Next> {
        let is = |word: &str| words.iter().any(|given| given.eq_ignore_ascii_case(word.as_bytes()));
        let known = ["SAVE", "NOSAVE", "NOW", "FORCE", "ABORT"];
        let all_known = words
            .iter()
            .all(|given| known.iter().any(|word| given.eq_ignore_ascii_case(word.as_bytes())));
        if !all_known || is("SAVE") && is("NOSAVE") || is("ABORT") && words.len() > 1 {
            return Err(SYNTAX);
        }
        if is("ABORT") {
            return Err(Error::Fixed("ERR No shutdown in progress."));
        }
        match &self.on_shutdown {
            Some(stop) => {
                stop();
                Ok(Next::Close)
            }
            None => {
                reply.error("ERR SHUTDOWN is not allowed: the engine is part of another program");
                Ok(Next::Go)
            }
        }
    }

    /// `WAITAOF`: waits until the client's own writes survive a power cut. There are no replicas to
    /// wait for.
    fn waitaof(&mut self, client: ClientId, args: &[Bytes], reply: &mut Reply) -> Result<Next> {
        let local = parse_int(&args[1]).ok_or(NOT_INTEGER)?;
        if !(0..=1).contains(&local) {
            return Err(Error::Fixed("ERR value is out of range, value must between 0 and 1"));
        }
        parse_int(&args[2]).filter(|replicas| *replicas >= 0).ok_or(NOT_POSITIVE)?;
        let timeout_ms = timeout(&self.db, &args[3])?;
        let Some(session) = self.sessions.get(&client) else { return Ok(Next::Close) };
        let written = session.written;
        let Some(journal) = &self.journal else {
            if local > 0 {
                return Err(Error::Fixed(
                    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
                ));
            }
            reply_synced(0, reply);
            return Ok(Next::Go);
        };
        let synced = journal.durable() >= written;
        if synced || local == 0 || self.in_transaction() {
            reply_synced(synced.into(), reply);
            return Ok(Next::Go);
        }
        self.block_until_synced(client, written, timeout_ms);
        Ok(Next::Block)
    }
}

/// `WAIT`: there are no replicas to wait for.
fn wait(args: &[Bytes], reply: &mut Reply) -> Result {
    parse_int(&args[1]).ok_or(NOT_INTEGER)?;
    let timeout = parse_int(&args[2]).ok_or(TIMEOUT_NOT_INTEGER)?;
    if timeout < 0 {
        return Err(NEGATIVE_TIMEOUT);
    }
    reply.int(0);
    Ok(())
}

/// A timeout in milliseconds; 0 means none.
fn timeout(db: &Db, arg: &[u8]) -> Result<i64> {
    let ms = parse_int(arg).ok_or(TIMEOUT_NOT_INTEGER)?;
    if ms < 0 {
        return Err(NEGATIVE_TIMEOUT);
    }
    ms.checked_add(db.now_ms()).map(|_| ms).ok_or(TIMEOUT_OUT_OF_RANGE)
}
