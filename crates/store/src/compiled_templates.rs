//! Compiled templates: a cache that all processes share, bounded in size.

use async_trait::async_trait;
use stampede_model::Timestamp;

use crate::Result;

/// Total size of the cache; the oldest entries above it are deleted.
const MAX_CACHE_BYTES: u64 = 512 << 20;

/// The cache of compiled templates. A key is a hash of everything the entry was made from, so one key
/// always stands for equal bytes, and any entry may be deleted at any time.
#[async_trait]
pub trait CompiledTemplates: Send + Sync {
    /// Reads the entry of a key.
    async fn compiled_template(&self, key: &str) -> Result<Option<Vec<u8>>>;

    /// Reads the keys of all entries, the newest first.
    async fn compiled_template_keys(&self) -> Result<Vec<String>>;

    /// Writes an entry and deletes the oldest entries above the size of the cache.
    ///
    /// Relaxed: a lost entry is compiled again.
    async fn keep_compiled_template(&self, key: &str, blob: &[u8], now: Timestamp) -> Result<()> {
        self.keep_compiled_within(MAX_CACHE_BYTES, key, blob, now).await
    }

    /// Writes an entry into a cache of at most `max_bytes`. The entry itself stays even if it is larger.
    #[doc(hidden)]
    async fn keep_compiled_within(
        &self,
        max_bytes: u64,
        key: &str,
        blob: &[u8],
        now: Timestamp,
    ) -> Result<()>;
}
