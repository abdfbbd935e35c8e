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
            Ok(Some(ended)) => Ok(match reason(&ended) {
                Some(reason) => LookedUp::Failed(reason),
                // Its file is gone: whoever orders it again gets another.
                None => LookedUp::Unknown,
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
        if let Some(reason) = reason(&ended) {
            return Err(Error::Invalid(vec![Mistake::new("text", reason)]));
        }
        match self.desk().made(order.name).await {
            Some(bytes) => Ok(Drawn::Ready(Sticker { name: order.name, bytes })),
            None => Err(Error::Unavailable {
                what: "the storage of stickers",
                cause: format!("a worker wrote {}, and it is not here", order.name.file()),
            }),
        }
    }
}

/// Why a job that has ended made no sticker; `None`: it made one.
fn reason(ended: &JobResult) -> Option<String> {
    match ended {
        JobResult::Failed(reason) => Some(reason.clone()),
        JobResult::Completed(value) => {
            let made: StickerMade = serde_json::from_value(value.clone()).ok()?;
            made.error.filter(|_| !made.success)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_result_of_a_job_says_whether_there_is_a_sticker() {
        let completed = |value| reason(&JobResult::Completed(value));
        assert_eq!(completed(json!({ "success": true, "file": "x", "bytes": 7 })), None);
        let impossible = json!({ "success": false, "error": "text is empty" });
        assert_eq!(completed(impossible).as_deref(), Some("text is empty"));
        assert_eq!(completed(json!(null)), None);
        assert_eq!(reason(&JobResult::Failed("crashed".into())).as_deref(), Some("crashed"));
    }
}
