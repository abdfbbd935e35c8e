//! Load, memory, names and processes, read from the system.

use std::fs;
use std::sync::{Mutex, PoisonError};

/// Bytes of a page of memory as `/proc` counts them.
fn page_size() -> u64 {
    rustix::param::page_size() as u64
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The load average of the last minute; 0 where it cannot be read.
pub(crate) fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// Memory that a process uses now, in bytes.
pub(crate) fn memory_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * page_size())
}

/// The name of this machine.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Names the start of the machine and the container within which process ids are comparable; empty if unknown.
pub(crate) fn boot() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = fs::read_link("/proc/self/ns/pid");
    match (boot, namespace) {
        (Ok(boot), Ok(namespace)) => format!("{} {}", boot.trim(), namespace.display()),
        _ => String::new(),
    }
}

/// Whether a process of this machine lives.
pub(crate) fn lives(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        // A zombie holds no resources.
        Ok(stat) => !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" Z")),
        Err(_) => false,
    }
}

/// Measures how many cores were busy between two calls.
#[derive(Debug, Default)]
pub(crate) struct Processors {
    last: Mutex<Option<(u64, u64)>>,
}

impl Processors {
    /// Cores that were busy since the last call; `None` at the first.
    pub(crate) fn busy(&self) -> Option<f64> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let now = read_stat(&text)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.replace(now)?;
        let (busy, all) = (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1));
        // The counters run over all cores, also those that this process may not use.
        let counted = text.lines().filter(|line| line.starts_with("cpu")).count().max(2) - 1;
        (all > 0).then(|| busy as f64 / all as f64 * counted as f64)
    }
}

/// Busy time and all time, from the first line of `/proc/stat`.
fn read_stat(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let times: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    // Guest time, which comes after these eight, is part of user time.
    let all: u64 = times.iter().take(8).sum();
    let idle: u64 = times.iter().skip(3).take(2).sum();
    (times.len() >= 5).then(|| (all - idle, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_for_disks_is_not_busy() {
        let text = "cpu  10 2 3 100 50 1 1 3 7 0\ncpu0 1 2 3 4 5\n";
        assert_eq!(read_stat(text), Some((20, 170)));
        assert_eq!(read_stat("nothing"), None);
    }

    #[test]
    fn this_process_lives_and_uses_memory() {
        assert!(lives(std::process::id()) && !lives(u32::MAX));
        assert!(memory_of(std::process::id()).is_some_and(|bytes| bytes > 100_000));
        assert!(load_average() >= 0.0 && cores() > 0);
    }
}
