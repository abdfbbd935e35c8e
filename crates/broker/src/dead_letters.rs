//! Dead letters: jobs that failed for good, in `<queue>-dlq`, with all it takes to run them again.
//!
//! A job that fails for good becomes a dead letter in the same transaction, so there is never one
//! without the other (`dead_letter.lua`). The dead-letter queue is an ordinary BullMQ queue that
//! nobody consumes: Bull Board shows it, Node's clients read it. A letter's id is the job's; its data
//! are `{jobId, payload, reason}` as in seed 002, and the job's history beside them.

use redis::cmd;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::job::Job;
use crate::keys::Keys;
use crate::{Channel, Error, Queue};

/// Letters looked at in one go.
const PAGE: usize = 200;
/// Most letters that one search looks through.
const SEARCH_LIMIT: usize = 100_000;

/// The name of the dead-letter queue of a queue.
pub(crate) fn queue_name(queue: &str) -> String {
    format!("{queue}-dlq")
}

/// A job that failed for good.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// The job's id, and the letter's.
    pub job_id: String,
    /// The queue it died in.
    pub queue: String,
    /// Its type.
    pub name: String,
    /// Its data, as they stood in its hash; text if that was not JSON.
    pub payload: Box<RawValue>,
    /// Why it failed.
    pub reason: String,
    /// Attempts it had.
    pub attempts_made: u32,
    /// What was written about its attempts.
    #[serde(default)]
    pub stacktrace: Vec<String>,
    /// Its options, as they stood in its hash.
    pub opts: Box<RawValue>,
    /// When it was added, in milliseconds since 1970.
    pub added_at: u64,
    /// When it failed.
    pub failed_at: u64,
}

impl DeadLetter {
    /// What is written about a job that fails now.
    pub(crate) fn of(queue: &str, job: &Job, reason: &str, stack: &[String], now_ms: u64) -> Self {
        Self {
            job_id: job.id.clone(),
            queue: queue.to_owned(),
            name: job.name.clone(),
            payload: raw(&job.raw_data),
            reason: reason.to_owned(),
            attempts_made: job.attempts_made + 1,
            stacktrace: stack.to_vec(),
            opts: raw(&job.raw_options),
            added_at: job.timestamp,
            failed_at: now_ms,
        }
    }
}

/// JSON as it is; anything else as a JSON text.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned())
        .or_else(|_| RawValue::from_string(json!(text).to_string()))
        .unwrap_or_default()
}

/// KEYS and ARGV of `dead_letter.lua`.
pub(crate) fn script_call(
    keys: &Keys,
    token: &str,
    letter: &DeadLetter,
) -> (Vec<String>, Vec<String>) {
    let dead = keys.sibling(&queue_name(&letter.queue));
    let mut all = vec![keys.lock(&letter.job_id), keys.part("active"), dead.part(&letter.job_id)];
    all.extend(dead.parts(["wait", "meta", "events", "marker"]));
    all.push(keys.part(&letter.job_id));
    let told = json!({
        "queue": letter.queue, "jobId": letter.job_id, "name": letter.name, "reason": letter.reason,
    });
    let arguments = vec![
        token.to_owned(),
        letter.job_id.clone(),
        letter.name.clone(),
        // A struct of texts and numbers always serialises.
        serde_json::to_string(letter).unwrap_or_default(),
        r#"{"attempts":1}"#.to_owned(),
        letter.failed_at.to_string(),
        Channel::DeadLetter.as_str().to_owned(),
        told.to_string(),
    ];
    (all, arguments)
}

/// Which letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Letters {
    /// These, by job id.
    These(Vec<String>),
    /// All there are.
    All,
}

/// The dead letters of one queue.
pub struct DeadLetters {
    queue: Queue,
    dead: Queue,
}

