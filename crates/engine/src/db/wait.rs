//! Commands that wait for a key: whether they may, and what they leave behind instead of a reply.

use bytes::Bytes;

use super::Db;

/// Whether a command may wait for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// A client may: the command leaves a [`Wait`] behind instead of a reply.
    Allowed,
    /// A transaction may not: the command answers as if its time were up.
    Denied,
    /// Nor may a script, and `XREAD` may not even be asked to.
    Forbidden,
}

/// A command that found nothing to take and has not replied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// What to run again when one of the keys is ready (`$` of `XREAD` is resolved in it).
    pub args: Vec<Bytes>,
    /// The keys to wait for.
    pub keys: Vec<Bytes>,
    /// When to give up, in milliseconds since 1970; never if `None`.
    pub deadline_ms: Option<i64>,
}

impl Db {
    /// Says whether the commands that follow may wait.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    /// Takes what the last command wants to wait for, if it did not reply.
    pub fn take_wait(&mut self) -> Option<Wait> {
        self.wait.take()
    }

    /// Whether commands may wait.
    pub(crate) fn waiting(&self) -> Waiting {
        self.waiting
    }

    /// Leaves a wait behind and says so, or there must be a reply instead.
    pub(crate) fn waits(&mut self, args: &[Bytes], keys: &[Bytes], timeout_ms: i64) -> bool {
        let may_wait = self.waiting == Waiting::Allowed;
        if may_wait {
            let deadline_ms = (timeout_ms > 0).then(|| self.now_ms().saturating_add(timeout_ms));
            self.wait = Some(Wait { args: args.to_vec(), keys: keys.to_vec(), deadline_ms });
        }
        may_wait
    }
}
