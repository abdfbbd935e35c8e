//! `generate-sticker`: draws one sticker and writes its file. Name and fields of the payload are those of older software
//! (docs/compatibility.md); `format` is new.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stampede_broker::{Backoff, JobContext, JobPolicy, JobSpec, Keep, Outcome, RetryPolicy, Work};
use stampede_pool::Priority;

use crate::artist::Format;
use crate::order::Order;
use crate::{Error, Studio};

/// Jobs of one worker at a time: while one is drawn, the files of the others are read and written.
pub(crate) const SLOTS: usize = 4;
/// Longest time for one attempt: a sticker takes milliseconds.
const LONGEST: Duration = Duration::from_secs(60);

/// Draw one sticker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerateSticker {
    /// The sticker's key, which is also the id of the job. Other producers may give anything.
    #[serde(default)]
    pub id: String,
    /// The text.
    pub text: String,
    /// The variant: a name or a description.
    pub variant: Value,
    /// The hash of the variant's description, for readers of the queue.
    #[serde(default)]
    pub config_id: String,
    /// Which sticker of a set it is, for readers of the queue.
    #[serde(default)]
    pub index: u32,
    /// The form of the file.
    #[serde(default)]
    pub format: Format,
}

/// The job's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StickerMade {
    /// Whether there is a sticker.
    pub(crate) success: bool,
    /// The name of its file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) file: Option<String>,
    /// The length of its file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) bytes: Option<u64>,
    /// Why it cannot be drawn.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) error: Option<String>,
}

impl StickerMade {
    /// The order cannot be drawn. The job has done its work all the same: nobody but the person who wrote the order can act.
    fn impossible(error: &Error) -> Self {
        Self { success: false, file: None, bytes: None, error: Some(error.to_string()) }
    }
}

impl GenerateSticker {
    /// The job of an order. Its id is the sticker's key, so that a sticker has one job.
    pub(crate) fn job(order: &Order, index: u32, priority: Priority) -> JobSpec {
        let id = order.name.key.to_string();
        let payload = Self {
            id: id.clone(),
            text: order.text.clone(),
            variant: order.variant.look.clone(),
            config_id: order.variant.config_id.clone(),
            index,
            format: order.name.format,
        };
        // The file is what remains of it.
        let kept = Keep::AtMost { age: Duration::from_secs(3_600), count: 1_000 };
        let priority = match priority {
            Priority::Vip => 1,
            Priority::Normal => 10,
            Priority::Batch => 20,
        };
        JobSpec { id, priority, keep_completed: kept, keep_failed: kept, ..payload.spec() }
    }
}

impl Work for GenerateSticker {
    const QUEUE: &'static str = "stickers";
    const NAME: &'static str = "generate-sticker";
    const VERSION: u32 = 1;
    type Env = Studio;

    fn policy() -> JobPolicy {
        let backoff = Backoff::Exponential(Duration::from_secs(1));
        let retry = RetryPolicy { attempts: 3, backoff, ..RetryPolicy::default() };
        JobPolicy { retry, timeout: Some(LONGEST) }
    }

    async fn run(&self, studio: &Studio, _: &JobContext) -> Outcome {
        let made = match studio.order(&self.text, Some(&self.variant), self.format) {
            Ok(order) => studio.make_file(&order).await,
            Err(mistakes) => Err(Error::Invalid(mistakes)),
        };
        match made {
            Ok((name, bytes)) => {
                let file = Some(name.file());
                done(&StickerMade { success: true, file, bytes: Some(bytes), error: None })
            }
            Err(error @ Error::Invalid(_)) => done(&StickerMade::impossible(&error)),
            Err(Error::Full { retry_after, .. }) => Outcome::Snooze(retry_after),
            Err(Error::Unavailable { .. }) => Outcome::Snooze(Duration::from_secs(5)),
            Err(Error::Internal(reason)) => Outcome::Retry(reason),
        }
    }

    fn slots(job_concurrency: usize) -> usize {
        job_concurrency.min(SLOTS)
    }
}

fn done(made: &StickerMade) -> Outcome {
    // Texts and numbers always serialise.
    Outcome::Done(serde_json::to_value(made).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_payload_has_the_fields_of_older_software() {
        let data = json!({
            "v": 1, "id": "unique-task-id", "text": "Hello", "variant": { "fill": "solid" },
            "configId": "config-hash", "index": 0,
        });
        let job = GenerateSticker::parse(&data).unwrap();
        assert_eq!((job.text.as_str(), job.format), ("Hello", Format::Webp));
        let least = json!({ "v": 1, "text": "Hello", "variant": "neon" });
        assert_eq!(GenerateSticker::parse(&least).unwrap().variant, "neon");
        assert!(GenerateSticker::parse(&json!({ "v": 1, "text": "Hello" })).is_err());
    }
}
