//! Commands that need the connection: scripts, transactions, subscriptions, server commands.

use bytes::Bytes;

use super::{Executor, Next};
use crate::blob::Blob;
use crate::command::Command;
use crate::db::Blocking;
use crate::error::Result;
use crate::reply::{Protocol, Reply};
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
            // There are no replicas to wait for.
            "wait" => reply.int(0),
            "shutdown" => return Ok(self.shutdown(reply)),
            name => unreachable!("{name} is in the table, but nothing runs it"),
        }
        Ok(Next::Go)
    }

    /// `RESET`: returns the session to the state of a new connection.
    fn reset(&mut self, client: ClientId, reply: &mut Reply) {
        self.end_transaction(client);
        self.unwatch(client);
        self.forget_subscriptions(client);
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

    fn shutdown(&mut self, reply: &mut Reply) -> Next {
        match &self.on_shutdown {
            Some(stop) => {
                stop();
                Next::Close
            }
            None => {
                reply.error("ERR SHUTDOWN is not allowed: the engine is part of another program");
                Next::Go
            }
        }
    }
}
