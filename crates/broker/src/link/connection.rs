//! A connection that reconnects, also where the `redis` crate's does not.
//!
//! The crate's `ConnectionManager` reconnects only after an error of the socket. In two cases it stays broken for
//! ever:
//!
//! - The socket reports no error: a balancer or firewall in between has lost the connection, accepts our bytes and
//!   answers nothing. Every command times out.
//! - The server refuses the new connection (the password is being changed, there are too many clients): the manager
//!   keeps this answer and returns it for every command, long after the server would accept it.
//!
//! In a third case it stays connected to the wrong server: the server was made a replica, and its address leads to
//! another server by now.
//!
//! After such an answer the manager is replaced by a new one. Callers that wait for the old one get their own errors;
//! only the first of them replaces it.
//!
//! In a Cluster, the `redis` crate would send a command again whose answer was lost: a second job would be taken, and
//! the end of a job would be reported as the work of another worker. So that is switched off, and only commands that
//! certainly had no effect are sent again, by us.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures::FutureExt;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::cluster_async::ClusterConnection;
use redis::{Client, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, Value};

use super::state::{Suspicions, is_refusal};
use crate::Error;

/// Pauses before a command is sent to where its keys are by now.
const MOVING: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_millis(50), Duration::from_millis(200)];
/// A server that was made a replica is not reconnected to more often than this.
const DEMOTED: Duration = Duration::from_secs(1);

/// A connection to one server or to a Cluster. Cheap to clone; clones share the socket.
#[derive(Clone)]
pub(crate) enum Link {
    Single(Reconnecting),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Link {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(link) => link.send(cmd).boxed(),
            Self::Cluster(link) => async {
                for pause in MOVING {
                    match link.req_packed_command(cmd).await {
                        Err(error) if did_nothing(&error) => tokio::time::sleep(pause).await,
                        answer => return answer,
                    }
                }
                link.req_packed_command(cmd).await
            }
            .boxed(),
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
            Self::Cluster(link) => async move {
                for pause in MOVING {
                    match link.req_packed_commands(pipeline, offset, count).await {
                        Err(error) if did_nothing(&error) => tokio::time::sleep(pause).await,
                        answer => return answer,
                    }
                }
                link.req_packed_commands(pipeline, offset, count).await
            }
            .boxed(),
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
pub(crate) struct Reconnecting(Arc<Shared>);

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
    since: Instant,
}

impl Reconnecting {
    /// Connects.
    pub(super) async fn open(
        client: Client,
        config: ConnectionManagerConfig,
        suspicions: Suspicions,
    ) -> RedisResult<Self> {
        let manager = ConnectionManager::new_with_config(client.clone(), config.clone()).await?;
        let current = RwLock::new(Numbered { manager, number: 0, since: Instant::now() });
        Ok(Self(Arc::new(Shared { client, config, current, suspicions })))
    }

    async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        let mut used = self.0.current();
        let answer = used.manager.send_packed_command(command).await;
        match &answer {
            Err(error) => self.0.look(used.number, error),
            Ok(value) => self.0.look_at(used.number, value),
        }
        answer
    }

    async fn send_all(
        &self,
        commands: &Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisResult<Vec<Value>> {
        let mut used = self.0.current();
        let answers = used.manager.send_packed_commands(commands, offset, count).await;
        match &answers {
            Err(error) => self.0.look(used.number, error),
            Ok(values) => values.iter().for_each(|value| self.0.look_at(used.number, value)),
        }
        answers
    }
}

impl Shared {
    fn current(&self) -> Numbered {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at a value of a pipeline: it may be an error of the server.
    fn look_at(&self, used: u64, value: &Value) {
        if let Value::ServerError(error) = value {
            self.look(used, &error.clone().into());
        }
    }

    /// Replaces a manager that would give no better answer; the next command uses the new one.
    fn look(&self, used: u64, error: &RedisError) {
        if is_refusal(error) {
            self.suspicions.refuse();
        } else if error.code() != Some("NOSCRIPT") && Error::from(error.clone()).is_outage() {
            // NOSCRIPT is not an outage: every server has to be sent each script once.
            self.suspicions.raise();
        }
        if is_stuck(error) || is_demoted(error) {
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            let (client, config) = (self.client.clone(), self.config.clone());
            // It connects with the next command.
            if current.number == used
                && (is_stuck(error) || current.since.elapsed() > DEMOTED)
                && let Ok(manager) = ConnectionManager::new_lazy_with_config(client, config)
            {
                *current = Numbered { manager, number: used + 1, since: Instant::now() };
            }
        }
    }
}

/// Whether the server was made a replica of another.
fn is_demoted(error: &RedisError) -> bool {
    error.code() == Some("READONLY")
}

/// Whether a command had no effect: a node of a Cluster was not reached, or answered that it is the wrong one.
fn did_nothing(error: &RedisError) -> bool {
    error.code() == Some("MOVED") || error.kind() == ErrorKind::ClusterConnectionNotFound
}

/// Whether a manager that gave this error would give it again and again.
pub(crate) fn is_stuck(error: &RedisError) -> bool {
    let never_let_in = match error.kind() {
        ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => true,
        // Another kind of server is there now.
        ErrorKind::Parse => true,
        // The database that is selected after the login.
        ErrorKind::Server(_) => error.to_string().contains("refused to switch database"),
        _ => false,
    };
    never_let_in || error.is_timeout()
}
