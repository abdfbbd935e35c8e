//! Dead letters: jobs that failed permanently, in `<queue>-dlq`, with all data that a replay needs.
//!
//! The dead letter is written in the transaction that fails the job (`scripts/letters.rs`), so there is never one
//! without the other. The dead-letter queue is an ordinary BullMQ queue that no worker consumes: Bull Board shows
//! it, Node's clients read it. The id of a letter is the id of its job. Its data are `{jobId, payload, reason}`,
//! names older software relies on (`docs/compatibility.md`), and the history of the job.

use futures::stream::{self, Stream, StreamExt};
use redis::{cmd, pipe};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::queue::job::Job;
use crate::queue::options::{check_size, options_again};
use crate::queue::redis_keys::Keys;
use crate::queue::scripts::{self, Again, NewJob, NewLetter};
use crate::{Error, Queue, now_ms};

/// The channel on which dead letters are announced: `{queue, jobId, name, reason}`. A name older software relies on
/// (`docs/compatibility.md`).
const CHANNEL: &str = "queue:dead-letter";

/// Letters read in one call.
const PAGE: usize = 200;
/// Letters that one search reads before it returns where to continue.
const SEARCH_AT_MOST: usize = 20_000;
/// Letters that are replayed or removed at the same time.
const AT_ONCE: usize = 32;
/// Most letters that one call replays, retries or removes.
pub(crate) const MOST_IN_ONE_CALL: usize = 10_000;

/// Parents of parents that wait again when a job is replayed.
const MOST_PARENTS: usize = 100;

/// A job that failed permanently. Older software writes only `jobId`, `payload` and `reason`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The job's id, and the letter's.
    pub job_id: String,
    /// The queue of the job.
    #[serde(default)]
    pub queue: String,
    /// The name of the job's type.
    #[serde(default)]
    pub name: String,
    /// The payload of the job, as its hash has it; a text if that was not JSON.
    pub payload: Box<RawValue>,
    /// Why the job failed.
    pub reason: String,
    /// How many attempts the job had.
    #[serde(default)]
    pub attempts_made: u32,
    /// The stack traces of its attempts.
    #[serde(default)]
    pub stacktrace: Vec<String>,
    /// The options of the job, as its hash has them.
    #[serde(default)]
    pub opts: Box<RawValue>,
    /// When the job was added, in milliseconds since 1970.
    #[serde(default)]
    pub added_at: u64,
    /// When the job failed, in milliseconds since 1970.
    #[serde(default)]
    pub failed_at: u64,
}

impl DeadLetter {
    /// The letter of a job that fails now.
    pub(crate) fn of(queue: &str, job: &Job, reason: &str, stack: &[String], now_ms: u64) -> Self {
        Self {
            job_id: job.id.clone(),
            queue: queue.to_owned(),
            name: job.name.clone(),
            payload: raw(&job.raw_data),
            reason: reason.to_owned(),
            attempts_made: job.attempts_made.saturating_add(1),
            stacktrace: stack.to_vec(),
            opts: raw(&job.raw_options),
            added_at: job.timestamp,
            failed_at: now_ms,
        }
    }

    /// What the script writes, and what is announced.
    pub(crate) fn to_write(&self) -> NewLetter<'_> {
        let message = json!({
            "queue": self.queue, "jobId": self.job_id, "name": self.name, "reason": self.reason,
        });
        NewLetter {
            name: &self.name,
            reason: &self.reason,
            // A struct of texts and numbers always serialises.
            data: serde_json::to_string(self).unwrap_or_default(),
            channel: CHANNEL,
            message: message.to_string(),
        }
    }

    fn contains(&self, text: &str) -> bool {
        let parts = [&self.job_id, &self.name, self.payload.get(), &self.reason];
        parts.iter().any(|part| part.contains(text))
    }
}

/// A page of letters.
#[derive(Debug, Clone, Serialize)]
pub struct FoundLetters {
    /// Letters, at most as many as were asked for.
    pub letters: Vec<DeadLetter>,
    /// Where the next page begins; `None`: there are no more.
    pub next: Option<usize>,
}

/// JSON as it is; any other text as a JSON string.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned())
        .or_else(|_| RawValue::from_string(json!(text).to_string()))
        .unwrap_or_default()
}

/// Which letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Letters {
    /// These, by job id.
    These(Vec<String>),
    /// All letters; one call handles the oldest 10,000, so that it ends in time.
    All,
}

/// The result of an operation on many letters or jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BulkResult {
    /// How many succeeded.
    pub count: usize,
    /// The others, each with the reason.
    pub failed: Vec<NotReplayed>,
}

