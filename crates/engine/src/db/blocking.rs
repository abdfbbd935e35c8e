//! Blocking commands: whether they may block, and the request to block that they leave instead of a
//! reply.

use bytes::Bytes;

use super::Db;

/// Whether a command may block on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// The command may block: it leaves a [`BlockRequest`] instead of a reply.
    Allowed,
    /// In a transaction: a blocking command replies as if it had timed out.
    Denied,
    /// In a script: as in a transaction, and `XREAD BLOCK` is refused.
    Forbidden,
}

/// The request of a command to block: it found nothing to take and has not replied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockRequest {
    /// The arguments to run again when one of the keys is ready (`$` of `XREAD` is resolved).
    pub(crate) args: Vec<Bytes>,
    /// The keys to wait for.
    pub(crate) keys: Vec<Bytes>,
    /// When to time out, in milliseconds since 1970; `None`: never.
    pub(crate) deadline_ms: Option<i64>,
}

impl Db {
    /// Sets whether the following commands may block.
    pub(crate) fn set_blocking(&mut self, blocking: Blocking) {
        self.blocking = blocking;
    }

    /// Takes the block request of the last command; `None` if it has replied.
    pub(crate) fn take_block_request(&mut self) -> Option<BlockRequest> {
        self.block_request.take()
    }

    /// Whether commands may block.
    pub(crate) fn blocking(&self) -> Blocking {
        self.blocking
    }

    /// Leaves a block request and returns `true`; `false` if the command must reply instead.
    pub(crate) fn request_block(
        &mut self,
        args: &[Bytes],
        keys: &[Bytes],
        timeout_ms: i64,
    ) -> bool {
        let may_wait = self.blocking == Blocking::Allowed;
        if may_wait {
            let deadline_ms = (timeout_ms > 0).then(|| self.now_ms().saturating_add(timeout_ms));
            self.block_request =
                Some(BlockRequest { args: args.to_vec(), keys: keys.to_vec(), deadline_ms });
        }
        may_wait
    }
}
