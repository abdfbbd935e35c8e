//! `CONFIG GET` and `CONFIG SET`.
//!
//! Only parameters that clients and tools use are supported. Other parameters of Redis are unknown
//! here.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;

use super::executor::Executor;
use super::memory::parse_bytes;
use super::request::MAX_BULK;
use crate::command::Calls;
use crate::error::{self, Error, Result};
use crate::glob;
use crate::journal::Fsync;
use crate::lua::Limits;
use crate::number::parse_int;
use crate::reply::Reply;

/// The configuration that `CONFIG` shows and may change.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) password: Option<String>,
    pub(super) port: u16,
    pub(super) dir: String,
    pub(super) fsync: Option<Fsync>,
    /// After this time a script that has not written is stopped.
    pub(super) script_time: Duration,
    pub(super) script_memory: usize,
    pub(super) allow_debug: bool,
}

impl Settings {
    pub(super) fn script_limits(&self) -> Limits {
        Limits { time: Some(self.script_time), memory: self.script_memory }
    }
}

impl Executor {
    /// `CONFIG` and its subcommands.
    pub(super) fn config_command(&mut self, args: &[Bytes], reply: &mut Reply) -> Result {
        match (args[1].to_ascii_uppercase().as_slice(), &args[2..]) {
            (b"GET", patterns @ [_, ..]) => {
                let all = self.all_settings();
                let mut found: Vec<(&[u8], &str)> = Vec::new();
                for pattern in patterns {
                    let is_glob = pattern.iter().any(|byte| b"[*?".contains(byte));
                    let lower = pattern.to_ascii_lowercase();
                    for (name, value) in &all {
                        if glob::matches(&lower, name.as_bytes())
                            && !found
                                .iter()
                                .any(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()))
                        {
                            // A name without wildcards is returned as the client spelled it.
                            let shown = if is_glob { name.as_bytes() } else { pattern };
                            found.push((shown, value));
                        }
                    }
                }
                reply.map(found.len());
                for (name, value) in found {
                    reply.bulk(name);
                    reply.bulk(value.as_bytes());
                }
            }
            (b"SET", pairs) if !pairs.is_empty() && pairs.len() % 2 == 0 => {
                // All or nothing: the first pass only validates.
                for pair in pairs.chunks(2) {
                    self.change(&pair[0], &pair[1], Change::Check)?;
                }
                for pair in pairs.chunks(2) {
                    self.change(&pair[0], &pair[1], Change::Make)?;
                }
                reply.ok();
            }
            (b"RESETSTAT", []) => {
                self.stats.commands = 0;
                self.stats.connections = 0;
                self.counters.rejected.store(0, Relaxed);
                self.stats.expired = 0;
                self.calls = Calls::default();
                reply.ok();
            }
            // `subcommands.rs` has checked the rest; only a `SET` with an incomplete pair gets
            // here.
            _ => return Err(error::SYNTAX),
        }
        Ok(())
    }

    fn all_settings(&self) -> Vec<(&'static str, String)> {
        let settings = &self.settings;
        let fsync = match settings.fsync {
            Some(Fsync::Always) => "always",
            Some(Fsync::EverySec) | None => "everysec",
            Some(Fsync::Never) => "no",
        };
        let busy = self.counters.busy_threshold_ms.load(Relaxed).to_string();
        let journal = if settings.fsync.is_some() { "yes" } else { "no" };
        vec![
            ("appendfsync", fsync.to_owned()),
            ("appendonly", journal.to_owned()),
            ("busy-reply-threshold", busy.clone()),
            ("databases", crate::db::DATABASES.to_string()),
            ("dir", settings.dir.clone()),
            ("lua-time-limit", busy),
            ("maxclients", self.counters.max_clients.load(Relaxed).to_string()),
            ("maxmemory", self.memory.limit().to_string()),
            ("maxmemory-policy", "noeviction".to_owned()),
            ("notify-keyspace-events", String::new()),
            ("port", settings.port.to_string()),
            ("proto-max-bulk-len", MAX_BULK.to_string()),
            ("requirepass", settings.password.clone().unwrap_or_default()),
            ("save", String::new()),
            ("slowlog-log-slower-than", self.slowlog.threshold_us.to_string()),
            ("slowlog-max-len", self.slowlog.max_len.to_string()),
            ("timeout", "0".to_owned()),
        ]
    }

    fn change(&mut self, name: &[u8], value: &[u8], change: Change) -> Result {
        let name = String::from_utf8_lossy(name).to_lowercase();
        let number = parse_int(value).filter(|value| *value >= 0);
        let make = change == Change::Make;
        match (name.as_str(), number) {
            ("slowlog-log-slower-than", _) => {
                let threshold = parse_int(value).ok_or_else(|| not_a_number(&name))?;
                if make {
                    self.slowlog.threshold_us = threshold;
                }
            }
            ("slowlog-max-len", Some(len)) => {
                if make {
                    self.slowlog.max_len = len as usize;
                }
            }
            ("maxclients", Some(most @ 1..)) => {
                if make {
                    let most = super::listen::raise_file_limit(most as usize);
                    self.counters.max_clients.store(most, Relaxed);
                }
            }
            ("busy-reply-threshold" | "lua-time-limit", Some(ms)) => {
                if make {
                    self.counters.busy_threshold_ms.store(ms as u64, Relaxed);
                }
            }
            ("appendfsync", _) => {
                let fsync = match value.to_ascii_lowercase().as_slice() {
                    b"always" => Fsync::Always,
                    b"everysec" => Fsync::EverySec,
                    b"no" => Fsync::Never,
                    _ => {
                        return Err(refused(
                            &name,
                            "argument(s) must be one of the following: everysec, always, no",
                        ));
                    }
                };
                let Some(journal) = &self.journal else {
                    return Err(refused(&name, "there is no journal: the server keeps nothing"));
                };
                if make {
                    journal.set_fsync(fsync);
                    self.settings.fsync = Some(fsync);
                    self.counters.waits_for_sync.store(fsync == Fsync::Always, Relaxed);
                }
            }
            // Values that tools set before a test or benchmark and that already hold here.
            ("save" | "notify-keyspace-events", _) if value.is_empty() => {}
            ("timeout", Some(0)) => {}
            ("maxmemory", _) => {
                let error = || refused(&name, "argument must be a memory value");
                let limit = parse_bytes(value).ok_or_else(error)?;
                if make {
                    self.memory.set_limit(limit);
                }
            }
            ("maxmemory-policy", _) if value.eq_ignore_ascii_case(b"noeviction") => {}
            ("maxmemory-policy", _) => {
                return Err(refused(&name, "only noeviction: a queue must not lose jobs"));
            }
            ("slowlog-max-len" | "maxclients" | "busy-reply-threshold" | "lua-time-limit", _) => {
                return Err(not_a_number(&name));
            }
            (known, _) if self.all_settings().iter().any(|(name, _)| *name == known) => {
                return Err(refused(&name, "can't set immutable config"));
            }
            _ => {
                let text =
                    format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'");
                return Err(Error::quoting(text));
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Check,
    Make,
}

fn refused(name: &str, why: &str) -> Error {
    Error::quoting(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
}

fn not_a_number(name: &str) -> Error {
    refused(name, "argument couldn't be parsed into an integer")
}
