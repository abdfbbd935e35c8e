//! A master that Sentinels know by name, and that may be another server tomorrow.
//!
//! ```text
//!  our connections, the official crate's ──▶ a socket of ours ──▶ the present master
//!                                                  ▲
//!                  asks the Sentinels once a second ┘ and hangs up when the master has changed
//! ```
//!
//! Neither the reconnecting connections of the `redis` crate nor the official BullMQ crate know Sentinels. Both
//! reconnect to an address, so they are given an address that does not change: a Unix socket in a folder that only
//! this user can enter. The relay passes all bytes on to the present master.
//!
//! Sentinels may name a server that is not the master any more, or not yet. So the server is asked for its `ROLE`
//! before anything is passed on to it, as Redis' guidelines for clients demand.
//!
//! With TLS it is the relay that speaks it (`tls.rs`), to the host that the Sentinels name.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use redis::{AsyncConnectionConfig, Client, TlsCertificates, cmd};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use url::Url;
use uuid::Uuid;

use super::tls::{Tls, Wire};
use crate::Error;
use crate::link::address::SentinelAddress;

/// A Sentinel that has not answered after this long is skipped.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the Sentinels are asked who the master is.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// How long a connection is held while no master can be reached; clients give up after 5 s.
const HOLD: Duration = Duration::from_secs(4);
/// How soon a master that cannot be reached is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// Passes connections on to the present master as long as it lives.
pub(crate) struct Relay {
    folder: PathBuf,
    url: String,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl Relay {
    /// Finds the master and starts to pass on.
    pub(crate) async fn start(
        address: &SentinelAddress,
        certificates: Option<&TlsCertificates>,
        shown_url: &str,
    ) -> Result<Self, Error> {
        let unreachable = |reason: String| Error::Unreachable { url: shown_url.to_owned(), reason };
        let invalid = |reason: String| Error::InvalidUrl { url: shown_url.to_owned(), reason };
        let sentinels =
            Sentinels::open(address, certificates).map_err(|error| invalid(error.to_string()))?;
        let way = Way::new(address, certificates).map_err(invalid)?;
        let (master, _) = sentinels.master().await.map_err(unreachable)?;
        let promoted = async {
            while way.is_no_master(&master).await {
                tokio::time::sleep(RETRY).await;
            }
        };
        if tokio::time::timeout(HOLD, promoted).await.is_err() {
            return Err(unreachable(format!(
                "the Sentinels name {master}, which says that it is a replica; is there a failover \
                 under way?"
            )));
        }
        // Checked here, because behind the socket the reason would be lost.
        let connected = tokio::time::timeout(HOLD, way.open(&master)).await;
        if let Ok(Err(error)) = connected {
            return Err(unreachable(format!("the master at {master}: {error}")));
        }
        tracing::info!(master, "the Sentinels know the master");
        let folder = std::env::temp_dir().join(format!("stampede-{}", Uuid::now_v7().simple()));
        let socket = folder.join("redis.sock");
        let listener = std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .and_then(|()| UnixListener::bind(&socket))
            .map_err(|e| {
                unreachable(format!("cannot make a socket at {}: {e}", socket.display()))
            })?;
        let (announce, masters) = watch::channel(master);
        let tasks = [
            tokio::spawn(follow(sentinels, announce)),
            tokio::spawn(accept(listener, way, masters)),
        ];
        let url = url_of(&socket, address)
            .ok_or_else(|| unreachable(format!("{} is no path for a socket", socket.display())))?;
        Ok(Self { folder, url, _tasks: tasks.map(AbortOnDropHandle::new) })
    }

    /// Where to connect to, in the form that the `redis` crate reads.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // What stays after a crash is an empty folder with a dead socket.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn url_of(socket: &Path, address: &SentinelAddress) -> Option<String> {
    let mut url = Url::parse("redis+unix:///").ok()?;
    url.set_path(socket.to_str()?);
    let mut query = url.query_pairs_mut();
    query.append_pair("db", &address.database.to_string());
    for (name, value) in [("user", &address.user), ("pass", &address.password)] {
        if !value.is_empty() {
            // It stood in a URL as user or password, and is a parameter now: other signs are special.
            query.append_pair(name, &percent_decode_str(value).decode_utf8_lossy());
        }
    }
    drop(query);
    Some(url.into())
}

/// The Sentinels of one master.
struct Sentinels {
    clients: Vec<(String, Client)>,
    name: String,
}

impl Sentinels {
    fn open(
        address: &SentinelAddress,
        certificates: Option<&TlsCertificates>,
    ) -> redis::RedisResult<Self> {
        let open = |url: &String| {
            let client = super::opener::open(url.as_str(), certificates.cloned())?;
            Ok((crate::link::address::without_password(url), client))
        };
        let clients = address.sentinels.iter().map(open).collect::<redis::RedisResult<_>>()?;
        Ok(Self { clients, name: address.master.clone() })
    }

