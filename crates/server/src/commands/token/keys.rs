//! The keys of the local database, or of a server elsewhere.

use std::time::Duration;

use anyhow::{Result, bail};
use stampede_audit::{Kind, Subject};
use stampede_client::KeyQuery;
use stampede_identity::{Identity, KeyRequest, LONGEST_GRACE, Listing, Refused};
use stampede_model::{EventId, KeyId, Principal, Role, Timestamp};
use stampede_store::{Slice, Sorted, Store};
use stampede_wire::identity::{IssuedKey, Key};

use crate::cli::ServerArgs;
use crate::commands::session::Session;
use crate::connect;
use crate::operator::{audited, json};
use crate::settings::Settings;

/// Keys that are read at a time.
const PAGE: u32 = 1_000;

/// A key to be made.
pub(super) struct NewKey {
    pub(super) name: Option<String>,
    pub(super) role: Role,
    pub(super) user: Option<String>,
    pub(super) event: Option<EventId>,
    pub(super) queues: Option<Vec<String>>,
    pub(super) expires_at: Option<Timestamp>,
}

/// Where the keys are.
pub(super) enum Keys {
    /// In the database of the settings. Who reaches it may do everything.
    Local { store: Store, identity: Identity, operator: Principal },
    /// Behind the API of a server.
    Remote(Session),
}

impl Keys {
    /// Opens the database, or with `--url` a session with a server.
    pub(super) async fn open(settings: &Settings, server: &ServerArgs) -> Result<Self> {
        if server.url.is_some() {
            return Ok(Self::Remote(Session::open(settings, server, Role::Admin).await?));
        }
        let store = connect::store(settings).await?;
        store.migrate().await?;
        let identity = Identity::new(store.clone(), None);
        Ok(Self::Local { store, identity, operator: Principal::new("operator", Role::Admin) })
    }

    pub(super) async fn close(self) -> Result<()> {
        match self {
            Self::Local { store, .. } => store.close().await,
            Self::Remote(session) => session.close().await?,
        }
        Ok(())
    }

    pub(super) async fn create(&self, key: &NewKey) -> Result<IssuedKey> {
        let (event, queues, expires_at) = (key.event, key.queues.clone(), key.expires_at);
        match self {
            Self::Local { store, identity, operator } => {
                // Without a user, the key belongs to a new one, who has no records yet.
                let user = key.user.clone().unwrap_or_else(|| KeyId::generate().to_string());
                let name = key.name.clone().unwrap_or_default();
                let (role, user) = (key.role, Some(user));
                let request = KeyRequest { name, role, user, event, queues, expires_at };
                let making = async { allowed(identity.create_key(operator, &request).await?) };
                let subject = Subject::new(Kind::Key);
                let after = |issued: &IssuedKey| json(&issued.key);
                audited(store, "createKey", subject, None, making, after).await
            }
            Self::Remote(session) => {
                let Some(name) = key.name.clone() else {
                    bail!("give the key a --name: a server wants one");
                };
                let (role, user) = (key.role, key.user.clone());
                let request =
                    stampede_client::NewKey { name, role, user, event, queues, expires_at };
                Ok(session.client.create_key(&request).await?)
            }
        }
    }

    /// All keys of a user and a name, newest first.
    pub(super) async fn list(&self, user: Option<&str>, name: Option<&str>) -> Result<Vec<Key>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let (keys, next) = self.page(user, name, after).await?;
            all.extend(keys);
            match next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    async fn page(
        &self,
        user: Option<&str>,
        name: Option<&str>,
        after: Option<KeyId>,
    ) -> Result<(Vec<Key>, Option<KeyId>)> {
        let (user, name) = (user.map(str::to_owned), name.map(str::to_owned));
        match self {
            Self::Local { identity, operator, .. } => {
                let listing = Listing { user, name, ..Listing::default() };
                let slice = Slice::new(Sorted::NewestFirst, after, PAGE);
                let keys = identity.keys(operator, listing, &slice).await?;
                let is_full = keys.len() as u32 == PAGE;
                let next = keys.last().filter(|_| is_full).map(|key| key.id);
                Ok((keys, next))
            }
            Self::Remote(session) => {
                let page = session.client.keys(&KeyQuery { user, name }, after).await?;
                Ok((page.keys, page.next))
            }
        }
    }

    pub(super) async fn read(&self, id: KeyId) -> Result<Key> {
        match self {
            Self::Local { identity, operator, .. } => allowed(identity.key(operator, id).await?),
            Self::Remote(session) => Ok(session.client.key(id).await?),
        }
    }

    pub(super) async fn rotate(&self, id: KeyId, grace: Duration) -> Result<IssuedKey> {
        if grace > LONGEST_GRACE {
            bail!("--grace is at most 7d");
        }
        match self {
            Self::Local { store, identity, operator } => {
                let before = json(&self.read(id).await?);
                let rotating = async { allowed(identity.rotate_key(operator, id, grace).await?) };
                let (subject, after) =
                    (Subject::of(Kind::Key, id), |issued: &IssuedKey| json(&issued.key));
                audited(store, "rotateKey", subject, before, rotating, after).await
            }
            Self::Remote(session) => Ok(session.client.rotate_key(id, grace.as_secs()).await?),
        }
    }

    pub(super) async fn revoke(&self, id: KeyId) -> Result<()> {
        match self {
            Self::Local { store, identity, operator } => {
                let before = json(&self.read(id).await?);
                let revoking = async { allowed(identity.revoke_key(operator, id, None).await?) };
                let subject = Subject::of(Kind::Key, id);
                audited(store, "revokeKey", subject, before, revoking, |()| None).await
            }
            Self::Remote(session) => Ok(session.client.revoke_key(id).await?),
        }
    }

    /// Revokes the key with this secret; `false`: there is none. A server is never sent a text that may be a secret.
    pub(super) async fn revoke_secret(&self, secret: &str) -> Result<bool> {
        match self {
            Self::Local { store, identity, .. } => {
                let Some(id) = identity.key_with_secret(secret).await? else { return Ok(false) };
                let before = json(&self.read(id).await?);
                let revoking = identity.revoke_secret(secret);
                let subject = Subject::of(Kind::Key, id);
                audited(store, "revokeKey", subject, before, revoking, |_| None).await
            }
            Self::Remote(_) if secret.starts_with("stp_") => {
                bail!("with --url, name the key by its id or name, not by its secret")
            }
            Self::Remote(_) => Ok(false),
        }
    }
}

/// The value, or the refusal as an error for people.
fn allowed<T>(verdict: Result<T, Refused>) -> Result<T> {
    verdict.map_err(|refused| match refused {
        Refused::NotFound => anyhow::anyhow!("there is no key with this id"),
        Refused::NameTaken => anyhow::anyhow!(
            "another key of this user has the name; revoke it first, or choose another name"
        ),
        Refused::Preset => {
            anyhow::anyhow!("this key comes from ADMIN_KEY; change the setting and start again")
        }
        Refused::Ended(state) => anyhow::anyhow!("the key is {}; make a new one", state.as_str()),
        Refused::TooManyFormer => {
            anyhow::anyhow!("ten former secrets still work; rotate without --grace to end them")
        }
        Refused::TooManyKeys => {
            anyhow::anyhow!("the user has too many keys that work; revoke some that are not used")
        }
        Refused::Field(field, message) => anyhow::anyhow!("--{field} {message}"),
        refused => anyhow::anyhow!("refused: {refused:?}"),
    })
}
