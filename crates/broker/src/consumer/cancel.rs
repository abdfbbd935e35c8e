//! Cancelling a job from anywhere: whoever runs it drops its handler and fails it.
//!
//! The wish is written into the job's hash (`cxl`) and published. Whoever runs the job hears of it
//! at once, or, if the message was lost with a connection, at the next renewal of its lock.

use std::sync::Arc;

use futures::StreamExt;
use redis::{Script, cmd, pipe};
use std::sync::LazyLock;
use tokio_util::sync::CancellationToken;

use super::{Handler, PAUSE, Shared};
use crate::{Error, Queue};

static CANCEL: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../cancel.lua")));

/// What became of a wish to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It had not begun, and is removed.
    Removed,
    /// It runs; whoever runs it was told.
    Told,
    /// There is no such job, or it has ended.
    NotThere,
}

impl Queue {
    /// Cancels a job: one that waits is removed, one that runs is dropped and fails with `reason`.
    pub async fn cancel(&self, job_id: &str, reason: &str) -> Result<Cancelled, Error> {
        let keys = self.keys();
        let mut redis = self.broker().redis();
        let told: i64 = CANCEL
            .key(keys.part("active"))
            .key(keys.part(job_id))
            .arg(job_id)
            .arg(reason)
            .arg(channel(self))
            .invoke_async(&mut redis)
            .await?;
        match told {
            1 => Ok(Cancelled::Told),
            -1 => Ok(Cancelled::NotThere),
            // It may begin in this very moment, and then it is not removed; the next call reaches it.
            _ if self.remove(job_id).await? => Ok(Cancelled::Removed),
            _ => Ok(Cancelled::NotThere),
        }
    }
}

fn channel(queue: &Queue) -> String {
    queue.keys().part("cancel")
}

/// Listens for jobs to cancel until `ended`.
pub(super) async fn listen<H: Handler>(shared: Arc<Shared<H>>, ended: CancellationToken) {
    let mut pause = PAUSE.0;
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            heard = hear(&shared) => if heard.is_ok() { pause = PAUSE.0 },
        }
        tokio::select! {
            () = ended.cancelled() => return,
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSE.1),
        }
    }
}

/// Passes on what is published; returns when the connection ends.
async fn hear<H: Handler>(shared: &Shared<H>) -> Result<(), Error> {
    let mut pubsub = shared.queue.broker().listener().await?;
    pubsub.subscribe(channel(&shared.queue)).await?;
    let mut messages = pubsub.on_message();
    while let Some(message) = messages.next().await {
        let job_id: String = message.get_payload()?;
        if shared.held.holds(&job_id) {
            look_for(shared, &[job_id.as_str()]).await?;
        }
    }
    Ok(())
}

/// Looks whether somebody wants these jobs, which run here, cancelled.
pub(super) async fn look_for<H: Handler>(
    shared: &Shared<H>,
    job_ids: &[&str],
) -> Result<(), Error> {
    let mut asked = pipe();
    for id in job_ids {
        asked.add_command(cmd("HGET").arg(shared.queue.keys().part(id)).arg("cxl").to_owned());
    }
    let wishes: Vec<Option<String>> = asked.query_async(&mut shared.redis()).await?;
    for (id, wish) in job_ids.iter().zip(wishes) {
        if let Some(reason) = wish {
            shared.held.cancel(id, &reason);
        }
    }
    Ok(())
}
