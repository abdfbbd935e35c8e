//! API keys: make, list, read, change, rotate, revoke.

use std::time::Duration;

use stampede_model::{EVERYBODY, EventId, KeyHash, KeyId, Principal, Role, Timestamp};
use stampede_store::{
    ApiKey, KeyEdit, KeyFilter, KeyRotated, KeyState as State, KeyWritten, NewKey, Slice, Versioned,
};
use stampede_wire::identity::{IssuedKey, Key, KeyState};

use crate::{Error, Identity, answers, now, rights};

/// Most keys of one user that work at the same time.
pub const MOST_KEYS: u64 = 1_000;
/// Longest time that a replaced secret goes on working.
pub const LONGEST_GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A key to be made.
#[derive(Debug, Clone)]
pub struct KeyRequest {
    /// Its name; empty: none.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its user; absent: the caller's.
    pub user: Option<String>,
    /// The only event that it reaches.
    pub event: Option<EventId>,
    /// The only queues that it reaches.
    pub queues: Option<Vec<String>>,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// Changes of a key; what is absent stays.
#[derive(Debug, Clone, Default)]
pub struct KeyChange {
    /// Another name.
    pub name: Option<String>,
    /// Another end; `Some(None)`: as late as the caller may set it.
    pub expires_at: Option<Option<Timestamp>>,
}

/// Which keys to list; what is absent matches all that the caller may see.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Only keys of this user.
    pub user: Option<String>,
    /// Only keys with this role.
    pub role: Option<Role>,
    /// Only keys with exactly this name.
    pub name: Option<String>,
    /// Only keys in this state.
    pub state: Option<KeyState>,
}

/// Why a key is not made, shown or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// There is no such key.
    NotFound,
    /// The key belongs to somebody else.
    NotYours,
    /// The user has as many keys that work as a user may have.
    TooManyKeys,
    /// Only admins may make or manage such a key.
    NeedsAdmin,
    /// The key reaches what the caller's key does not.
    OutOfScope,
    /// The key ends later than the caller's own, so that its secret must not be shown to the caller.
    Outlives,
    /// Another key of the user has the name.
    NameTaken,
    /// The key comes from a setting.
    Preset,
    /// The key is revoked or has expired.
    Ended(KeyState),
    /// The key has another version than the one that was seen.
    ChangedMeanwhile,
    /// As many replaced secrets as there may be still work.
    TooManyFormer,
    /// A field of the request is wrong.
    Field(&'static str, String),
}

/// The result of a verb that may be refused.
type Verdict<T> = Result<Result<T, Refused>, Error>;

/// The value, or the refusal as the verb's result.
macro_rules! allowed {
    ($checked:expr) => {
        match $checked {
            Ok(value) => value,
            Err(refused) => return Ok(Err(refused)),
        }
    };
}

/// A random secret. Clients and `stampede doctor` know it by its beginning.
pub fn new_secret() -> String {
    format!("stp_{}", hex::encode(rand::random::<[u8; 32]>()))
}

/// Whether a credential could be guessed: it has neither the form of a random secret of ours nor that of a signed token. The key
/// that an operator presets may be any text.
pub fn is_guessable(credential: &str) -> bool {
    let random = credential.strip_prefix("stp_");
    let is_random =
        random.is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()));
    !is_random && !crate::jwt::looks_like_one(credential)
}

impl Identity {
    /// Makes a key.
    pub async fn create_key(&self, caller: &Principal, request: &KeyRequest) -> Verdict<IssuedKey> {
        let principal = allowed!(rights::may_make(caller, request));
        allowed!(self.check_event(&principal).await?);
        let (secret, now) = (new_secret(), now());
        // Each key has rate limits of its own. Requests at the same time may make a few more.
        if self.shared.store.count_keys(&principal.user, now).await? >= MOST_KEYS {
            return Ok(Err(Refused::TooManyKeys));
        }
        let expires_at = principal.expires_at;
        let hash = KeyHash::of(&secret);
        let name = request.name.clone();
        let key = NewKey { id: KeyId::generate(), hash, principal, name, expires_at };
        if request.name.is_empty() {
            self.shared.store.insert_key(&key, now).await?;
        } else if self.shared.store.insert_named_key(&key, now).await? == KeyWritten::NameTaken {
            return Ok(Err(Refused::NameTaken));
        }
        let made = allowed!(self.find(key.id).await?);
        Ok(Ok(IssuedKey { key: answers::key(made, now), secret }))
    }

    /// The event of a key must be one that its user reaches.
    async fn check_event(&self, principal: &Principal) -> Verdict<()> {
        let Some(id) = principal.scope.event else { return Ok(Ok(())) };
        let event = self.shared.store.event(id).await?;
        let (user, role) = (&principal.user, principal.role);
        let reaches = |owner: &str| role == Role::Admin || user == EVERYBODY || user == owner;
        match event.is_some_and(|event| reaches(&event.owner)) {
            true => Ok(Ok(())),
            false => Ok(Err(Refused::Field("event", format!("is no event of the user {user}")))),
        }
    }