impl Queue {
    /// The dead letters of this queue.
    pub async fn dead_letters(&self) -> Result<DeadLetters, Error> {
        let dead = self.broker().queue(&queue_name(self.name())).await?;
        Ok(DeadLetters { queue: self.clone(), dead })
    }
}

impl DeadLetters {
    /// How many there are.
    pub async fn count(&self) -> Result<usize, Error> {
        let wait = self.dead.keys().part("wait");
        Ok(cmd("LLEN").arg(wait).query_async(&mut self.dead.broker().redis()).await?)
    }

    /// Letters by age, newest first.
    pub async fn list(&self, skip: usize, count: usize) -> Result<Vec<DeadLetter>, Error> {
        let mut redis = self.dead.broker().redis();
        let ids: Vec<String> = cmd("LRANGE")
            .arg(self.dead.keys().part("wait"))
            .arg(skip)
            .arg(skip + count.max(1) - 1)
            .query_async(&mut redis)
            .await?;
        let mut letters = Vec::with_capacity(ids.len());
        for id in ids {
            letters.extend(self.get(&id).await?);
        }
        Ok(letters)
    }

    /// One letter, by the id of its job.
    pub async fn get(&self, job_id: &str) -> Result<Option<DeadLetter>, Error> {
        let mut redis = self.dead.broker().redis();
        let data: Option<String> = cmd("HGET")
            .arg(self.dead.keys().part(job_id))
            .arg("data")
            .query_async(&mut redis)
            .await?;
        // A letter that other software wrote in another form is not ours to replay.
        Ok(data.and_then(|data| serde_json::from_str(&data).ok()))
    }

    /// Letters that contain a text in id, name, payload or reason, newest first, at most `count`.
    pub async fn search(&self, text: &str, count: usize) -> Result<Vec<DeadLetter>, Error> {
        let mut found = Vec::new();
        for skip in (0..SEARCH_LIMIT).step_by(PAGE) {
            let page = self.list(skip, PAGE).await?;
            let ended = page.is_empty();
            let hits = page.into_iter().filter(|letter| {
                let parts = [&letter.job_id, &letter.name, letter.payload.get(), &letter.reason];
                parts.iter().any(|part| part.contains(text))
            });
            found.extend(hits.take(count - found.len()));
            if ended || found.len() == count {
                break;
            }
        }
        Ok(found)
    }

    /// Puts jobs back on their queue as if new, with `payload` instead of their own if given. Returns
    /// how many.
    ///
    /// A crash in the middle leaves the letter: at worst it is replayed again, and a job that is back
    /// already is not added twice.
    pub async fn replay(&self, which: &Letters, payload: Option<&Value>) -> Result<usize, Error> {
        let mut replayed = 0;
        for id in self.ids(which).await? {
            let Some(letter) = self.get(&id).await? else { continue };
            let data = payload.map_or_else(|| letter.payload.get().to_owned(), Value::to_string);
            self.queue.run_again(&id, &letter.name, &data, letter.opts.get()).await?;
            self.remove(&id).await?;
            replayed += 1;
        }
        Ok(replayed)
    }

    /// Throws letters away. Returns how many.
    pub async fn purge(&self, which: &Letters) -> Result<usize, Error> {
        let mut purged = 0;
        for id in self.ids(which).await? {
            purged += usize::from(self.remove(&id).await?);
        }
        Ok(purged)
    }

    async fn remove(&self, id: &str) -> Result<bool, Error> {
        self.dead.remove(id).await
    }

    async fn ids(&self, which: &Letters) -> Result<Vec<String>, Error> {
        let mut redis = self.dead.broker().redis();
        match which {
            Letters::These(ids) => Ok(ids.clone()),
            Letters::All => {
                let wait = self.dead.keys().part("wait");
                // Oldest first, in the order in which they died.
                let mut ids: Vec<String> =
                    cmd("LRANGE").arg(wait).arg(0).arg(-1).query_async(&mut redis).await?;
                ids.reverse();
                Ok(ids)
            }
        }
    }
}
