//! Stickers on order: the room.
//!
//! ```text
//!   order ──▶ memory ──▶ files ──▶ pool ──▶ sticker, its file, memory
//!                                   │ full: Error::Full          (503, Retry-After)
//!                                   │ 10 s without an answer, or this process does not draw
//!                                   ▼
//!                       job `generate-sticker` ──▶ a worker: the same way, in its own pool
//!                       queue `stickers`
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `artist.rs` | what draws, as traits; formats, variants |
//! | `sticker_artist.rs` | the artist of the product: the crate `sticker` |
//! | `order.rs` | orders, checked; keys and names |
//! | `desk.rs` | memory, files, pool; one drawing for many callers |
//! | `draw.rs` | one order, several orders |
//! | `later.rs` | orders that become jobs; stickers asked for by name |
//! | `jobs/` | the job |
//! | `ahead.rs` | popular texts, drawn in advance |
//! | `stats.rs`, `error.rs` | counts; why there is no sticker |
//!
//! [`Studio`] is the one type that callers hold. This crate must never name statuses of our API.

mod ahead;
mod artist;
mod desk;
mod draw;
mod error;
mod jobs;
mod later;
mod order;
mod stats;
mod sticker_artist;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use stampede_broker::{Broker, Queue, QueueEvents, Work};
use stampede_files::Files;
use stampede_pool::Popular;
pub use stampede_pool::{Priority, Stats as PoolStats, Timing};
use tokio::sync::OnceCell;

use self::ahead::Wish;
pub use self::artist::{Artist, Draw, Format, NoFormat, NotDrawn, Variant};
use self::desk::Desk;
pub use self::draw::{Drawn, Sticker};
pub use self::error::Error;
pub use self::jobs::generate_sticker::GenerateSticker;
pub use self::later::LookedUp;
pub use self::order::{Key, Mistake, NoName, Order, StickerName};
pub use self::stats::{CacheCounts, StudioStats};
pub use self::sticker_artist::StickerArtist;

/// Bytes of stickers that are kept in memory.
const KEPT_BYTES: u64 = 64 << 20;

/// How much a process draws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Threads that draw; 0: none, every order becomes a job.
    pub threads: usize,
    /// Orders that may wait while all threads are busy.
    pub queue: usize,
    /// After this time an order becomes a job.
    pub patience: Duration,
}

impl Limits {
    /// The limits of a process that answers people.
    pub fn of_node(threads: usize, queue: usize) -> Self {
        Self { threads, queue, patience: Duration::from_secs(10) }
    }

    /// The limits of a worker process. There is one for each core, so it has one thread; its slots bound what waits.
    pub fn of_worker() -> Self {
        Self::of_node(1, jobs::generate_sticker::SLOTS)
    }
}

/// What the studio works with.
#[derive(Clone)]
pub struct Parts {
    /// Redis.
    pub broker: Broker,
    /// Where stickers are kept.
    pub files: Files,
    /// What draws.
    pub artist: Arc<dyn Artist>,
    /// How much is drawn.
    pub limits: Limits,
}

/// Stickers on order. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Studio {
    shared: Arc<Shared>,
}

struct Shared {
    desk: Desk,
    popular: Mutex<Popular<Wish>>,
    queue: Queue,
    /// Listens to the queue; made when a request waits for its job.
    events: OnceCell<QueueEvents>,
    patience: Duration,
}

impl Studio {
    /// Opens the queue. No thread is started before the first sticker is drawn ([`Studio::warm_up`]).
    pub async fn open(parts: Parts) -> Result<Self, stampede_broker::Error> {
        let Parts { broker, files, artist, limits } = parts;
        let queue = broker.queue(GenerateSticker::QUEUE).await?;
        let config = (limits.threads > 0).then(|| stampede_pool::Config {
            name: "sticker",
            threads: limits.threads,
            queue: limits.queue,
            ..stampede_pool::Config::default()
        });
        let shared = Shared {
            desk: Desk::new(artist, files, config, KEPT_BYTES),
            popular: Mutex::new(Popular::new(Instant::now())),
            queue,
            events: OnceCell::new(),
            patience: limits.patience,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Starts the threads and waits until they have loaded their fonts, so that the first request need not. Does nothing in a
    /// process that does not draw.
    pub async fn warm_up(&self) -> Result<(), Error> {
        let warm = match self.desk().pool() {
            Ok(pool) => pool.ready().await.map_err(error::Trouble::from),
            Err(error::Trouble::NoPool) => Ok(()),
            Err(trouble) => Err(trouble),
        };
        warm.map_err(|trouble| Error::from(&trouble))
    }

    /// The variants that ship.
    pub fn variants(&self) -> Vec<Variant> {
        self.artist().variants()
    }

    /// Answers orders that wait with [`Error::Unavailable`], and waits at most so long for those that are being drawn. Idempotent.
    pub async fn stop(&self, patience: Duration) {
        let Some(pool) = self.desk().started_pool() else { return };
        let left = tokio::task::spawn_blocking(move || pool.shutdown(patience)).await;
        if let Ok(stampede_pool::Left(left @ 1..)) = left {
            tracing::warn!(left, "threads still draw stickers; they end with the process");
        }
    }

    fn desk(&self) -> &Desk {
        &self.shared.desk
    }

    fn artist(&self) -> &dyn Artist {
        &*self.shared.desk.artist
    }

    fn popular(&self) -> &Mutex<Popular<Wish>> {
        &self.shared.popular
    }

    fn queue(&self) -> &Queue {
        &self.shared.queue
    }

    fn patience(&self) -> Duration {
        self.shared.patience
    }

    async fn events(&self) -> Result<&QueueEvents, stampede_broker::Error> {
        self.shared.events.get_or_try_init(|| self.shared.queue.events()).await
    }
}
