//! What the studio of this process tells about itself.

use stampede_pool::Stats;

use crate::Studio;

/// Where stickers came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Bytes of the stickers in memory.
    pub bytes: u64,
    /// Answers from memory, and those that another caller was waiting for already.
    pub memory: u64,
    /// Answers from files.
    pub files: u64,
    /// Stickers that were drawn.
    pub drawn: u64,
}

/// Pool and cache of this process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StudioStats {
    /// The pool.
    pub pool: Stats,
    /// The cache.
    pub cache: CacheCounts,
}

impl Studio {
    /// Counts and durations at this moment. A pool that has not drawn yet has its size, and nothing else.
    pub async fn stats(&self) -> StudioStats {
        let desk = self.desk();
        let pool = match (desk.started_pool(), desk.config()) {
            (Some(pool), _) => pool.stats(),
            (None, Some(config)) => Stats {
                total_workers: config.threads,
                idle_workers: config.threads,
                queue_limit: config.queue,
                ..Stats::default()
            },
            (None, None) => Stats::default(),
        };
        StudioStats { pool, cache: desk.cache_counts().await }
    }
}
