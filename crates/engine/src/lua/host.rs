//! What scripts run against: the keyspace, seen through a narrow door.

use bytes::Bytes;

use crate::reply::Reply;

/// A script called a command that does not exist.
pub const UNKNOWN_COMMAND: &str = "ERR Unknown Redis command called from script";
/// A script called a command with too few or too many arguments.
pub const WRONG_ARITY: &str = "ERR Wrong number of args calling Redis command from script";
/// A script called a command that scripts may not call: `EVAL`, `SCRIPT`, `SUBSCRIBE`, `MULTI`, ….
pub const NOT_ALLOWED: &str = "ERR This Redis command is not allowed from script";
/// A read-only script called a command that writes.
pub const WRITE_REFUSED: &str = "ERR Write commands are not allowed from read-only scripts.";

/// What a script may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everything that scripts may do.
    Write,
    /// Only read: `EVAL_RO`, or a script that says `#!lua flags=no-writes`.
    ReadOnly,
}

/// How loud a message of `redis.log` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `redis.LOG_DEBUG`.
    Debug,
    /// `redis.LOG_VERBOSE`.
    Verbose,
    /// `redis.LOG_NOTICE`.
    Notice,
    /// `redis.LOG_WARNING`.
    Warning,
}

/// What scripts call. The keyspace implements it.
///
/// A panic in one of these functions ends the script and goes on after the VM has been put in order.
pub trait Host {
    /// Runs one command and writes its answer, in the protocol that the reply says.
    ///
    /// Errors use the texts of this module where clients would get another one: [`UNKNOWN_COMMAND`],
    /// [`WRONG_ARITY`], [`NOT_ALLOWED`], [`WRITE_REFUSED`].
    fn call(&mut self, args: &[Bytes], reply: &mut Reply);

    /// A script begins; until the next call of `begin` its commands have this access.
    fn begin(&mut self, access: Access) {
        let _ = access;
    }

    /// Whether this script has written since it began. One that has cannot be stopped any more.
    fn has_written(&self) -> bool {
        false
    }

    /// Whether `redis.acl_check_cmd` knows the command.
    fn knows(&self, command: &[u8]) -> bool {
        let _ = command;
        true
    }

    /// A message of `redis.log`.
    fn log(&mut self, level: Level, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        match level {
            Level::Debug => tracing::trace!(target: "script", "{text}"),
            Level::Verbose => tracing::debug!(target: "script", "{text}"),
            Level::Notice => tracing::info!(target: "script", "{text}"),
            Level::Warning => tracing::warn!(target: "script", "{text}"),
        }
    }
}
