//! Finds a sticker or draws it: memory, then files, then the pool. Of callers who want the same sticker one draws it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use stampede_files::Files;
use stampede_pool::{Batch, Config, Found, Pool, Priority, Results, Ticket};

use crate::artist::{Artist, Draw, NotDrawn};
use crate::error::Trouble;
use crate::order::{Order, StickerName};
use crate::stats::CacheCounts;

/// Memory of a sticker beside its bytes.
const OVERHEAD: usize = 200;
/// A sticker that nobody asked for during this time leaves the memory; its file stays.
const IDLE: Duration = Duration::from_secs(3_600);

/// The drawer of a thread.
pub(crate) type Drawer = Box<dyn Draw>;
/// What the pool answers.
type Drawing = Result<Vec<u8>, NotDrawn>;

/// Finds and draws.
pub(crate) struct Desk {
    pub(crate) artist: Arc<dyn Artist>,
    files: Files,
    kept: Results<StickerName, Bytes>,
    /// `None`: this process does not draw.
    config: Option<Config>,
    /// Started when the first sticker is drawn: most workers draw none.
    pool: Mutex<Option<Pool<Drawer>>>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    memory: AtomicU64,
    files: AtomicU64,
    drawn: AtomicU64,
}

impl Desk {
    pub(crate) fn new(
        artist: Arc<dyn Artist>,
        files: Files,
        config: Option<Config>,
        bytes: u64,
    ) -> Self {
        let kept = Results::new(bytes, IDLE, |sticker: &Bytes| sticker.len() + OVERHEAD);
        Self { artist, files, kept, config, pool: Mutex::new(None), counts: Counts::default() }
    }

    /// The sticker of an order.
    pub(crate) async fn sticker(
        &self,
        order: &Order,
        priority: Priority,
    ) -> Result<Bytes, Arc<Trouble>> {
        let make = async {
            if let Some(bytes) = self.file_of(order.name).await {
                return Ok(bytes);
            }
            let ticket = self.pool()?.submit(priority, self.task(order))?;
            self.drawn(order.name, ticket).await
        };
        self.found(order.name, make).await
    }

    /// The sticker of an order that the pool has accepted already.
    pub(crate) async fn accepted(
        &self,
        order: &Order,
        ticket: Ticket<Drawing>,
    ) -> Result<Bytes, Arc<Trouble>> {
        self.found(order.name, self.drawn(order.name, ticket)).await
    }

    /// Takes room for all orders, or for none.
    pub(crate) fn submit(
        &self,
        orders: &[Order],
        priority: Priority,
    ) -> Result<Vec<Ticket<Drawing>>, Trouble> {
        let tasks = orders.iter().map(|order| self.task(order)).collect();
        Ok(self.pool()?.submit_batch(priority, tasks).map(Batch::into_tickets)?)
    }

    /// The sticker, if it need not be drawn.
    pub(crate) async fn made(&self, name: StickerName) -> Option<Bytes> {
        if let Some(bytes) = self.kept.get(&name).await {
            self.counts.memory.fetch_add(1, Relaxed);
            return Some(bytes);
        }
        let bytes = self.file_of(name).await?;
        self.kept.keep(name, bytes.clone()).await;
        Some(bytes)
    }

    /// Whether the sticker need not be drawn. Its file is not read.
    pub(crate) async fn is_made(&self, name: StickerName) -> bool {
        self.kept.get(&name).await.is_some()
            || self.files.size(&name.file()).await.is_ok_and(|size| size.is_some_and(|it| it > 0))
    }

    /// Whether there is a file of this length.
    pub(crate) async fn has_file(&self, name: StickerName, length: usize) -> bool {
        let size = self.files.size(&name.file()).await;
        size.is_ok_and(|size| size == Some(length as u64))
    }

    /// Writes the file of a sticker.
    pub(crate) async fn save(
        &self,
        name: StickerName,
        bytes: &Bytes,
    ) -> Result<(), stampede_files::Error> {
        self.files.put(&name.file(), bytes.to_vec()).await
    }

    async fn found(
        &self,
        name: StickerName,
        make: impl Future<Output = Result<Bytes, Trouble>>,
    ) -> Result<Bytes, Arc<Trouble>> {
        let found = self.kept.get_or_make(name, make).await?;
        if matches!(found, Found::Kept(_)) {
            self.counts.memory.fetch_add(1, Relaxed);
        }
        Ok(found.into_value())
    }

    /// Waits for the pool, and writes the file, so that other nodes find it. Without the file the sticker is answered all the same.
    async fn drawn(&self, name: StickerName, ticket: Ticket<Drawing>) -> Result<Bytes, Trouble> {
        let bytes = Bytes::from(ticket.await??);
        self.counts.drawn.fetch_add(1, Relaxed);
        if let Err(error) = self.save(name, &bytes).await {
            tracing::warn!(sticker = %name, %error, "a sticker was drawn, and its file not written");
        }
        Ok(bytes)
    }

    /// The file of a sticker. A file that is damaged counts as missing, and is written again.
    async fn file_of(&self, name: StickerName) -> Option<Bytes> {
        let bytes = match self.files.get(&name.file()).await {
            Ok(bytes) => bytes?,
            Err(error) => {
                tracing::warn!(sticker = %name, %error, "the file of a sticker cannot be read");
                return None;
            }
        };
        if !name.format.is_whole(&bytes) {
            tracing::warn!(sticker = %name, "the file of a sticker is damaged");
            return None;
        }
        self.counts.files.fetch_add(1, Relaxed);
        Some(Bytes::from(bytes))
    }

    fn task(&self, order: &Order) -> impl FnOnce(&mut Drawer) -> Drawing + Send + 'static {
        let Order { text, variant, name } = order.clone();
        move |drawer| drawer.draw(&text, &variant, name.format)
    }

    /// The pool, which is started if it has not been.
    pub(crate) fn pool(&self) -> Result<Pool<Drawer>, Trouble> {
        let config = self.config.as_ref().ok_or(Trouble::NoPool)?;
        let mut pool = self.pool.lock();
        if let Some(pool) = &*pool {
            return Ok(pool.clone());
        }
        let artist = self.artist.clone();
        let started = Pool::start(config, move || artist.drawer())
            .map_err(|error| Trouble::NoThreads(error.to_string()))?;
        Ok(pool.insert(started).clone())
    }

    /// The pool, if it was started.
    pub(crate) fn started_pool(&self) -> Option<Pool<Drawer>> {
        self.pool.lock().clone()
    }

    /// How large the pool is; `None`: this process does not draw.
    pub(crate) fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    pub(crate) async fn cache_counts(&self) -> CacheCounts {
        CacheCounts {
            bytes: self.kept.bytes().await,
            memory: self.counts.memory.load(Relaxed),
            files: self.counts.files.load(Relaxed),
            drawn: self.counts.drawn.load(Relaxed),
        }
    }
}
