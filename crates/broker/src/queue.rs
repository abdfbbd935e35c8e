//! BullMQ's queues.
//!
//! | file | holds |
//! |---|---|
//! | `producer.rs` | adding, looking up, removing and counting jobs |
//! | `spec.rs`, `options.rs` | a job to be added, and its options as BullMQ writes them |
//! | `consumer/` | taking jobs and running them in slots |
//! | `job.rs`, `backoff.rs` | a job taken from a queue, its outcome, the pause before its next attempt |
//! | `dead_letters.rs` | jobs that failed permanently: list, search, replay, purge |
//! | `flows.rs`, `schedules.rs` | trees of jobs; jobs that come again and again |
//! | `limits.rs`, `permits.rs`, `history.rs`, `limit_waits.rs`, `breaker.rs` | rate limits and circuit breakers that all processes share |
//! | `suspects.rs` | things that bring down the processes that work with them |
//! | `inspect.rs`, `operate.rs` | what an operator sees, and does |
//! | `figures.rs` | the sizes of many queues in a few round trips |
//! | `events.rs` | events of a queue, and waiting for the end of a job |
//! | `reclaim.rs` | returning the jobs of a worker that died |
//! | `scripts/` | calls of Lua scripts; the texts are in `crates/scripts` |
//! | `names.rs`, `queue_names.rs`, `redis_keys.rs` | allowed names, the queues there are, keys of a queue |

/// A script of `stampede_scripts::queue`, under the same name.
macro_rules! script {
    ($name:ident) => {
        static $name: std::sync::LazyLock<redis::Script> =
            std::sync::LazyLock::new(|| redis::Script::new(stampede_scripts::queue::$name));
    };
}

mod backoff;
mod breaker;
mod consumer;
mod dead_letters;
mod edits;
mod events;
mod figures;
mod flows;
mod history;
mod inspect;
mod job;
pub(crate) mod limit_waits;
mod limits;
pub(crate) mod names;
mod operate;
mod options;
mod permits;
mod producer;
pub(crate) mod queue_names;
mod reclaim;
pub(crate) mod redis_keys;
mod schedules;
mod scripts;
mod spec;
mod suspects;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use self::redis_keys::Keys;
use crate::link::OfficialQueue;
use crate::{Broker, Error};

pub use self::backoff::RetryPolicy;
pub use self::breaker::{Breaker, BreakerConfig, BreakerDecision, Call, OpenBreaker};
pub use self::consumer::{
    Cancelled, Consumer, ConsumerConfig, ConsumerEvent, ConsumerHandle, EventKind, Handler,
    JobContext, JobPolicy, RunEnd, RunObserver,
};
pub use self::dead_letters::{
    BulkResult, DeadLetter, DeadLetters, FoundLetters, Letters, NotReplayed,
};
pub use self::edits::Edit;
pub use self::events::{JobResult, QueueEvent, QueueEvents};
pub use self::figures::QueueFigures;
pub use self::flows::{Flow, OnFailure};
pub use self::history::{History, PastOperation};
pub use self::inspect::{Found, JobView, State};
pub use self::job::{Job, Outcome};
pub use self::limits::{Limits, Permit, Rate, Taken};
pub use self::operate::Delayed;
pub use self::permits::{Ask, Pause, Permits, Rest, Taking};
pub use self::producer::{Counts, Presence};
pub use self::schedules::Schedule;
pub use self::scripts::WhenActive;
pub use self::spec::{Backoff, Deduplication, JobSpec, Keep, Which};
pub use self::suspects::{Suspect, Suspects};

/// A handle on one queue. Cheap to clone.
#[derive(Clone)]
pub struct Queue {
    broker: Broker,
    bull: OfficialQueue,
    keys: Keys,
}

impl Queue {
    pub(crate) fn new(broker: Broker, bull: OfficialQueue) -> Self {
        let keys = Keys::new(broker.prefix(), bull.name());
        Self { broker, bull, keys }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.bull.name()
    }

    /// The official crate's handle.
    pub(crate) fn bull(&self) -> &bullmq::Queue {
        &self.bull
    }

    /// Asks through the official crate's own connection. A connection that broke while it was idle fails at its
    /// first use and is replaced; so a question that met an outage is asked once more.
    pub(crate) async fn ask<T, F>(&self, question: impl Fn() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, bullmq::Error>>,
    {
        match question().await.map_err(Error::from) {
            Err(error) if error.is_outage() => Ok(question().await?),
            answer => answer,
        }
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// The name that BullMQ's clients give to a connection for this queue.
    pub(crate) fn client_name(&self, what: &str) -> String {
        let name =
            format!("{}:{}{what}", self.broker.prefix(), BASE64_STANDARD.encode(self.name()));
        // Redis accepts only visible ASCII characters.
        name.replace(|c: char| !c.is_ascii_graphic(), "-")
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }
}
