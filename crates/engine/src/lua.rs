//! Scripts: Lua 5.1 as Redis 7.0 runs it, with one VM, where each script is compiled once.
//!
//! ```text
//!   EVAL, EVALSHA, SCRIPT …  ─▶ commands.rs ─▶ Scripts (cache by SHA-1) ─▶ vm.rs ─▶ Lua
//!                                                                                   │ redis.call
//!   keyspace ◀── Host::call(args, reply) ◀── redis.rs ◀── native.rs ◀──────────────┘
//! ```
//!
//! - `vm.rs` runs a script under its limits; `memory.rs` is the allocator with a limit, and
//!   `interrupt.rs` stops a script from another thread.
//! - `stack.rs` is the safe interface of native (Rust) functions to Lua and says why it is safe: read it
//!   first. `native.rs` calls native functions and raises their errors.
//! - `sandbox.rs` sets up the globals. `builtins.rs` and `strings.rs` (with `pattern.rs`) replace functions
//!   of stock Lua. `redis.rs`, `json.rs`, `msgpack.rs`, `structs.rs`, `bits.rs` and `random.rs` are the
//!   libraries. `convert.rs` converts between RESP and Lua values.
//!
//! **Why PUC Lua 5.1 and not LuaJIT**: Redis uses it. The order of `pairs`, and with it the text of
//! `cjson.encode`, error messages and number formats are the same byte for byte. An allocator with a
//! limit and hooks work on every platform. And its known faults are few (see `sandbox.rs`).
//!
//! A script that fails in the middle keeps its effects. A script cannot run a script: the host refuses
//! `EVAL`, and could not reach [`Scripts`] anyway, which is borrowed while a script runs.
//!
//! Adding a function for scripts? Write it over a `Stack`, put it in its library's table, and add scripts
//! with its corner cases to `lua/tests/corpus.rs`, which compares with a real Redis.

mod bits;
mod builtins;
mod commands;
mod convert;
mod host;
mod interrupt;
mod json;
mod json_decode;
mod memory;
mod msgpack;
mod native;
mod numeric;
mod pattern;
mod random;
mod redis;
mod sandbox;
mod stack;
mod state;
mod strings;
mod structs;
mod vm;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use self::commands::Declared;
pub(crate) use self::host::{
    Access, Host, NOT_ALLOWED, UNKNOWN_COMMAND, WRITE_REFUSED, WRONG_ARITY,
};
pub(crate) use self::interrupt::Interrupt;
use self::random::Random;
use self::vm::{Compiled, Run, Vm};
use crate::reply::Reply;

/// The reply to `EVALSHA` of a script that is not cached.
pub(crate) const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";
/// The reply to other clients while a script runs too long.
pub(crate) const BUSY: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

/// The number of scripts cached by `EVAL`; scripts of `SCRIPT LOAD` are all kept.
const MAX_EVALUATED: usize = 500;

/// What happens to a script with declared flags that begins while memory is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OomRule {
    /// It runs, and may write: `allow-oom` or `no-writes`.
    Run,
    /// It is refused.
    Refuse,
}

/// The limits of one script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// After this time a script that has not written is stopped; `None`: only `SCRIPT KILL` stops
    /// it.
    pub(crate) time: Option<Duration>,
    /// The memory limit of the VM, including cached scripts, in bytes.
    pub(crate) memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: None, memory: 256 << 20 }
    }
}

/// A script to run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The script's text; compiled and cached if it is new.
    Text(&'a [u8]),
    /// The SHA-1 of the script's text in hexadecimal, in any case.
    Sha(&'a [u8]),
}

/// The arguments of a script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The global `KEYS`.
    pub(crate) keys: &'a [Bytes],
    /// The global `ARGV`.
    pub(crate) args: &'a [Bytes],
    /// The access that the caller allows; a script may declare less.
    pub(crate) access: Access,
    /// The limits of the run.
    pub(crate) limits: Limits,
}

/// The script cache and the VM.
pub(crate) struct Scripts {
    vm: Vm,
    interrupt: Interrupt,
    version: String,
    cache: HashMap<String, Cached>,
    /// Scripts cached by `EVAL` only, oldest first.
    evaluated: VecDeque<String>,
    runs: u64,
}

#[derive(Debug, Clone, Copy)]
struct Cached {
    compiled: Compiled,
    /// The flags declared in the script's first line, if any.
    declared: Option<Declared>,
    /// Whether `SCRIPT LOAD` cached it, so that it stays until `SCRIPT FLUSH`.
    loaded: bool,
}

impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scripts").field("cached", &self.cache.len()).finish_non_exhaustive()
    }
}

