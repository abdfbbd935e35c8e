//! Which queues there are.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::{cmd, pipe};

use crate::queue::names::check_queue_name;
use crate::queue::redis_keys::Keys;
use crate::{Broker, Error};

/// For how long queues are not looked for again.
const NAMES_KNOWN: Duration = Duration::from_secs(5);

/// The names of queues that were found or used lately. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct QueueNames(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    found: Option<(Instant, BTreeSet<String>)>,
    used: BTreeSet<String>,
}

impl QueueNames {
    /// This process has a handle on the queue.
    pub(crate) fn use_one(&self, name: &str) {
        self.lock().used.insert(name.to_owned());
    }

    fn recently_found(&self) -> Option<BTreeSet<String>> {
        let known = self.lock();
        let (when, names) = known.found.as_ref()?;
        (when.elapsed() < NAMES_KNOWN).then(|| names.clone())
    }

    fn found(&self, names: BTreeSet<String>) {
        let mut known = self.lock();
        known.found = Some((Instant::now(), names));
        known.used.clear();
    }

    fn used(&self) -> BTreeSet<String> {
        self.lock().used.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Broker {
    /// Whether a queue of this name exists.
    pub async fn has_queue(&self, name: &str) -> Result<bool, Error> {
        check_queue_name(name)?;
        let meta = Keys::new(self.prefix(), name).part("meta");
        Ok(cmd("EXISTS").arg(meta).query_async(&mut self.redis()).await?)
    }

    /// The names of all queues in this Redis, dead-letter queues among them. One that others have just made may
    /// be missing for some seconds: looking for them means looking at all keys there are.
    pub async fn queue_names(&self) -> Result<BTreeSet<String>, Error> {
        let mut names = match self.names().recently_found() {
            Some(names) => names,
            None => {
                let names = self.find_queue_names().await?;
                self.names().found(names.clone());
                names
            }
        };
        names.extend(self.names().used());
        let mut are_there = pipe();
        for name in &names {
            are_there.exists(Keys::new(self.prefix(), name).part("meta"));
        }
        if names.is_empty() {
            return Ok(names);
        }
        let are_there: Vec<bool> = are_there.query_async(&mut self.redis()).await?;
        let there = names.into_iter().zip(are_there).filter(|(_, is_there)| *is_there);
        Ok(there.map(|(name, _)| name).collect())
    }

    async fn find_queue_names(&self) -> Result<BTreeSet<String>, Error> {
        let before = format!("{}:", self.prefix());
        let mut names = BTreeSet::new();
        let mut cursor = 0_u64;
        loop {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{before}*:meta")).arg("COUNT").arg(1000);
            let (next, keys): (u64, Vec<String>) = self.ask_home(scan).await?;
            let name =
                |key: &String| Some(key.strip_prefix(&before)?.strip_suffix(":meta")?.to_owned());
            names
                .extend(keys.iter().filter_map(name).filter(|name| check_queue_name(name).is_ok()));
            if next == 0 {
                return Ok(names);
            }
            cursor = next;
        }
    }
}
