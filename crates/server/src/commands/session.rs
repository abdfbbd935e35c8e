//! A session of a command with a running server: its address and a key.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Result, bail};
use stampede_audit::{Kind, Subject};
use stampede_client::{Client, Error};
use stampede_model::{KeyHash, Principal, Role, Timestamp};
use stampede_store::Store;

use crate::cli::ServerArgs;
use crate::operator::audited;
use crate::settings::Settings;
use crate::{admin_key, connect};

/// Longest wait for the first answer of a server.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

/// A client of a server, perhaps with a key that exists only while the command runs.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) url: String,
    temporary: Option<(Store, KeyHash)>,
}

impl Session {
    /// Opens a session with the given key, or ADMIN_KEY, or a temporary key of this role made in the local database.
    pub(crate) async fn open(settings: &Settings, server: &ServerArgs, role: Role) -> Result<Self> {
        let url = server
            .url
            .clone()
            .unwrap_or_else(|| format!("http://{}", reachable(settings.host, settings.port)));
        let (key, temporary) = match server.key.clone().or_else(|| settings.admin_key.clone()) {
            Some(key) => (key, None),
            None if server.url.is_some() => {
                // First, because no key helps with an address where nobody answers.
                if !answers(&url).await? {
                    bail!("no answer from {url}. Is a server running there? Check --url");
                }
                bail!("give a --key that the server at {url} knows")
            }
            None => {
                let store =
                    connect::existing_store(settings, "give --url and --key of a server elsewhere")
                        .await?;
                let principal = Principal::new("local command line", role);
                let secret =
                    admin_key::create(&store, &principal, "a command of this machine").await?;
                let hash = KeyHash::of(&secret);
                (secret, Some((store, hash)))
            }
        };
        Ok(Self { client: Client::new(&url, &key)?, url, temporary })
    }

    /// Fails with the remedy if no server is ready.
    pub(crate) async fn must_be_ready(&self) -> Result<()> {
        match self.client.readiness().await {
            Ok(_) => Ok(()),
            Err(Some(told)) => {
                let told = serde_json::to_string(&told)?;
                bail!("the server at {} is not ready: {told}", self.url)
            }
            Err(None) => bail!(
                "no server is ready at {}. Start one with \"make run\", or say where it is with PORT or --url",
                self.url
            ),
        }
    }

    /// Whether the session has a temporary key. Records that are made with a temporary key belong to a user who owns no others.
    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// Revokes the temporary key.
    pub(crate) async fn close(self) -> Result<()> {
        if let Some((store, hash)) = self.temporary {
            let id = store.principal(&hash, Timestamp::now()).await?.and_then(|who| who.key);
            let revoking = store.revoke_key(&hash, Timestamp::now());
            let subject =
                Subject { record: id.map(|id| id.to_string()), ..Subject::new(Kind::Key) };
            audited(&store, "revokeKey", subject, None, revoking, |_| None).await?;
            store.close().await;
        }
        Ok(())
    }
}

/// Whether anybody answers at an address.
async fn answers(url: &str) -> Result<bool> {
    let client = Client::new(url, "")?;
    let answer = tokio::time::timeout(ANSWER_PATIENCE, client.health()).await;
    Ok(!matches!(answer, Err(_) | Ok(Err(Error::NoAnswer { .. }))))
}

/// The address at which a server of this machine is reached; one that listens on all addresses at 127.0.0.1.
fn reachable(host: IpAddr, port: u16) -> SocketAddr {
    let host = if host.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { host };
    SocketAddr::new(host, port)
}