impl Scripts {
    /// An empty cache. Scripts read `version` as `redis.REDIS_VERSION`.
    pub(crate) fn new(version: &str) -> Self {
        let interrupt = Interrupt::new();
        Self {
            vm: Vm::new(interrupt.clone(), version, Random::default()),
            interrupt,
            version: version.to_owned(),
            cache: HashMap::new(),
            evaluated: VecDeque::new(),
            runs: 0,
        }
    }

    /// A handle for other threads to watch and stop the running script.
    pub(crate) fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// The number of bytes used by the VM and its scripts, for `INFO memory`.
    pub(crate) fn memory(&self) -> usize {
        self.vm.memory()
    }

    /// The number of cached scripts, for `INFO memory`.
    pub(crate) fn len(&self) -> usize {
        self.cache.len()
    }

    /// Runs a script and writes its reply or its error.
    pub(crate) fn eval(
        &mut self,
        host: &mut dyn Host,
        source: Source<'_>,
        call: Call<'_>,
        reply: &mut Reply,
    ) {
        let sha = match source {
            Source::Text(text) => redis::sha1_hex(text),
            Source::Sha(sha) => String::from_utf8_lossy(sha).to_ascii_lowercase(),
        };
        let script = match (self.cache.get(&sha), source) {
            (Some(script), _) => *script,
            (None, Source::Sha(_)) => return reply.error(NO_SCRIPT),
            (None, Source::Text(text)) => match self.compile(&sha, text, call.limits) {
                Ok(script) => {
                    self.remember_evaluated(&sha);
                    script
                }
                Err(error) => return reply.error(&error),
            },
        };
        let declared = script.declared.map(|declared| declared.access);
        if call.access == Access::ReadOnly && declared == Some(Access::Write) {
            return reply.error("ERR Can not execute a script with write flag using *_ro command.");
        }
        self.runs += 1;
        let read_only = [Some(call.access), declared].contains(&Some(Access::ReadOnly));
        let call =
            Call { access: if read_only { Access::ReadOnly } else { Access::Write }, ..call };
        let run = Run { call, number: self.runs, sha: &sha };
        self.vm.run(script.compiled, run, host, reply);
    }

    /// What the script of an `EVAL` or `EVALSHA` declares for a full memory; `None` if it declares no
    /// flags, or is not known.
    pub(crate) fn declares_oom(&self, args: &[Bytes]) -> Option<OomRule> {
        let [name, script, ..] = args else { return None };
        let declared = if name.to_ascii_lowercase().starts_with(b"evalsha") {
            let sha = String::from_utf8_lossy(script).to_ascii_lowercase();
            self.cache.get(&sha)?.declared
        } else {
            commands::shebang(script).ok()?.0
        };
        declared.map(|declared| declared.oom)
    }

    /// Compiles and caches a script; returns its SHA-1, or the error reply.
    pub(crate) fn load(&mut self, text: &[u8], limits: Limits) -> Result<String, String> {
        let sha = redis::sha1_hex(text);
        if !self.cache.contains_key(&sha) {
            self.compile(&sha, text, limits)?;
        }
        self.evaluated.retain(|evaluated| *evaluated != sha);
        if let Some(script) = self.cache.get_mut(&sha) {
            script.loaded = true;
        }
        Ok(sha)
    }

    /// Whether a script is cached.
    pub(crate) fn exists(&self, sha: &[u8]) -> bool {
        std::str::from_utf8(sha).is_ok_and(|sha| self.cache.contains_key(&sha.to_ascii_lowercase()))
    }

    /// Removes all scripts and resets the VM.
    pub(crate) fn flush(&mut self) {
        self.cache.clear();
        self.evaluated.clear();
        self.vm = Vm::new(self.interrupt.clone(), &self.version, self.vm.random());
    }

    fn compile(&mut self, sha: &str, text: &[u8], limits: Limits) -> Result<Cached, String> {
        let (declared, body) = commands::shebang(text)?;
        let compiled = self
            .vm
            .compile(body, limits.memory)
            .map_err(|error| format!("ERR Error compiling script (new function): {error}"))?;
        let script = Cached { compiled, declared, loaded: false };
        self.cache.insert(sha.to_owned(), script);
        Ok(script)
    }

    fn remember_evaluated(&mut self, sha: &str) {
        self.evaluated.push_back(sha.to_owned());
        if self.evaluated.len() > MAX_EVALUATED
            && let Some(oldest) = self.evaluated.pop_front()
            && let Some(script) = self.cache.remove(&oldest)
        {
            self.vm.forget(script.compiled);
        }
    }
}
