//! `EVAL`, `EVALSHA` and their read-only forms: running scripts on the caller's database.

use bytes::Bytes;

use super::executor::{Executor, Next, WriteGate};
use super::loop_queue::ClientId;
use super::monitor::{self, Monitors};
use super::pubsub::Pubsub;
use crate::command::{self, GROW, NO_SCRIPT, WRITE};
use crate::db::Expiry;
use crate::error::OUT_OF_MEMORY;
use crate::lua::{Access, Host, OomRule, WRITE_REFUSED};
use crate::reply::Reply;
use crate::script_host::ScriptHost;

/// The host of scripts: the keyspace and pub/sub.
struct ServerHost<'a> {
    keyspace: ScriptHost<'a>,
    pubsub: &'a mut Pubsub,
    access: Access,
    monitors: &'a mut Monitors,
    /// The error reply for writes, while the journal refuses them.
    refusal: Option<String>,
    /// Whether commands that may need memory are refused: memory was full when the script began, and
    /// the script has called no write command yet. After a write, a refusal would leave half a
    /// script.
    full: bool,
}

impl ServerHost<'_> {
    /// Whether a command must be refused because memory is full.
    fn refuses_for_memory(&mut self, args: &[Bytes]) -> bool {
        let Some(command) = command::check(args).ok().filter(|_| self.full) else { return false };
        if command.flags.has(GROW) {
            return true;
        }
        self.full = !command.flags.has(WRITE);
        false
    }

    /// Shows a command to the monitors, unless scripts may not call it.
    fn show_to_monitors(&mut self, args: &[Bytes]) {
        if command::check(args).is_ok_and(|command| !command.flags.has(NO_SCRIPT)) {
            self.monitors.note(self.keyspace.place(), monitor::SCRIPT, args);
        }
    }
}

impl Host for ServerHost<'_> {
    fn call(&mut self, args: &[Bytes], reply: &mut Reply) {
        if self.full && self.refuses_for_memory(args) {
            return reply.error_bytes(OUT_OF_MEMORY.text());
        }
        self.run(args, reply);
        if !self.monitors.is_empty() {
            self.show_to_monitors(args);
        }
    }

    fn begin(&mut self, access: Access) {
        self.access = access;
        self.keyspace.begin(access);
    }

    fn has_written(&self) -> bool {
        self.keyspace.has_written()
    }

    fn knows(&self, command: &[u8]) -> bool {
        self.keyspace.knows(command)
    }
}

impl ServerHost<'_> {
    fn run(&mut self, args: &[Bytes], reply: &mut Reply) {
        match args {
            [name, _, _]
                if name.eq_ignore_ascii_case(b"publish") && self.access == Access::ReadOnly =>
            {
                reply.error(WRITE_REFUSED);
            }
            [name, channel, text] if name.eq_ignore_ascii_case(b"publish") => {
                reply.int(self.pubsub.publish(channel, text) as i64);
            }
            [name, ..] if name.eq_ignore_ascii_case(b"pubsub") && command::check(args).is_ok() => {
                if let Err(error) = self.pubsub.command(args, reply) {
                    reply.error_bytes(error.text());
                }
            }
            _ => {
                if let Some(refusal) = &self.refusal
                    && command::check(args).is_ok_and(|command| command.flags.has(WRITE))
                {
                    return reply.error_bytes(refusal.as_bytes());
                }
                // All effects of a script must fit into one record of the journal.
                if self.keyspace.effect_bytes() > self.keyspace.effect_limit() / 2
                    && command::check(args).is_ok_and(|command| command.flags.has(WRITE))
                {
                    return reply.error("ERR the script has written too much: the limit is 512 MB");
                }
                self.keyspace.call(args, reply);
            }
        }
    }
}

impl Executor {
    /// `EVAL`, `EVALSHA` and their read-only forms.
    pub(super) fn eval(&mut self, client: ClientId, args: &[Bytes], reply: &mut Reply) -> Next {
        let refusal = match self.write_gate() {
            WriteGate::Open => None,
            // Inside a transaction the script runs on: `EXEC` has already passed the check.
            WriteGate::Busy if self.in_transaction() => None,
            WriteGate::Busy => return Next::Hold,
            WriteGate::Refused(reason) => Some(reason),
        };
        let declared = if self.began_full { self.scripts.declares_oom(args) } else { None };
        if declared == Some(OomRule::Refuse) {
            reply.error_bytes(OUT_OF_MEMORY.text());
            return Next::Go;
        }
        let full = self.began_full && declared.is_none();
        let Some(session) = self.sessions.get(&client) else { return Next::Close };
        let expiry = if refusal.is_none() { Expiry::Removes } else { Expiry::Hides };
        self.db.set_expiry_mode(expiry);
        self.db.select(session.db);
        let keyspace = ScriptHost::new(&mut self.db, &mut self.calls);
        let (pubsub, monitors) = (&mut self.pubsub, &mut self.monitors);
        let access = Access::Write;
        let mut host = ServerHost { keyspace, pubsub, access, monitors, refusal, full };
        let limits = self.settings.script_limits();
        self.scripts.eval_command(&mut host, args, limits, reply);
        Next::Go
    }
}
