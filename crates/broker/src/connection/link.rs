//! A connection that mends itself, also where the `redis` crate's does not.
//!
//! Its `ConnectionManager` connects again when the socket has told of an error, and then only. Twice it
//! is left with nothing for ever:
//!
//! - the socket never tells: whatever stands between us and Redis (a balancer, a firewall) has lost the
//!   connection, takes what we send and answers nothing, so every command times out;
//! - it connects again and the server does not let it in (the password is being changed, there are too
//!   many clients): it keeps that answer and gives it to every command, long after the server would.
//!
//! After such an answer, the manager is replaced by a new one. Those who wait for the old one get their
//! own errors; only the first of them replaces it.

use std::sync::{Arc, PoisonError, RwLock};

use futures::FutureExt;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster_async::ClusterConnection;
use redis::{Client, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use super::state::Suspicions;

/// A connection to one server or to a Cluster. Cheap to clone; clones share the socket.
#[derive(Clone)]
pub(crate) enum Link {
    Single(Mending),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(link) => link.send(cmd).boxed(),
            Self::Cluster(link) => link.req_packed_command(cmd),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(link) => link.send_all(pipeline, offset, count).boxed(),
            Self::Cluster(link) => link.req_packed_commands(pipeline, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(link) => link.0.client.get_connection_info().redis_settings().db(),
            Self::Cluster(link) => link.get_db(),
        }
    }
}

/// A connection to one server.
#[derive(Clone)]
pub(crate) struct Mending(Arc<Shared>);

struct Shared {
    client: Client,
    config: ConnectionManagerConfig,
    current: RwLock<Numbered>,
    suspicions: Suspicions,
}

#[derive(Clone)]
struct Numbered {
    manager: ConnectionManager,
    number: u64,
}

impl Mending {
    /// Connects.
    pub(super) async fn open(
        client: Client,
        config: ConnectionManagerConfig,
        suspicions: Suspicions,
    ) -> RedisResult<Self> {
        let manager = ConnectionManager::new_with_config(client.clone(), config.clone()).await?;
        let current = RwLock::new(Numbered { manager, number: 0 });
        Ok(Self(Arc::new(Shared { client, config, current, suspicions })))
    }

    async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        let mut used = self.0.current();
        let answer = used.manager.send_packed_command(command).await;
        self.0.look(used.number, answer)
    }

    async fn send_all(
        &self,
        commands: &Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        let mut used = self.0.current();
        let answers = used.manager.send_packed_commands(commands, offset, count).await;
        self.0.look(used.number, answers)
    }
}

impl Shared {
    fn current(&self) -> Numbered {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the manager that gave an answer after which it gives no better one. The first to meet a
    /// broken connection may be the only one: it is mended for those who come after.
    fn look<T>(&self, used: u64, answer: RedisResult<T>) -> RedisResult<T> {
        if answer.as_ref().is_err_and(|error| error.is_io_error() || error.is_timeout()) {
            self.suspicions.raise();
        }
        if let Err(error) = &answer
            && is_stuck(error)
        {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            let (client, config) = (self.client.clone(), self.config.clone());
            // It connects with the next command.
            if current.number == used
                && let Ok(manager) = ConnectionManager::new_lazy_with_config(client, config)
            {
                *current = Numbered { manager, number: used + 1 };
            }
        }
        answer
    }
}

/// Whether a manager that gave this error would go on as it is.
fn is_stuck(error: &RedisError) -> bool {
    let never_let_in = match error.kind() {
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => true,
        // Of the database that is chosen after that.
        ErrorKind::Server(_) => error.to_string().contains("refused to switch database"),
        _ => false,
    };
    never_let_in || error.is_timeout()
}
