//! The keyspace as scripts reach it: the trait `lua::Host` implemented with the command
//! table.
//!
//! Commands run as for a client, but none may block. Errors about the call itself have the texts
//! that Redis uses in scripts.

use bytes::Bytes;

use crate::command::{self, Calls, NO_SCRIPT, WRITE};
use crate::db::{Blocking, Db};
use crate::lua::{self, Access};
use crate::reply::Reply;

/// A keyspace while a script runs. The caller sets the clock before, and restores the selected
/// database afterwards if the script must not change it.
#[derive(Debug)]
pub(crate) struct ScriptHost<'a> {
    db: &'a mut Db,
    calls: &'a mut Calls,
    access: Access,
    changes: u64,
}

impl<'a> ScriptHost<'a> {
    /// Wraps the keyspace for a script; commands may not block from now on.
    pub(crate) fn new(db: &'a mut Db, calls: &'a mut Calls) -> Self {
        db.set_blocking(Blocking::Forbidden);
        let changes = db.changes();
        Self { db, calls, access: Access::Write, changes }
    }

    /// The selected database and the clock in microseconds.
    pub(crate) fn place(&self) -> (usize, i64) {
        (self.db.selected(), self.db.now_us())
    }

    /// The number of bytes of effects that have not been taken yet.
    pub(crate) fn effect_bytes(&mut self) -> usize {
        self.db.effects().as_bytes().len()
    }

    /// The size limit of the effects in one record of the journal.
    pub(crate) fn effect_limit(&mut self) -> usize {
        self.db.effects().limit()
    }

    fn refuse(&self, args: &[Bytes]) -> Result<&'static command::Command, &'static str> {
        let command = command::check(args).map_err(|_| {
            if command::knows(args) { lua::WRONG_ARITY } else { lua::UNKNOWN_COMMAND }
        })?;
        if command.flags.has(NO_SCRIPT) {
            return Err(lua::NOT_ALLOWED);
        }
        if self.access == Access::ReadOnly && command.flags.has(WRITE) {
            return Err(lua::WRITE_REFUSED);
        }
        Ok(command)
    }
}

impl lua::Host for ScriptHost<'_> {
    fn call(&mut self, args: &[Bytes], reply: &mut Reply) {
        match self.refuse(args) {
            Ok(command) => {
                let outcome = command::run(self.db, command, args, reply);
                self.calls.count(command, args, outcome);
            }
            Err(text) => reply.error(text),
        }
    }

    fn begin(&mut self, access: Access) {
        self.access = access;
        self.changes = self.db.changes();
    }

    fn has_written(&self) -> bool {
        self.db.changes() != self.changes
    }

    fn knows(&self, command: &[u8]) -> bool {
        command::find(command).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lua::Host;
    use crate::reply::Protocol;

    fn call(host: &mut ScriptHost<'_>, line: &str) -> String {
        let mut reply = Reply::new(Protocol::Resp2);
        let args: Vec<Bytes> = line.split(' ').map(|arg| Bytes::from(arg.to_owned())).collect();
        host.call(&args, &mut reply);
        String::from_utf8_lossy(reply.as_bytes()).into_owned()
    }

    #[test]
    fn a_script_runs_commands_and_is_told_what_it_may_not() {
        let (mut db, mut calls) = (Db::new(), Calls::default());
        let mut host = ScriptHost::new(&mut db, &mut calls);
        assert_eq!(call(&mut host, "get k"), "$-1\r\n");
        assert!(!host.has_written());
        assert_eq!(call(&mut host, "set k v"), "+OK\r\n");
        assert!(host.has_written());
        assert!(call(&mut host, "nosuch").contains("Unknown Redis command"));
        assert!(call(&mut host, "get").contains("Wrong number of args"));
        assert!(call(&mut host, "blpop k 0").contains("not allowed from script"));
        let waits = call(&mut host, "xread COUNT 1 block 0 streams s 0");
        assert!(waits.contains("xread command is not allowed with BLOCK option from scripts"));
        assert_eq!(call(&mut host, "xread COUNT 1 streams block 0"), "*-1\r\n");
        host.begin(Access::ReadOnly);
        assert!(call(&mut host, "set k w").contains("read-only"));
        assert_eq!(call(&mut host, "get k"), "$1\r\nv\r\n");
    }
}
