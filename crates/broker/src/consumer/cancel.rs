//! Cancelling a job from anywhere: whoever runs it drops its handler and fails it.
//!
//! The wish is written into the job's hash (`cxl`) and published. Whoever runs the job hears of it
//! at once, or, if the message was lost with a connection, at the next renewal of its lock; whoever runs
//! it after a crash, when it begins. The wish names the attempt it is meant for: a job that is replayed
//! later is not cancelled again.

use std::sync::Arc;

use futures::StreamExt;
use redis::{Script, cmd, pipe};
use std::sync::LazyLock;
use tokio_util::sync::CancellationToken;

use super::{Handler, PAUSE, Shared};
use crate::{Error, Presence, Queue};

static CANCEL: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../cancel.lua")));

/// How often a job is looked for that changes its state meanwhile.
const TRIES: usize = 3;

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
        // It may begin or end between the two questions; then they are asked again.
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
                // Of what is no job, such as a part of one, nothing is removed.
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

/// Listens for jobs to cancel until `ended`.
pub(super) async fn listen<H: Handler>(shared: Arc<Shared<H>>, ended: CancellationToken) {
    let mut pause = PAUSE.0;
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            heard = hear(&shared) => match heard {
                Ok(()) => pause = PAUSE.0,
                Err(error) if !error.is_outage() => {
                    shared.queue.broker().once_a_minute("cancel", || {
                        tracing::warn!(%error, "cannot hear of cancelled jobs, and looks when locks are renewed");
                    });
                }
                Err(_) => {}
            },
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
        let job_id = String::from_utf8_lossy(message.get_payload_bytes()).into_owned();
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
        if let Some(wish) = wish {
            shared.held.cancel(id, &wish);
        }
    }
    Ok(())
}
