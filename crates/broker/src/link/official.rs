//! The official crate's connection and its handles on queues, replaced when the connection is stuck.
//!
//! The crate contains the `redis` crate's connection manager, with the faults that `connection.rs` describes, and it
//! cannot be replaced there. So it is asked every few seconds; when it is stuck, a new connection is made, and every
//! handle gets a successor on it:
//!
//! ```text
//!   OfficialQueue ─▶ handle ─next─▶ handle ─next─▶ handle: the one in use
//! ```
//!
//! Handles are borrowed while their commands run, so former handles stay, unused, until the queue is dropped. There
//! is one for each time the connection was stuck.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use bullmq::options::RedisConnectionOptions;
use bullmq::redis_connection::RedisConnection;
use redis::{RedisResult, Value, cmd};
use tokio_util::task::AbortOnDropHandle;

use super::check::info_field;
use super::connection::is_stuck;
use crate::Error;

/// How often the connection is asked.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// The connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Official {
    shared: Arc<Shared>,
    _task: Arc<AbortOnDropHandle<()>>,
}

struct Shared {
    options: RedisConnectionOptions,
    prefix: Arc<str>,
    current: RwLock<Numbered>,
    queues: Mutex<Vec<Weak<Handle>>>,
}

#[derive(Clone)]
struct Numbered {
    connection: RedisConnection,
    number: u64,
}

/// The crate's handle on a queue. Clones share it.
#[derive(Clone)]
pub(crate) struct OfficialQueue(Arc<Handle>);

struct Handle {
    queue: bullmq::Queue,
    /// Of the connection that it uses.
    number: u64,
    next: OnceLock<Box<Handle>>,
}

impl Handle {
    fn last(&self) -> &Self {
        let mut last = self;
        while let Some(next) = last.next.get() {
            last = next;
        }
        last
    }
}

impl Deref for OfficialQueue {
    type Target = bullmq::Queue;

    fn deref(&self) -> &bullmq::Queue {
        &self.0.last().queue
    }
}

impl Official {
    /// Connects.
    pub(crate) async fn connect(
        options: RedisConnectionOptions,
        prefix: Arc<str>,
    ) -> Result<Self, Error> {
        let connection = RedisConnection::new_managed_only(&options).await?;
        let current = RwLock::new(Numbered { connection, number: 0 });
        let shared = Arc::new(Shared { options, prefix, current, queues: Mutex::default() });
        let task = AbortOnDropHandle::new(tokio::spawn(shared.clone().watch()));
        Ok(Self { shared, _task: Arc::new(task) })
    }

    /// The connection itself.
    pub(crate) fn connection(&self) -> RedisConnection {
        self.shared.current().connection
    }

    /// A handle on a queue.
    pub(crate) async fn queue(&self, name: &str) -> Result<OfficialQueue, Error> {
        let handle = Arc::new(self.shared.handle(name, &self.shared.current()).await?);
        let mut queues = self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&handle));
        Ok(OfficialQueue(handle))
    }
}

fn is_replica(info: &[u8]) -> bool {
    let info = String::from_utf8_lossy(info);
    let is = |field, value| info_field(&info, field) == Some(value);
    is("role", "slave") && is("slave_read_only", "1")
}

impl Shared {
    fn current(&self) -> Numbered {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn handle(&self, name: &str, on: &Numbered) -> Result<Handle, Error> {
        let options = bullmq::QueueOptions::new().prefix(&*self.prefix);
        let queue = bullmq::Queue::with_connection(name, on.connection.clone(), options).await?;
        Ok(Handle { queue, number: on.number, next: OnceLock::new() })
    }

    async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            let mut asked = self.current().connection.connection();
            let mut role = cmd("INFO");
            role.arg("replication");
            let answer: RedisResult<Value> = role.query_async(&mut asked).await;
            let renewed = match answer {
                Err(error) if is_stuck(&error) => self.replace().await,
                // It was made one while we were connected; its address may lead elsewhere by now.
                Ok(Value::BulkString(info)) if is_replica(&info) => self.replace().await,
                _ => Ok(()),
            };
            let renewed = match renewed {
                Ok(()) => self.renew_queues().await,
                failed => failed,
            };
            if let Err(error) = renewed {
                tracing::debug!(%error, "cannot replace a connection that is stuck");
            }
        }
    }

    async fn replace(&self) -> Result<(), Error> {
        let connection = RedisConnection::new_managed_only(&self.options).await?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Numbered { connection, number: current.number + 1 };
        Ok(())
    }

    /// Gives handles on an old connection a successor.
    async fn renew_queues(&self) -> Result<(), Error> {
        let current = self.current();
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for queue in queues.iter().filter_map(Weak::upgrade) {
            let last = queue.last();
            if last.number < current.number {
                let next = self.handle(last.queue.name(), &current).await?;
                // Only this task sets it.
                let _ = last.next.set(Box::new(next));
            }
        }
        Ok(())
    }
}
