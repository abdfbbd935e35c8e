//! `INFO`, and `DEBUG` for tests.

use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;

use super::executor::Executor;
use crate::db::DATABASES;
use crate::error::{self, Error, Result};
use crate::journal::{Fsync, State};
use crate::reply::Reply;

/// The sections, in the order of the reply.
const SECTIONS: [&str; 9] = [
    "server",
    "clients",
    "memory",
    "persistence",
    "stats",
    "replication",
    "cpu",
    "cluster",
    "keyspace",
];

impl Executor {
    /// `INFO [section …]`.
    pub(super) fn info(&mut self, wanted: &[Bytes], reply: &mut Reply) {
        let is =
            |word: &str| wanted.iter().any(|given| given.eq_ignore_ascii_case(word.as_bytes()));
        let everything = is("all") || is("everything");
        let all = wanted.is_empty() || is("default") || everything;
        let mut parts = Vec::new();
        for section in SECTIONS {
            if all || is(section) {
                parts.push(self.section(section));
            }
        }
        if everything || is("commandstats") {
            parts.push(self.commandstats());
        }
        reply.verbatim(&parts.join("\r\n"));
    }

    /// Calls by command; the time of a script's commands counts as the script's.
    fn commandstats(&self) -> String {
        let mut text = "# Commandstats\r\n".to_owned();
        for (name, counted) in self.calls.iter() {
            let (calls, micros) = (counted.calls, counted.spent.as_micros());
            let each = if calls == 0 { 0.0 } else { micros as f64 / calls as f64 };
            let (rejected, failed) = (counted.rejected, counted.failed);
            let _ = write!(
                text,
                "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={each:.2},\
                 rejected_calls={rejected},failed_calls={failed}\r\n"
            );
        }
        text
    }

    fn section(&self, section: &str) -> String {
        let mut text = String::new();
        let (head, tail) = section.split_at(if section == "cpu" { 3 } else { 1 });
        let _ = write!(text, "# {}{tail}\r\n", head.to_uppercase());
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            let _ = write!(text, "{name}:{value}\r\n");
        };
        match section {
            "server" => {
                let uptime = self.stats.started.elapsed().as_secs();
                line("redis_version", &super::VERSION);
                line("server_name", &"stampede");
                line("redis_mode", &"standalone");
                line("os", &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
                line("arch_bits", &usize::BITS);
                line("process_id", &std::process::id());
                line("run_id", &self.stats.run_id);
                line("tcp_port", &self.settings.port);
                line("uptime_in_seconds", &uptime);
                line("uptime_in_days", &(uptime / 86_400));
            }
            "clients" => {
                let subscribers =
                    self.sessions.values().filter(|one| one.subscriptions() > 0).count();
                line("connected_clients", &self.counters.clients.load(Relaxed));
                line("maxclients", &self.counters.max_clients.load(Relaxed));
                line("blocked_clients", &self.blocked.len());
                line("pubsub_clients", &subscribers);
            }
            "memory" => {
                let (resident, peak) = memory();
                let total = total_memory();
                // The memory of the whole process: the keyspace does not count its bytes.
                line("used_memory", &resident);
                line("used_memory_human", &human(resident));
                line("used_memory_rss", &resident);
                line("used_memory_rss_human", &human(resident));
                line("used_memory_peak", &peak);
                line("used_memory_peak_human", &human(peak));
                line("total_system_memory", &total);
                line("total_system_memory_human", &human(total));
                line("used_memory_lua", &self.scripts.memory());
                line("used_memory_vm_total", &self.scripts.memory());
                line("number_of_cached_scripts", &self.scripts.len());
                line("maxmemory", &self.memory.limit());
                line("maxmemory_human", &human(self.memory.limit()));
                line("maxmemory_policy", &"noeviction");
                line("mem_fragmentation_ratio", &"1.00");
                line("mem_allocator", &"system");
            }
            "persistence" => self.persistence(&mut line),
            "stats" => {
                let (channels, patterns) = self.pubsub.counts();
                line("total_connections_received", &self.stats.connections);
                line("total_commands_processed", &self.stats.commands);
                line("instantaneous_ops_per_sec", &self.stats.rate);
                line("rejected_connections", &self.counters.rejected.load(Relaxed));
                line("expired_keys", &self.stats.expired);
                line("evicted_keys", &0);
                line("pubsub_channels", &channels);
                line("pubsub_patterns", &patterns);
            }
            "cpu" => {
                let (user, system) = cpu_seconds();
                line("used_cpu_sys", &format!("{system:.6}"));
                line("used_cpu_user", &format!("{user:.6}"));
            }
            "cluster" => line("cluster_enabled", &0),
            "replication" => {
                line("role", &"master");
                line("connected_slaves", &0);
            }
            _ => {
                for index in 0..DATABASES {
                    let (keys, expires) = self.db.counts(index);
                    if keys > 0 {
                        let value = format!("keys={keys},expires={expires},avg_ttl=0");
                        line(&format!("db{index}"), &value);
                    }
                }
            }
        }
        text
    }