    /// `host:port` of the master by most of the Sentinels that answer, and whether they are half of all at
    /// least: one that is cut off from the others may name the old one. Otherwise what each of them said.
    async fn master(&self) -> Result<(String, bool), String> {
        let asked = self
            .clients
            .iter()
            .map(|(_, client)| tokio::time::timeout(PATIENCE, ask(client, &self.name)));
        let answers = futures::future::join_all(asked).await;
        let mut complaints = Vec::new();
        let mut votes: Vec<(String, usize)> = Vec::new();
        for ((url, _), answer) in self.clients.iter().zip(answers) {
            match answer {
                Ok(Ok(Some((host, port)))) => {
                    let host = if host.contains(':') { format!("[{host}]") } else { host };
                    let master = format!("{host}:{port}");
                    match votes.iter_mut().find(|(other, _)| *other == master) {
                        Some((_, votes)) => *votes += 1,
                        None => votes.push((master, 1)),
                    }
                }
                Ok(Ok(None)) => {
                    complaints.push(format!("the Sentinel at {url} knows no {:?}", self.name));
                }
                Ok(Err(error)) => complaints.push(format!("the Sentinel at {url}: {error}")),
                Err(_) => complaints.push(format!("the Sentinel at {url} does not answer")),
            }
        }
        let most = votes.iter().map(|(_, votes)| *votes).max();
        let chosen = votes.into_iter().find(|(_, votes)| Some(*votes) == most);
        let certain = |votes: usize| votes * 2 >= self.clients.len();
        let chosen = chosen.map(|(master, votes)| (master, certain(votes)));
        chosen.ok_or_else(|| complaints.join("; "))
    }
}

async fn ask(client: &Client, name: &str) -> redis::RedisResult<Option<(String, u16)>> {
    let config = patient();
    let mut sentinel = client.get_multiplexed_async_connection_with_config(&config).await?;
    cmd("SENTINEL").arg("get-master-addr-by-name").arg(name).query_async(&mut sentinel).await
}

fn patient() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE))
}

/// How to connect to the master.
struct Way {
    /// Scheme, user and password: `redis://user:password@`, percent-encoded.
    login: String,
    certificates: Option<TlsCertificates>,
    tls: Option<Tls>,
}

impl Way {
    fn new(
        address: &SentinelAddress,
        certificates: Option<&TlsCertificates>,
    ) -> Result<Self, String> {
        let scheme = if address.master_tls { "rediss" } else { "redis" };
        let login = format!("{scheme}://{}:{}@", address.user, address.password);
        let tls = address.master_tls.then(|| Tls::new(certificates)).transpose()?;
        Ok(Self { login, certificates: certificates.cloned(), tls })
    }

    /// Whether a server answers that it is no master. A server that does not answer the question may be one; clients
    /// that connect will find out.
    async fn is_no_master(&self, server: &str) -> bool {
        let url = format!("{}{server}", self.login);
        let Ok(client) = super::opener::open(url, self.certificates.clone()) else {
            return false;
        };
        let asked = async {
            let config = patient();
            let mut server = client.get_multiplexed_async_connection_with_config(&config).await?;
            cmd("ROLE").query_async::<Vec<redis::Value>>(&mut server).await
        };
        let role = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(answer)) => answer.into_iter().next(),
            _ => return false,
        };
        matches!(role, Some(redis::Value::BulkString(role)) if role != b"master")
    }

    async fn connect(&self, server: &str) -> Option<Box<dyn Wire>> {
        if self.is_no_master(server).await {
            tracing::debug!(server, "is not the master that the Sentinels take it for");
            return None;
        }
        let opened = self.open(server).await;
        opened.inspect_err(|error| tracing::debug!(server, %error, "cannot reach the master")).ok()
    }

    async fn open(&self, server: &str) -> std::io::Result<Box<dyn Wire>> {
        let stream = TcpStream::connect(server).await?;
        let _ = stream.set_nodelay(true);
        super::opener::probe(&stream);
        match &self.tls {
            Some(tls) => tls.wrap(server, stream).await,
            None => Ok(Box::new(stream)),
        }
    }
}

/// Announces every change of the master.
async fn follow(sentinels: Sentinels, announce: watch::Sender<String>) {
    loop {
        tokio::time::sleep(ASK_EVERY).await;
        // Without Sentinels, or with too few, the last master known is the best guess.
        let Ok((now, true)) = sentinels.master().await else { continue };
        announce.send_if_modified(|master| {
            let changed = *master != now;
            if changed {
                tracing::warn!(
                    before = master,
                    now,
                    "the Sentinels made another server the master"
                );
                master.clone_from(&now);
            }
            changed
        });
    }
}

/// A connection to the present master. During a failover there is none: a client that connects then is held until
/// there is one, instead of being refused and trying again with longer and longer pauses.
async fn reach(way: &Way, masters: &mut watch::Receiver<String>) -> Box<dyn Wire> {
    loop {
        let master = masters.borrow_and_update().clone();
        tokio::select! {
            connected = way.connect(&master) => if let Some(stream) = connected {
                return stream;
            },
            changed = masters.changed() => match changed {
                Ok(()) => continue,
                // The relay has ended.
                Err(_) => std::future::pending().await,
            },
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn accept(listener: UnixListener, way: Way, masters: watch::Receiver<String>) {
    let way = Arc::new(way);
    loop {
        match listener.accept().await {
            Ok((ours, _)) => {
                tokio::spawn(pass_on(ours, way.clone(), masters.clone()));
            }
            // Out of file descriptors, most likely: others may be closed meanwhile.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Connects to the master and passes everything on until one side ends or the master changes. Ours sees
/// a lost connection then, and connects again.
async fn pass_on(mut ours: UnixStream, way: Arc<Way>, mut masters: watch::Receiver<String>) {
    let Ok(mut theirs) = tokio::time::timeout(HOLD, reach(&way, &mut masters)).await else {
        return;
    };
    tokio::select! {
        _ = copy_bidirectional(&mut ours, &mut theirs) => {}
        _ = masters.changed() => {}
    }
}