impl BulkResult {
    /// Collects the results of many.
    pub(crate) async fn of(
        each: impl Stream<Item = (String, Result<bool, Error>)>,
    ) -> Result<Self, Error> {
        let mut each = std::pin::pin!(each);
        let mut all = Self::default();
        while let Some((id, replayed)) = each.next().await {
            match replayed {
                Ok(replayed) => all.count += usize::from(replayed),
                Err(error) if error.is_outage() => return Err(error),
                // The others go on.
                Err(error) => all.failed.push(NotReplayed { id, error: error.to_string() }),
            }
        }
        Ok(all)
    }
}

/// A letter or job for which the operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotReplayed {
    /// The id of the job.
    pub id: String,
    /// Why it failed.
    pub error: String,
}

/// The dead letters of one queue.
pub struct DeadLetters {
    queue: Queue,
    /// Keys of the dead-letter queue. Reading them does not create the queue.
    keys: Keys,
}

impl Queue {
    /// The dead letters of this queue.
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters { queue: self.clone(), keys: self.keys().dead() }
    }

    /// Lets the parents of a replayed job wait for it again, if they failed because of it.
    pub(crate) async fn wake_parents(&self, job_id: &str) -> Result<(), Error> {
        let mut redis = self.broker().redis();
        let mut child = self.keys().part(job_id);
        let before = format!("{}:", self.broker().prefix());
        // Up the tree of the flow.
        for _ in 0..MOST_PARENTS {
            let parent: Option<String> =
                cmd("HGET").arg(&child).arg("parentKey").query_async(&mut redis).await?;
            let Some(parent) = parent else { break };
            let Some((queue, id)) =
                parent.strip_prefix(&before).and_then(|rest| rest.split_once(':'))
            else {
                break;
            };
            let reason: Option<String> =
                cmd("HGET").arg(&parent).arg("failedReason").query_async(&mut redis).await?;
            // The reason may name another child, which failed before this one.
            let is_because_of_child =
                |reason: &String| reason.starts_with("child ") && reason.ends_with(" failed");
            if !reason.as_ref().is_some_and(is_because_of_child) {
                break;
            }
            let keys = self.keys().sibling(queue);
            let again = scripts::replay(&mut redis, &keys, id, None, None, now_ms()).await?;
            if again != Again::Waits {
                // Another child of the parent has failed, too.
                break;
            }
            child = parent;
        }
        Ok(())
    }
}

impl DeadLetters {
    /// How many there are.
    pub async fn count(&self) -> Result<usize, Error> {
        let wait = self.keys.part("wait");
        Ok(cmd("LLEN").arg(wait).query_async(&mut self.queue.broker().redis()).await?)
    }

    /// Letters by age, newest first, from the `from`-th on.
    pub async fn list(&self, from: usize, count: usize) -> Result<FoundLetters, Error> {
        let page = self.page(from, count).await?;
        let next = from + page.len();
        let next = (page.len() == count && next < self.count().await?).then_some(next);
        Ok(FoundLetters { letters: page.into_iter().flatten().collect(), next })
    }

    /// One letter, by the id of its job.
    pub async fn get(&self, job_id: &str) -> Result<Option<DeadLetter>, Error> {
        Ok(self.written(job_id).await?.and_then(|data| read(&data)))
    }

    /// Letters that contain a text in id, name, payload or reason, newest first. Reads a bounded number of them, from
    /// the `from`-th on, and returns where to continue.
    pub async fn search(
        &self,
        text: &str,
        from: usize,
        count: usize,
    ) -> Result<FoundLetters, Error> {
        let mut letters = Vec::new();
        let mut at = from;
        while letters.len() < count && at < from + SEARCH_AT_MOST {
            let page = self.page(at, PAGE).await?;
            if page.is_empty() {
                return Ok(FoundLetters { letters, next: None });
            }
            for letter in page {
                if letters.len() == count {
                    break;
                }
                at += 1;
                letters.extend(letter.filter(|letter| letter.contains(text)));
            }
        }
        Ok(FoundLetters { letters, next: Some(at) })
    }

    /// The letters at these places; `None` for one that other software wrote in another form.
    async fn page(&self, from: usize, count: usize) -> Result<Vec<Option<DeadLetter>>, Error> {
        let Some(last) = (from + count).checked_sub(1).filter(|_| count > 0) else {
            return Ok(Vec::new());
        };
        let mut redis = self.queue.broker().redis();
        let wait = self.keys.part("wait");
        let ids: Vec<String> =
            cmd("LRANGE").arg(wait).arg(from).arg(last).query_async(&mut redis).await?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut letters = pipe();
        for id in &ids {
            letters.hget(self.keys.part(id), "data");
        }
        let letters: Vec<Option<String>> = letters.query_async(&mut redis).await?;
        Ok(letters.into_iter().map(|data| data.and_then(|data| read(&data))).collect())
    }

