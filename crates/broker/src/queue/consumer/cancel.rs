//! Cancelling a job from anywhere: the worker that runs it drops its handler and fails it.
//!
//! The request is written into the job's hash (`cxl`) and published. The worker that runs the job receives it at
//! once, or, if the message was lost with a connection, reads it at the next renewal of the lock. A worker that
//! takes the job over after a crash reads it when it begins. The request names an attempt: a job that is replayed
//! later is not cancelled again.

use std::sync::Arc;

use futures::StreamExt;
use redis::{cmd, pipe};
use tokio_util::sync::CancellationToken;

use super::{FIRST_PAUSE, LONGEST_PAUSE, Shared};
use crate::{Error, Presence, Queue};

script!(CANCEL);

/// How often a job is asked for that changes its state meanwhile.
const TRIES: usize = 3;

/// The result of cancelling a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The job had not begun, and is removed.
    Removed,
    /// The job runs; its worker was told.
    Told,
    /// There is no such job, or the job has ended.
    NotThere,
}

impl Queue {
    /// Cancels a job: one that waits is removed, one that runs is dropped and fails with `reason`.
    pub async fn cancel(&self, job_id: &str, reason: &str) -> Result<Cancelled, Error> {
        let keys = self.keys();
        // The job may begin or end between the two calls; then both are made again.
        for _ in 0..TRIES {
            let told: i64 = CANCEL
                .key(keys.part("active"))
                .key(keys.part(job_id))
                .arg(job_id)
                .arg(reason)
                .arg(channel(self))
                .invoke_async(&mut self.broker().redis())
                .await?;
            match told {
                1 => return Ok(Cancelled::Told),
                -1 => break,
                // A key that is no job, such as a part of one, is not removed.
                _ if self.presence(&[job_id]).await? != [Presence::Live] => break,
                _ if self.remove(job_id).await? => return Ok(Cancelled::Removed),
                _ => {}
            }
        }
        Ok(Cancelled::NotThere)
    }
}

fn channel(queue: &Queue) -> String {
    queue.keys().part("cancel")
}

/// Subscribes to requests to cancel jobs, until `ended`.
pub(super) async fn listen(shared: Arc<Shared>, ended: CancellationToken) {
    let mut pause = FIRST_PAUSE;
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            heard = hear(&shared) => match heard {
                Ok(()) => pause = FIRST_PAUSE,
                Err(error) if !error.is_outage() => {
                    shared.queue.broker().once_a_minute("cancel", || {
                        tracing::warn!(%error, "cannot subscribe to requests to cancel jobs; they are read when locks are renewed");
                    });
                }
                Err(_) => {}
            },
        }
        tokio::select! {
            () = ended.cancelled() => return,
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}

/// Handles published requests; returns when the connection ends.
async fn hear(shared: &Shared) -> Result<(), Error> {
    let mut pubsub = shared.queue.broker().listener().await?;
    pubsub.subscribe(channel(&shared.queue)).await?;
    let mut messages = pubsub.on_message();
    while let Some(message) = messages.next().await {
        let job_id = String::from_utf8_lossy(message.get_payload_bytes()).into_owned();
        if shared.held.holds(&job_id) {
            look_for(shared, &[job_id.as_str()]).await?;
        }
    }
    Ok(())
}

/// Reads whether any of these jobs, which run here, is to be cancelled.
pub(super) async fn look_for(shared: &Shared, job_ids: &[&str]) -> Result<(), Error> {
    let mut asked = pipe();
    for id in job_ids {
        asked.add_command(cmd("HGET").arg(shared.queue.keys().part(id)).arg("cxl").to_owned());
    }
    let wishes: Vec<Option<String>> = asked.query_async(&mut shared.redis()).await?;
    for (id, wish) in job_ids.iter().zip(wishes) {
        if let Some(wish) = wish {
            shared.held.cancel(id, &wish);
        }
    }
    Ok(())
}