    fn persistence(&self, line: &mut dyn FnMut(&str, &dyn std::fmt::Display)) {
        line("loading", &0);
        line("async_loading", &0);
        line("rdb_changes_since_last_save", &self.stats.changes);
        line("rdb_bgsave_in_progress", &0);
        line("rdb_last_save_time", &self.stats.last_save);
        line("aof_enabled", &u8::from(self.journal.is_some()));
        line("aof_rewrite_in_progress", &u8::from(self.compactor.is_running()));
        let Some(status) = self.journal.as_ref().map(|journal| journal.watch().status()) else {
            return;
        };
        let ready = matches!(status.state, State::Ready | State::Busy);
        line("aof_last_write_status", &if ready { "ok" } else { "err" });
        line("aof_last_bgrewrite_status", &if self.compactor.has_failed() { "err" } else { "ok" });
        line("aof_current_size", &(status.log_bytes + status.snapshot_bytes));
        line("aof_base_size", &status.snapshot_bytes);
        line("aof_buffer_length", &status.memory);
        let policy = match status.fsync {
            Fsync::Always => "always",
            Fsync::EverySec => "everysec",
            Fsync::Never => "never",
        };
        line("journal_fsync", &policy);
        line("journal_appended", &status.appended.0);
        line("journal_written", &status.written.0);
        line("journal_durable", &status.durable.0);
        line("journal_syncs", &status.syncs);
        if let Some(reason) = status.state.reason() {
            line("journal_refuses_because", &reason);
        }
    }

    /// `DEBUG SLEEP` and `DEBUG PANIC`, if allowed: for tests with a slow or a failing server.
    pub(super) fn debug_command(&mut self, args: &[Bytes], reply: &mut Reply) -> Result {
        if !self.settings.allow_debug {
            return Err(Error::Fixed(
                "ERR DEBUG command not allowed. Start the server with debugging allowed to use it.",
            ));
        }
        match (args[1].to_ascii_uppercase().as_slice(), &args[2..]) {
            (b"SLEEP", [seconds]) => {
                let seconds = crate::number::parse_float(seconds).ok_or(error::NOT_FLOAT)?;
                std::thread::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 60.0)));
                reply.ok();
                Ok(())
            }
            (b"PANIC", []) => panic!("DEBUG PANIC"),
            _ => Err(error::subcommand_syntax("debug", &args[1])),
        }
    }
}

/// The resident memory of the process and its peak, in bytes.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    (kilobytes(&status, "VmRSS:"), kilobytes(&status, "VmHWM:"))
}

/// CPU seconds of the process, in user and in system mode.
fn cpu_seconds() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name, in parentheses, may contain anything; the numbers follow it.
    let numbers = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> = numbers.split(' ').filter_map(|text| text.parse().ok()).collect();
    let second = rustix::param::clock_ticks_per_second() as f64;
    // The state is not a number, so user time is the 11th and system time the 12th.
    (ticks.get(10).copied().unwrap_or(0.0) / second, ticks.get(11).copied().unwrap_or(0.0) / second)
}

fn total_memory() -> u64 {
    kilobytes(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal:")
}

/// Reads a figure such as `VmRSS:   1234 kB`, in bytes.
pub(super) fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

fn human(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "K", "M", "G", "T"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes}B") } else { format!("{value:.2}{unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.2}P")
}
