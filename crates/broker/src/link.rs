//! Redis as a place: how to get there, and whether it is there. Refuses a Redis that would lose jobs.
//!
//! | file | holds |
//! |---|---|
//! | `address.rs` | addresses of one server, of Sentinels and of a Cluster |
//! | `connection.rs` | a connection that reconnects |
//! | `listener.rs` | a connection that subscribes to channels |
//! | `official.rs` | the official crate's connection and its handles on queues |
//! | `opener.rs` | how new connections are made |
//! | `sentinel.rs` | finding the present master, and following it |
//! | `tls.rs` | TLS on the way there |
//! | `check.rs` | what a server must be like |
//! | `state.rs` | watching whether Redis answers, for logs, health and consumers |
//! | `transition.rs` | what the watcher concludes from an answer: pure |

pub(crate) mod address;
mod check;
mod connection;
mod listener;
mod official;
mod opener;
mod sentinel;
mod state;
mod tls;
mod transition;

use std::path::PathBuf;
use std::time::Duration;

use redis::cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, Slot, SlotAddr};
use redis::{Cmd, FromRedisValue};

pub use address::check_url;
pub(crate) use check::{check_server, info_field};
pub(crate) use connection::{Link, is_stuck};
pub(crate) use listener::Listener;
pub(crate) use official::{Official, OfficialQueue};
pub(crate) use opener::{Opener, no_answer, open};
pub use state::ConnectionState;
pub use state::Restarts;
pub(crate) use state::Watched;

/// A command that has no answer for this long has failed.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Certificates in PEM files, where those that Mozilla trusts do not do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authority that signed the server's certificate.
    pub authority: Option<PathBuf>,
    /// Our own certificate and its key, for servers that want to know who comes.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// Sends a command that names no key to the server that has the queues: in a Cluster, their common hash
/// tag tells which.
pub(crate) async fn ask_home<T: FromRedisValue>(
    link: Link,
    prefix: &str,
    command: Cmd,
) -> Result<T, redis::RedisError> {
    let answer = match link {
        mut link @ Link::Single(_) => return command.query_async(&mut link).await,
        Link::Cluster(mut link) => {
            let home = Route::with_slot(Slot::for_key(prefix), SlotAddr::Master);
            let home = RoutingInfo::SingleNode(SingleNodeRoutingInfo::SpecificNode(home));
            link.route_command(command, home).await?
        }
    };
    Ok(T::from_redis_value(answer)?)
}