    /// The data of a letter.
    pub(crate) async fn written(&self, job_id: &str) -> Result<Option<String>, Error> {
        let mut data = cmd("HGET");
        data.arg(self.keys.part(job_id)).arg("data");
        Ok(data.query_async(&mut self.queue.broker().redis()).await?)
    }

    /// Puts jobs back on their queue with all their attempts, with `payload` instead of their own if given; roughly
    /// in the order in which they failed. Parents in a flow that failed because of a replayed job wait for it again.
    /// A job whose record is gone is added anew from its letter.
    pub async fn replay(
        &self,
        which: &Letters,
        payload: Option<&Value>,
    ) -> Result<BulkResult, Error> {
        let is_named = matches!(which, Letters::These(_));
        let each = stream::iter(self.ids(which).await?).map(|id| async move {
            let replayed = match self.written(&id).await {
                Ok(None) if is_named => Err(Error::UnknownLetter { id: id.clone() }),
                Err(error) => Err(error),
                Ok(_) => self.replay_one(&id, payload).await,
            };
            (id, replayed)
        });
        BulkResult::of(each.buffered(AT_ONCE)).await
    }

    async fn replay_one(&self, id: &str, payload: Option<&Value>) -> Result<bool, Error> {
        let keys = self.queue.keys();
        let mut redis = self.queue.broker().redis();
        let most = self.queue.broker().max_payload();
        loop {
            let Some(written) = self.written(id).await? else { return Ok(false) };
            let Some(letter) = read(&written) else {
                let reason = "its letter was written by other software, in another form".into();
                return Err(Error::InvalidOption { id: id.to_owned(), reason });
            };
            let data = payload.map_or_else(|| letter.payload.get().to_owned(), Value::to_string);
            check_size(id, &data, most)?;
            let other = payload.is_some().then_some(data.as_str());
            let letter_now = Some(written.as_str());
            let again = scripts::replay(&mut redis, keys, id, letter_now, other, now_ms()).await?;
            let again = match again {
                Again::Missing => {
                    if letter.name.is_empty() {
                        let reason =
                            "its record is gone, and its letter does not name its type".into();
                        return Err(Error::InvalidOption { id: id.to_owned(), reason });
                    }
                    let options = options_again(letter.opts.get()).job_id(id);
                    let job = NewJob { name: &letter.name, data, options };
                    scripts::replay_anew(&mut redis, keys, &job, &written, now_ms()).await?
                }
                again => again,
            };
            match again {
                Again::Waits => {
                    if let Err(error) = self.queue.wake_parents(id).await {
                        tracing::warn!(job = id, %error, "job is replayed, but its parents are not");
                    }
                    return Ok(true);
                }
                Again::NotFailed => return Ok(false),
                Again::Blocked(child) => {
                    return Err(Error::ChildFailed { id: id.to_owned(), child });
                }
                // Another caller was faster; the letter is read again, and may be gone.
                Again::Changed | Again::Missing => {}
            }
        }
    }

    /// Removes letters.
    pub async fn purge(&self, which: &Letters) -> Result<BulkResult, Error> {
        let is_named = matches!(which, Letters::These(_));
        let each = stream::iter(self.ids(which).await?).map(|id| async move {
            let gone = match self.forget(&id, None).await {
                Ok(false) if is_named => Err(Error::UnknownLetter { id: id.clone() }),
                gone => gone,
            };
            (id, gone)
        });
        BulkResult::of(each.buffered(AT_ONCE)).await
    }

    /// Removes a letter; with `written`, only if it has not changed since it was read.
    pub(crate) async fn forget(&self, id: &str, written: Option<&str>) -> Result<bool, Error> {
        let mut redis = self.queue.broker().redis();
        scripts::forget_letter(&mut redis, self.queue.keys(), id, written).await
    }

    async fn ids(&self, which: &Letters) -> Result<Vec<String>, Error> {
        let mut redis = self.queue.broker().redis();
        match which {
            Letters::These(ids) => Ok(ids.clone()),
            Letters::All => {
                let wait = self.keys.part("wait");
                let oldest = -(MOST_IN_ONE_CALL as i64);
                // Oldest first, in the order in which they died.
                let mut ids: Vec<String> =
                    cmd("LRANGE").arg(wait).arg(oldest).arg(-1).query_async(&mut redis).await?;
                ids.reverse();
                Ok(ids)
            }
        }
    }
}

fn read(data: &str) -> Option<DeadLetter> {
    serde_json::from_str(data).ok()
}