    /// A part of the keys that the caller may see.
    pub async fn keys(
        &self,
        caller: &Principal,
        listing: Listing,
        slice: &Slice<KeyId>,
    ) -> Result<Vec<Key>, Error> {
        let Listing { user, role, name, state } = listing;
        let own = caller.visible_owner().map(str::to_owned);
        if own.is_some() && user.is_some() && own != user {
            return Ok(Vec::new());
        }
        let state = state.map(|state| match state {
            KeyState::Active => State::Active,
            KeyState::Expired => State::Expired,
            KeyState::Revoked => State::Revoked,
        });
        let within = caller.scope.clone();
        let filter = KeyFilter { user: own.or(user), role, name, state, within };
        let now = now();
        let found = self.shared.store.api_keys_slice(&filter, slice, now).await?;
        Ok(found.into_iter().map(|key| answers::key(key, now)).collect())
    }

    /// A key.
    pub async fn key(&self, caller: &Principal, id: KeyId) -> Verdict<Key> {
        let key = allowed!(self.find(id).await?);
        allowed!(rights::may_read(caller, &key));
        Ok(Ok(answers::key(key, now())))
    }

    /// Changes a key's name or end; with `seen`, only that version of the key.
    pub async fn change_key(
        &self,
        caller: &Principal,
        id: KeyId,
        change: KeyChange,
        seen: Option<Timestamp>,
    ) -> Verdict<Key> {
        let key = allowed!(self.find(id).await?);
        allowed!(rights::may_manage(caller, &key));
        let expires_at = match change.expires_at {
            Some(wanted) => Some(allowed!(rights::end_of_new(caller, wanted))),
            None => None,
        };
        let edit = KeyEdit { name: change.name, expires_at };
        match self.shared.store.edit_key_as_seen(id, &edit, seen, now()).await? {
            KeyWritten::Done => {}
            KeyWritten::ChangedMeanwhile => return Ok(Err(Refused::ChangedMeanwhile)),
            KeyWritten::NameTaken => return Ok(Err(Refused::NameTaken)),
            KeyWritten::NotFound => return Ok(Err(Refused::Ended(KeyState::Revoked))),
        }
        let changed = allowed!(self.find(id).await?);
        Ok(Ok(answers::key(changed, now())))
    }

    /// Gives a key another secret; the former one works for the time of `grace`.
    pub async fn rotate_key(
        &self,
        caller: &Principal,
        id: KeyId,
        grace: Duration,
    ) -> Verdict<IssuedKey> {
        let key = allowed!(self.find(id).await?);
        allowed!(rights::may_rotate(caller, &key));
        let (secret, now) = (new_secret(), now());
        let until = (!grace.is_zero()).then(|| now.checked_add(grace.min(LONGEST_GRACE)).ok());
        let hash = KeyHash::of(&secret);
        match self.shared.store.rotate_key(id, &hash, until.flatten(), now).await? {
            KeyRotated::Done => {}
            KeyRotated::TooManyFormer => return Ok(Err(Refused::TooManyFormer)),
            KeyRotated::NotFound => return Ok(Err(ended(&key, now))),
        }
        let rotated = allowed!(self.find(id).await?);
        Ok(Ok(IssuedKey { key: answers::key(rotated, now), secret }))
    }

    /// Revokes a key: it is refused from the next request on. To revoke a revoked key changes nothing. With `seen`, only
    /// that version of the key is revoked.
    pub async fn revoke_key(
        &self,
        caller: &Principal,
        id: KeyId,
        seen: Option<Timestamp>,
    ) -> Verdict<()> {
        let key = allowed!(self.find(id).await?);
        allowed!(rights::may_manage(caller, &key));
        match self.shared.store.end_key_as_seen(id, seen, now()).await? {
            Versioned::ChangedMeanwhile => Ok(Err(Refused::ChangedMeanwhile)),
            Versioned::Done(()) | Versioned::NotFound => Ok(Ok(())),
        }
    }

    /// A key that the caller may manage, as it is before a change.
    pub async fn managed_key(&self, caller: &Principal, id: KeyId) -> Verdict<Key> {
        let key = allowed!(self.find(id).await?);
        allowed!(rights::may_manage(caller, &key));
        Ok(Ok(answers::key(key, now())))
    }

    /// The id of the key that works with a secret.
    pub async fn key_with_secret(&self, secret: &str) -> Result<Option<KeyId>, Error> {
        let found = self.shared.store.principal(&KeyHash::of(secret), now()).await?;
        Ok(found.and_then(|principal| principal.key))
    }

    /// Revokes the key with a secret; `false`: no key that works has it.
    pub async fn revoke_secret(&self, secret: &str) -> Result<bool, Error> {
        Ok(self.shared.store.revoke_key(&KeyHash::of(secret), now()).await?)
    }

    async fn find(&self, id: KeyId) -> Verdict<ApiKey> {
        Ok(self.shared.store.api_key(id, now()).await?.ok_or(Refused::NotFound))
    }
}

/// Why a key has no new secret: it ended before, or just now.
fn ended(key: &ApiKey, now: Timestamp) -> Refused {
    Refused::Ended(match key.state(now) {
        State::Expired => KeyState::Expired,
        State::Revoked | State::Active => KeyState::Revoked,
    })
}
