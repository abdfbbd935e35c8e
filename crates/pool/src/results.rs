//! Finished answers, kept in memory.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;

/// An answer, and where it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<V> {
    /// It was kept, or another caller has just made it.
    Kept(V),
    /// This caller made it.
    Made(V),
}

impl<V> Found<V> {
    /// The answer.
    pub fn into_value(self) -> V {
        match self {
            Self::Kept(value) | Self::Made(value) => value,
        }
    }
}

/// Answers by key: so many bytes, each until it was not asked for during a time. Cheap to clone; all clones are the same.
pub struct Results<K, V> {
    cache: Cache<K, V>,
}

impl<K, V> Clone for Results<K, V> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone() }
    }
}

impl<K, V> Results<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Keeps answers of `bytes` in all, as `size_of` measures them, and forgets those that nobody asked for during `idle`.
    pub fn new(
        bytes: u64,
        idle: Duration,
        size_of: impl Fn(&V) -> usize + Send + Sync + 'static,
    ) -> Self {
        let weigher = move |_: &K, value: &V| u32::try_from(size_of(value)).unwrap_or(u32::MAX);
        let cache = Cache::builder().max_capacity(bytes).weigher(weigher).time_to_idle(idle);
        Self { cache: cache.build() }
    }

    /// The answer, if it is kept.
    pub async fn get(&self, key: &K) -> Option<V> {
        self.cache.get(key).await
    }

    /// The answer that is kept, or else the one that `make` makes. Of concurrent callers one makes it. When that caller is
    /// dropped, another goes on with its own `make`. An error goes to all who wait for it, and is not kept.
    pub async fn get_or_make<E>(
        &self,
        key: K,
        make: impl Future<Output = Result<V, E>>,
    ) -> Result<Found<V>, Arc<E>>
    where
        E: Send + Sync + 'static,
    {
        let entry = self.cache.entry(key).or_try_insert_with(make).await?;
        Ok(match entry.is_fresh() {
            true => Found::Made(entry.into_value()),
            false => Found::Kept(entry.into_value()),
        })
    }

    /// Keeps an answer.
    pub async fn keep(&self, key: K, value: V) {
        self.cache.insert(key, value).await;
    }

    /// How many bytes are kept, after what is due has been forgotten.
    pub async fn bytes(&self) -> u64 {
        self.cache.run_pending_tasks().await;
        self.cache.weighted_size()
    }
}
