//! The interface of scripts to the keyspace.

use bytes::Bytes;

use crate::reply::Reply;

/// The error of a script that called an unknown command.
pub(crate) const UNKNOWN_COMMAND: &str = "ERR Unknown Redis command called from script";
/// The error of a script that called a command with a wrong number of arguments.
pub(crate) const WRONG_ARITY: &str = "ERR Wrong number of args calling Redis command from script";
/// The error of a script that called a forbidden command: `EVAL`, `SCRIPT`, `SUBSCRIBE`, `MULTI` ….
pub(crate) const NOT_ALLOWED: &str = "ERR This Redis command is not allowed from script";
/// The error of a read-only script that called a write command.
pub(crate) const WRITE_REFUSED: &str = "ERR Write commands are not allowed from read-only scripts.";

/// The access of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// All commands that scripts may call.
    Write,
    /// Only reads: `EVAL_RO`, or a script with `#!lua flags=no-writes`.
    ReadOnly,
}

/// The level of a message of `redis.log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// `redis.LOG_DEBUG`.
    Debug,
    /// `redis.LOG_VERBOSE`.
    Verbose,
    /// `redis.LOG_NOTICE`.
    Notice,
    /// `redis.LOG_WARNING`.
    Warning,
}

/// The commands that scripts call; the keyspace implements it.
///
/// A panic in one of these functions ends the script and resumes after the VM has unwound.
pub(crate) trait Host {
    /// Runs one command and writes its reply, in the protocol of `reply`.
    ///
    /// Errors have the texts of this module where Redis uses other texts for scripts:
    /// [`UNKNOWN_COMMAND`], [`WRONG_ARITY`], [`NOT_ALLOWED`], [`WRITE_REFUSED`].
    fn call(&mut self, args: &[Bytes], reply: &mut Reply);

    /// Begins a script; its commands have this access until the next call of `begin`.
    fn begin(&mut self, access: Access) {
        let _ = access;
    }

    /// Whether the script has written since it began; such a script cannot be stopped.
    fn has_written(&self) -> bool {
        false
    }

    /// Whether `redis.acl_check_cmd` knows the command.
    fn knows(&self, command: &[u8]) -> bool {
        let _ = command;
        true
    }

    /// Logs a message of `redis.log`.
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
