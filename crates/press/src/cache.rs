//! A cache of compiled templates. Of callers that want the same one, one compiles it and the others wait.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::{Error, Ready};

/// Templates kept in memory. A few events are printed at a time; the store keeps all templates.
const KEPT: usize = 32;
/// Bytes of templates kept in memory: with fonts and pictures of organisers, one can have a hundred megabytes.
const KEPT_BYTES: usize = 256 << 20;

/// A template that failed is not compiled again for this long: one that runs into its time limit must not do
/// so for every ticket.
const FAILURE_STANDS: Duration = Duration::from_secs(20);

type Slot = Arc<OnceCell<Entry>>;

#[derive(Clone)]
struct Entry {
    result: Result<Arc<Ready>, Error>,
    made: Instant,
}

#[derive(Default)]
pub(crate) struct Cache {
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    by_key: HashMap<String, (Slot, u64)>,
    /// Counts uses: the slot with the smallest number was used longest ago.
    clock: u64,
}

impl Cache {
    /// The template under the key, or else the one that `make` makes. Concurrent callers make it once.
    pub(crate) async fn get(
        &self,
        key: &str,
        make: impl Future<Output = Result<Ready, Error>>,
    ) -> Result<Arc<Ready>, Error> {
        let slot = self.slots.lock().slot(key);
        let is_new = !slot.initialized();
        let entry = slot
            .get_or_try_init(async || {
                let result = match make.await {
                    Ok(ready) => Ok(Arc::new(ready)),
                    // An outage is not kept: the next caller tries again.
                    Err(error @ (Error::Store(_) | Error::Unavailable(_))) => return Err(error),
                    Err(error) => Err(error),
                };
                Ok(Entry { result, made: Instant::now() })
            })
            .await?;
        if is_new {
            self.slots.lock().fit(key, KEPT_BYTES);
        }
        entry.result.clone()
    }

    /// Whether [`Self::get`] would answer without making anything.
    pub(crate) fn knows(&self, key: &str) -> bool {
        let slots = self.slots.lock();
        slots.by_key.get(key).is_some_and(|(slot, _)| slot.initialized() && !has_expired(slot))
    }
}

impl Slots {
    fn slot(&mut self, key: &str) -> Slot {
        self.clock += 1;
        if let Some((slot, used)) = self.by_key.get_mut(key)
            && !has_expired(slot)
        {
            *used = self.clock;
            return slot.clone();
        }
        if self.by_key.len() >= KEPT {
            self.remove_oldest(key);
        }
        let slot = Slot::default();
        self.by_key.insert(key.to_owned(), (slot.clone(), self.clock));
        slot
    }

    /// Forgets templates until the others fit into so many bytes; the one under `kept` stays.
    fn fit(&mut self, kept: &str, most: usize) {
        let bytes = |(slot, _): &(Slot, u64)| {
            let ready = slot.get().and_then(|entry| entry.result.as_ref().ok());
            ready.map_or(0, |ready| ready.bytes())
        };
        while self.by_key.values().map(bytes).sum::<usize>() > most {
            if !self.remove_oldest(kept) {
                return;
            }
        }
    }

    /// Forgets the template that was used longest ago, but not the one under `kept`.
    fn remove_oldest(&mut self, kept: &str) -> bool {
        let others = self.by_key.iter().filter(|(key, _)| *key != kept);
        let oldest = others.min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.by_key.remove(&key).is_some())
    }
}

/// Whether the slot holds a failed compilation that is old enough to be tried again.
fn has_expired(slot: &Slot) -> bool {
    slot.get().is_some_and(|entry| entry.result.is_err() && entry.made.elapsed() > FAILURE_STANDS)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn mistake() -> Error {
        Error::Stopped("took too long".into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_stands_for_a_while_and_is_made_by_one_caller() {
        let (cache, made) = (Cache::default(), AtomicU32::new(0));
        let attempt = || {
            cache.get("k", async {
                made.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
                Err(mistake())
            })
        };
        let both = tokio::join!(attempt(), attempt());
        assert!(both.0.is_err() && both.1.is_err());
        assert!(attempt().await.is_err());
        assert_eq!(made.load(Ordering::Relaxed), 1);
        tokio::time::advance(FAILURE_STANDS + Duration::from_secs(1)).await;
        assert!(attempt().await.is_err());
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn an_outage_is_not_remembered() {
        let cache = Cache::default();
        for _ in 0..2 {
            let away = cache.get("k", async { Err(Error::Unavailable("away".into())) }).await;
            assert!(matches!(away, Err(Error::Unavailable(_))));
        }
        let other = cache.get("k", async { Err(mistake()) }).await;
        assert!(matches!(other, Err(Error::Stopped(_))));
    }

    #[tokio::test]
    async fn templates_are_forgotten_when_they_take_too_many_bytes() {
        use stampede_render::compiled::{Compiled, Typeset};
        let (cache, files) = (Cache::default(), vec![("a".to_owned(), vec![0; 1_000])]);
        let blob =
            stampede_render::encode(&Compiled::Typeset(Typeset { reason: String::new(), files }));
        for key in ["1", "2", "3"] {
            cache.get(key, async { Ready::new("r", &blob) }).await.unwrap();
            assert!(cache.knows(key));
        }
        cache.get("1", async { Err(mistake()) }).await.unwrap();
        let mut slots = cache.slots.lock();
        slots.fit("3", 2_500);
        assert!(slots.by_key.contains_key("1") && !slots.by_key.contains_key("2"));
        slots.fit("3", 10);
        let left: Vec<&String> = slots.by_key.keys().collect();
        assert_eq!(left, ["3"], "the template that was just made stays");
    }

    #[test]
    fn the_one_used_longest_ago_goes_first() {
        let mut slots = Slots::default();
        for n in 0..KEPT {
            slots.slot(&n.to_string());
        }
        slots.slot("0");
        slots.slot("new");
        assert_eq!(slots.by_key.len(), KEPT);
        assert!(slots.by_key.contains_key("0") && !slots.by_key.contains_key("1"));
    }
}
