//! Blocking commands: whether they may block, and the request to block that they leave instead of a
//! reply.

use bytes::Bytes;

use super::Db;

/// Whether a command may block on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The command may block: it leaves a [`Wait`] instead of a reply.
    Allowed,
    /// In a transaction: a blocking command replies as if it had timed out.
    Denied,
    /// In a script: as in a transaction, and `XREAD BLOCK` is refused.
    Forbidden,
}

/// The request of a command to block: it found nothing to take and has not replied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The arguments to run again when one of the keys is ready (`$` of `XREAD` is resolved).
    pub args: Vec<Bytes>,
    /// The keys to wait for.
    pub keys: Vec<Bytes>,
    /// When to time out, in milliseconds since 1970; `None`: never.
    pub deadline_ms: Option<i64>,
}

impl Db {
    /// Sets whether the following commands may block.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    /// Takes the block request of the last command; `None` if it has replied.
    pub fn take_wait(&mut self) -> Option<Wait> {
        self.wait.take()
    }

    /// Whether commands may block.
    pub(crate) fn waiting(&self) -> Waiting {
        self.waiting
    }

    /// Leaves a block request and returns `true`; `false` if the command must reply instead.
    pub(crate) fn waits(&mut self, args: &[Bytes], keys: &[Bytes], timeout_ms: i64) -> bool {
        let may_wait = self.waiting == Waiting::Allowed;
        if may_wait {
            let deadline_ms = (timeout_ms > 0).then(|| self.now_ms().saturating_add(timeout_ms));
            self.wait = Some(Wait { args: args.to_vec(), keys: keys.to_vec(), deadline_ms });
        }
        may_wait
    }
}
