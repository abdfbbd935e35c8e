//! `MULTI`, `EXEC`, `DISCARD`, `WATCH` and `UNWATCH`.
//!
//! Commands are checked when they are queued. A refused command aborts the transaction: `EXEC` then
//! runs none. `EXEC` runs all commands without interruption and without blocking. Their effects are
//! one record of the journal.

use bytes::Bytes;

use super::executor::{Executor, Next, WriteGate};
use super::loop_queue::ClientId;
use super::session::Transaction;
use crate::command::{Command, WRITE};
use crate::db::Expiry;
use crate::reply::Reply;

impl Executor {
    /// Queues a command in the client's transaction.
    pub(super) fn queue(
        &mut self,
        client: ClientId,
        command: &'static Command,
        args: &[Bytes],
        reply: &mut Reply,
    ) {
        // The effects of all commands must fit into one record of the journal.
        let most = self.db.effects().limit() / 2;
        let session = self.sessions.get_mut(&client);
        let Some(transaction) = session.and_then(|session| session.transaction.as_mut()) else {
            return;
        };
        transaction.bytes += args.iter().map(|arg| size_of::<Bytes>() + arg.len()).sum::<usize>();
        if transaction.bytes > most {
            transaction.aborted = true;
            transaction.queue = Vec::new();
            return reply.error("ERR the transaction is too large: it must have less than 512 MB");
        }
        // An aborted transaction keeps no commands.
        if !transaction.aborted {
            // Copied, because the arguments are slices of a network buffer that they would keep
            // alive.
            let args = args.iter().map(|arg| Bytes::copy_from_slice(arg)).collect();
            transaction.queue.push((command, args));
        }
        reply.status("QUEUED");
    }

    pub(super) fn multi(&mut self, client: ClientId, reply: &mut Reply) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        if session.transaction.is_some() {
            return reply.error("ERR MULTI calls can not be nested");
        }
        session.transaction = Some(Transaction::default());
        reply.ok();
    }

    pub(super) fn discard(&mut self, client: ClientId, reply: &mut Reply) {
        if self.end_transaction(client).is_none() {
            return reply.error("ERR DISCARD without MULTI");
        }
        reply.ok();
    }

    pub(super) fn exec(&mut self, client: ClientId, reply: &mut Reply) -> Next {
        let queued = self.sessions.get(&client).and_then(|session| session.transaction.as_ref());
        let Some(queued) = queued else {
            reply.error("ERR EXEC without MULTI");
            return Next::Go;
        };
        let writes = queued.queue.iter().any(|(command, _)| command.flags.has(WRITE));
        let gate = if writes { self.write_gate() } else { WriteGate::Open };
        if gate == WriteGate::Busy {
            return Next::Hold;
        }
        let stale = self.has_stale_watch(client);
        let Some(transaction) = self.end_transaction(client) else { return Next::Go };
        if transaction.aborted {
            reply.error("EXECABORT Transaction discarded because of previous errors.");
            return Next::Go;
        }
        if let WriteGate::Refused(reason) = gate {
            reply.error_bytes(
                format!("EXECABORT Transaction discarded because of: {reason}").as_bytes(),
            );
            return Next::Go;
        }
        if stale {
            reply.nil_array();
            return Next::Go;
        }
        if writes {
            self.db.set_expiry_mode(Expiry::Removes);
        }
        reply.array(transaction.queue.len());
        let mut next = Next::Go;
        for (command, args) in &transaction.queue {
            if let Some(session) = self.sessions.get(&client) {
                reply.set_protocol(session.protocol);
            }
            // A client that kills itself gets its reply first.
            if self.call(client, command, args, reply) == Next::Close {
                next = Next::Close;
            }
        }
        next
    }

    /// Aborts the transaction because `EXEC` itself was refused; watches end in any case.
    pub(super) fn abort_transaction(&mut self, client: ClientId, why: &[u8], reply: &mut Reply) {
        self.end_transaction(client);
        self.unwatch(client);
        let why = why.strip_prefix(b"ERR ").unwrap_or(why);
        reply.error_bytes(&[&b"EXECABORT Transaction discarded because of: "[..], why].concat());
    }

    pub(super) fn watch(&mut self, client: ClientId, keys: &[Bytes], reply: &mut Reply) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        if session.transaction.is_some() {
            return reply.error("ERR WATCH inside MULTI is not allowed");
        }
        self.db.select(session.db);
        for key in keys {
            session.watches.push(self.db.watch(key));
        }
        reply.ok();
    }

    /// Ends all watches of a client.
    pub(super) fn unwatch(&mut self, client: ClientId) {
        let Some(session) = self.sessions.get_mut(&client) else { return };
        for watch in session.watches.drain(..) {
            self.db.unwatch(watch);
        }
    }

    /// Takes the client's transaction and ends its watches; `None` if there was none.
    pub(super) fn end_transaction(&mut self, client: ClientId) -> Option<Transaction> {
        let transaction = self.sessions.get_mut(&client)?.transaction.take()?;
        self.unwatch(client);
        Some(transaction)
    }

    fn has_stale_watch(&self, client: ClientId) -> bool {
        self.sessions.get(&client).is_some_and(|session| session.has_stale_watch(&self.db))
    }
}
