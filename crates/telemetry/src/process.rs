//! What the system knows about this process. The names are those that all Prometheus clients use.

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};

use crate::Metrics;

impl Metrics {
    /// Reads processor time, memory, files and threads of this process. What cannot be read, outside of Linux say, is not shown.
    pub fn show_process(&self) {
        let table = &self.table;
        if let Some(stat) =
            fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(read_stat)
        {
            let ticks = clock_ticks_per_second() as f64;
            table.cpu.with(&[]).set(stat.cpu_ticks as f64 / ticks);
            table.threads.with(&[]).set(stat.threads as f64);
            table.virtual_memory.with(&[]).set(stat.virtual_bytes as f64);
            table.resident_memory.with(&[]).set((stat.resident_pages * page_size() as u64) as f64);
            if let Some(boot) = boot_time() {
                table.start_time.with(&[]).set(boot as f64 + stat.started_ticks as f64 / ticks);
            }
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            // One of them is this folder itself.
            table.open_files.with(&[]).set(files.count().saturating_sub(1) as f64);
        }
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        if let Some(most) = most_files(&limits) {
            table.most_files.with(&[]).set(most as f64);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    started_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

/// Reads `/proc/self/stat`. The name of the program, in parentheses, may contain anything.
fn read_stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first field after the name is the third of proc(5).
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Stat {
        cpu_ticks: field(14)? + field(15)?,
        threads: field(20)?,
        started_ticks: field(22)?,
        virtual_bytes: field(23)?,
        resident_pages: field(24)?,
    })
}

/// When the machine was started, in seconds since 1970.
fn boot_time() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn most_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_system_are_read_behind_any_name() {
        let text =
            "7 (a) b (c)) S 1 7 7 0 -1 4194560 100 0 0 0 12 3 0 0 20 0 9 0 555 1000 42 184467";
        let wanted = Stat {
            cpu_ticks: 15,
            threads: 9,
            started_ticks: 555,
            virtual_bytes: 1000,
            resident_pages: 42,
        };
        assert_eq!(read_stat(text), Some(wanted));
        assert_eq!(read_stat("7 (a) S 1"), None);
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files  1024  4096  files\n";
        assert_eq!(most_files(limits), Some(1024));
        assert_eq!(most_files("Max open files  unlimited  unlimited  files"), None);
    }
}
