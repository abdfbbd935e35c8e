//! `stampede token`: API keys, right in the database, or with `--url` through the API of a running server.

mod keys;
mod print;

use anyhow::{Result, bail};
use stampede_model::{KeyId, Timestamp};
use stampede_wire::identity::{IssuedKey, Key, KeyState};

use self::keys::{Keys, NewKey};
use crate::cli::{Token, TokenCommand, TokenCreate, WhichKey};
use crate::settings::Settings;

pub(crate) async fn run(settings: Settings, options: Token) -> Result<()> {
    let keys = Keys::open(&settings, &options.server).await?;
    let done = carry_out(&keys, &options).await;
    keys.close().await?;
    done
}

async fn carry_out(keys: &Keys, options: &Token) -> Result<()> {
    let json = options.json;
    match &options.command {
        TokenCommand::Create(create) => issued(json, &keys.create(&request(create)?).await?),
        TokenCommand::List { user, all } => {
            let mut found = keys.list(user.as_deref(), None).await?;
            found.retain(|key| *all || key.state != KeyState::Revoked);
            show(json, &found, |found| print::list(found))
        }
        TokenCommand::Show(which) => show(json, &find(keys, which).await?, print::one),
        TokenCommand::Rotate { which, grace } => {
            let key = find(keys, which).await?;
            issued(json, &keys.rotate(key.id, *grace).await?)
        }
        TokenCommand::Revoke(which) => {
            // A secret has no other form than a name might have.
            if !keys.revoke_secret(&which.which).await? {
                keys.revoke(find(keys, which).await?.id).await?;
            }
            if json {
                println!("{{\"revoked\":true}}")
            } else {
                println!("revoked")
            }
            Ok(())
        }
    }
}

fn request(create: &TokenCreate) -> Result<NewKey> {
    let expires_at = create.expires.map(|after| Timestamp::now().checked_add(after)).transpose()?;
    Ok(NewKey {
        name: create.name.clone(),
        role: create.role,
        user: create.user.clone(),
        event: create.event,
        queues: (!create.queues.is_empty()).then(|| create.queues.clone()),
        expires_at,
    })
}

/// The key that a person means by its id or its name. A name finds only keys that are not revoked.
async fn find(keys: &Keys, which: &WhichKey) -> Result<Key> {
    let WhichKey { which: name, user } = which;
    if let Ok(id) = name.parse::<KeyId>() {
        return keys.read(id).await;
    }
    let mut found = keys.list(user.as_deref(), Some(name)).await?;
    found.retain(|key| key.state != KeyState::Revoked);
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!(
            "this key is not known, or revoked already; \"token list\" shows all names and ids"
        ),
        count => {
            let ids: Vec<String> =
                found.iter().map(|key| format!("{} of {}", key.id, key.user)).collect();
            bail!("{count} keys have this name; use an id: {}", ids.join(", "))
        }
    }
}

/// Prints the secret of a key alone, so that a script can keep it.
fn issued(json: bool, issued: &IssuedKey) -> Result<()> {
    show(json, issued, |issued| println!("{}", issued.secret))
}

fn show<T: serde::Serialize>(json: bool, value: &T, print: impl Fn(&T)) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(value)?);
    } else {
        print(value);
    }
    Ok(())
}
