//! CPU time and memory of a process and all below it, from /proc.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// One process.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    /// What it is: `server` (the engine is in it), `worker 1234`.
    pub(crate) name: String,
    /// CPU seconds, user and system.
    pub(crate) seconds: f64,
}

/// CPU times of several processes.
#[derive(Debug, Default)]
pub(crate) struct CpuTimes {
    by_pid: BTreeMap<u32, Process>,
}

impl CpuTimes {
    /// The process `root` and all its descendants.
    pub(crate) fn of_tree(root: u32) -> Self {
        let stats: Vec<(u32, u32, f64)> = std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|pid| read_stat(pid).map(|(parent, seconds)| (pid, parent, seconds)))
            .collect();
        let mut times = Self::default();
        let mut look_below = vec![root];
        while let Some(pid) = look_below.pop() {
            if let Some((_, _, seconds)) = stats.iter().find(|(id, ..)| *id == pid) {
                times.by_pid.insert(pid, Process { name: name(pid, root), seconds: *seconds });
            }
            look_below
                .extend(stats.iter().filter(|(_, parent, _)| *parent == pid).map(|(id, ..)| *id));
        }
        times
    }

    /// What was used since an earlier look.
    pub(crate) fn since(mut self, earlier: &Self) -> Self {
        for (pid, process) in &mut self.by_pid {
            process.seconds -= earlier.by_pid.get(pid).map_or(0.0, |before| before.seconds);
        }
        self
    }

    /// All processes, the first one first.
    pub(crate) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.by_pid.values()
    }

    /// Sums by kind of process.
    pub(crate) fn by_kind(&self) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for process in self.by_pid.values() {
            let kind = process.name.split(' ').next().unwrap_or_default();
            *sums.entry(kind.to_owned()).or_default() += process.seconds;
        }
        sums
    }
}

/// Memory of several processes, in bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Memory {
    /// Shared pages count once.
    pub(crate) proportional: u64,
    /// Shared pages count for each process.
    pub(crate) resident: u64,
}

/// Memory of the process `root` and all its descendants.
pub(crate) fn memory_of_tree(root: u32) -> Memory {
    let mut sum = Memory::default();
    for pid in CpuTimes::of_tree(root).by_pid.into_keys() {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        };
        sum.proportional += field("Pss:").unwrap_or(0) << 10;
        sum.resident += field("Rss:").unwrap_or(0) << 10;
    }
    sum
}

/// By how much the memory of one process grows from a moment on.
pub(crate) struct Growth {
    pid: u32,
    before_kb: u64,
}

impl Growth {
    /// The peak starts anew here.
    pub(crate) fn begin(pid: u32) -> Result<Self> {
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5")?;
        Ok(Self { pid, before_kb: line_of(pid, "VmRSS:")? })
    }

    /// MB that the peak since then lies above the beginning.
    pub(crate) fn grown_mb(&self) -> Result<f64> {
        let peak_kb = line_of(self.pid, "VmHWM:")?;
        Ok(peak_kb.saturating_sub(self.before_kb) as f64 / 1024.0)
    }
}

/// A number of KB from `/proc/<pid>/status`.
fn line_of(pid: u32, name: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    number.with_context(|| format!("/proc/{pid}/status has no {name}"))
}

/// Parent and CPU seconds of a process.
pub(crate) fn read_stat(pid: u32) -> Option<(u32, f64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; the numbers follow the last one.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    let seconds = (ticks(11)? + ticks(12)?) / rustix::param::clock_ticks_per_second() as f64;
    Some((fields.get(1)?.parse().ok()?, seconds))
}

fn name(pid: u32, root: u32) -> String {
    if pid == root {
        return "server".to_owned();
    }
    format!("worker {pid}")
}
