//! `EVAL`, `EVALSHA` and their read-only forms: running scripts on the caller's database.

use bytes::Bytes;

use super::executor::{Executor, Next, WriteGate};
use super::loop_queue::ClientId;
use super::pubsub::Pubsub;
use crate::command::{self, WRITE};
use crate::db::Expiry;
use crate::lua::{Access, Host, WRITE_REFUSED};
use crate::reply::Reply;
use crate::script_host::ScriptHost;

/// The host of scripts: the keyspace and pub/sub.
struct ServerHost<'a> {
    keyspace: ScriptHost<'a>,
    pubsub: &'a mut Pubsub,
    access: Access,
    /// The error reply for writes, while the journal refuses them.
    refusal: Option<String>,
}

impl Host for ServerHost<'_> {
    fn call(&mut self, args: &[Bytes], reply: &mut Reply) {
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
        let Some(session) = self.sessions.get(&client) else { return Next::Close };
        let expiry = if refusal.is_none() { Expiry::Removes } else { Expiry::Hides };
        self.db.set_expiry_mode(expiry);
        self.db.select(session.db);
        let keyspace = ScriptHost::new(&mut self.db);
        let (pubsub, access) = (&mut self.pubsub, Access::Write);
        let mut host = ServerHost { keyspace, pubsub, access, refusal };
        let limits = self.settings.script_limits();
        self.scripts.eval_command(&mut host, args, limits, reply);
        Next::Go
    }
}
