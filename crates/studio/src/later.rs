//! Stickers that a worker draws: orders that waited too long in the pool, and all orders of a node that does not draw.

use std::time::Duration;

use stampede_broker::JobResult;
use stampede_pool::Priority;

use crate::jobs::generate_sticker::{GenerateSticker, StickerMade};
use crate::order::{Mistake, Order, StickerName};
use crate::{Drawn, Error, Sticker, Studio};

/// Where a sticker is that was asked for by its name.
#[derive(Debug, Clone, PartialEq)]
pub enum LookedUp {
    /// Here.
    Ready(Sticker),
    /// A job will draw it.
    NotYet,
    /// A job could not draw it, for this reason.
    Failed(String),
    /// Nobody has ordered it.
    Unknown,
}

impl Studio {
    /// The sticker of this name, if it was drawn or is being drawn by a job.
    pub async fn look_up(&self, name: StickerName) -> Result<LookedUp, Error> {
        if let Some(bytes) = self.desk().made(name).await {
            return Ok(LookedUp::Ready(Sticker { name, bytes }));
        }
        match self.queue().ended(&name.key.to_string()).await {
            Ok(None) => Ok(LookedUp::NotYet),
            Ok(Some(ended)) => Ok(match result(&ended) {
                Err(reason) => LookedUp::Failed(reason),
                Ok(written) => match self.written(name, written).await {
                    Some(sticker) => LookedUp::Ready(sticker),
                    // Its file is gone: whoever orders it again gets another.
                    None => LookedUp::Unknown,
                },
            }),
            Err(stampede_broker::Error::UnknownJob { .. }) => Ok(LookedUp::Unknown),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets workers draw orders.
    pub(crate) async fn add_jobs(
        &self,
        orders: &[(u32, &Order)],
        priority: Priority,
    ) -> Result<(), Error> {
        let job = |(index, order): &(u32, &Order)| GenerateSticker::job(order, *index, priority);
        let jobs: Vec<_> = orders.iter().map(job).collect();
        // The record of an earlier job may be kept although its file is gone.
        Ok(self.queue().enqueue_again(&jobs).await?)
    }

    /// Waits for the job of an order.
    pub(crate) async fn by_job(&self, order: &Order, patience: Duration) -> Result<Drawn, Error> {
        let events = self.events().await?;
        let id = order.name.key.to_string();
        let Some(ended) = events.ended(&id, patience).await? else {
            return Ok(Drawn::Later(order.name));
        };
        if let JobResult::Failed(reason) = &ended {
            return Err(Error::Internal(format!("the job of a sticker failed: {reason}")));
        }
        let written =
            result(&ended).map_err(|reason| Error::Invalid(vec![Mistake::new("text", reason)]))?;
        let sticker = self.written(order.name, written).await;
        sticker.map(Drawn::Ready).ok_or_else(|| Error::Unavailable {
            what: "the storage of stickers",
            cause: format!("a worker wrote {}, and it is not here", written.file()),
        })
    }

    /// The sticker that a job has written. While nodes and workers are updated, a worker of another version may have written it
    /// under another name.
    async fn written(&self, name: StickerName, written: StickerName) -> Option<Sticker> {
        let bytes = self.desk().made(written).await?;
        Some(Sticker { name, bytes })
    }
}

/// The name of the sticker that a job has made, or why it made none.
fn result(ended: &JobResult) -> Result<StickerName, String> {
    let value = match ended {
        JobResult::Failed(reason) => return Err(reason.clone()),
        JobResult::Completed(value) => value,
    };
    let made: StickerMade = serde_json::from_value(value.clone())
        .map_err(|error| format!("the result of its job cannot be read: {error}"))?;
    if let Some(reason) = made.error.filter(|_| !made.success) {
        return Err(reason);
    }
    let name = made.file.as_deref().and_then(|file| file.rsplit('/').next());
    let name = name.and_then(|name| name.parse().ok());
    name.ok_or_else(|| "the result of its job names no file".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_result_of_a_job_says_whether_there_is_a_sticker() {
        let completed = |value| result(&JobResult::Completed(value));
        let name = format!("{}.tgs", "a".repeat(64));
        let made = json!({ "success": true, "file": format!("stickers/aa/{name}"), "bytes": 7 });
        assert_eq!(completed(made).unwrap().to_string(), name);
        let impossible = json!({ "success": false, "error": "text is empty" });
        assert_eq!(completed(impossible).unwrap_err(), "text is empty");
        assert!(completed(json!(null)).unwrap_err().contains("cannot be read"));
        assert!(completed(json!({ "success": true })).unwrap_err().contains("names no file"));
        assert_eq!(result(&JobResult::Failed("crashed".into())).unwrap_err(), "crashed");
    }
}
