//! What a pool tells about itself.

use crate::Timing;

/// Counts and durations of a pool at one moment. The first five are those of the former software's `getStats()`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// Threads: `totalWorkers`.
    pub total_workers: usize,
    /// Threads that run a task: `busyWorkers`.
    pub busy_workers: usize,
    /// All other threads: `idleWorkers`.
    pub idle_workers: usize,
    /// Tasks that wait: `queueSize`.
    pub queue_size: usize,
    /// Tasks that ended without a panic: `tasksCompleted`.
    pub tasks_completed: u64,
    /// Tasks that panicked, or whose thread could not be warmed up.
    pub tasks_failed: u64,
    /// Tasks that were not accepted because there was no room.
    pub tasks_refused: u64,
    /// Most tasks that may wait.
    pub queue_limit: usize,
    /// From the submission to the beginning.
    pub wait: Timing,
    /// From the beginning to the end.
    pub run: Timing,
}
