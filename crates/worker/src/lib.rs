//! The worker process: takes jobs, does them, says so.
//!
//! - [`jobs`]: one file per job type.
//! - `loads`: many tickets in one query.
//! - `completions`: many finished tickets in one transaction.
//! - `announcer`: tells outside readers (`ticket:completed`, `batch:{id}`).
//! - [`Presence`]: says that the worker is there and how busy it is.
//! - [`Reconciler`]: puts pending tickets back on the queue when their job is gone.
//!
//! This crate must never serve HTTP.

mod announcer;
mod completions;
mod environment;
mod interim;
pub mod jobs;
mod loads;
mod presence;
mod reconciler;

pub use environment::Environment;
pub use presence::{Presence, Report};
pub use reconciler::Reconciler;

use stampede_broker::{Broker, Consumer, ConsumerConfig, Error};
use stampede_model::GenerateTicket;
use tokio_util::sync::CancellationToken;

use crate::announcer::Announcer;
use crate::completions::Completions;
use crate::jobs::Jobs;

/// Works until `stop`, then drains. Returns when everything it started has ended.
pub async fn run(
    config: ConsumerConfig,
    broker: Broker,
    environment: Environment,
    presence: Presence,
    stop: CancellationToken,
) -> Result<(), Error> {
    let queue = broker.queue(GenerateTicket::QUEUE).await?;
    let (announcer, announcing) = Announcer::start(broker, environment.store.clone());
    let (completions, committing) =
        Completions::start(environment.store.clone(), announcer.clone());
    let jobs = Jobs::new(config.name.clone(), environment, completions, announcer);

    let consumer = Consumer::new(config, queue, jobs);
    let ended = CancellationToken::new();
    let present = presence.run(consumer.handle(), stop.clone(), ended.clone());
    let present = tokio::spawn(present);
    consumer.run(stop).await;
    ended.cancel();
    // Panics have been reported already.
    let _ = present.await;

    // The consumer has dropped its jobs and with them the senders; both tasks empty their queues.
    let _ = tokio::join!(committing, announcing);
    Ok(())
}
