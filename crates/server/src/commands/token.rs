//! `stampede token`: API keys, made and revoked right in the database.

use anyhow::{Result, bail};
use stampede_model::{KeyHash, KeyId, Principal, Timestamp};

use crate::cli::Token;
use crate::settings::Settings;
use crate::{admin_key, connect};

pub(crate) async fn run(settings: Settings, command: Token) -> Result<()> {
    let store = connect::store(&settings).await?;
    store.migrate().await?;
    match command {
        Token::Create { role, user } => {
            let user = user.unwrap_or_else(|| KeyId::generate().to_string());
            println!(
                "{}",
                admin_key::create(&store, &Principal::new(user, role), "token create").await?
            );
        }
        Token::Revoke { key } => {
            if !store.revoke_key(&KeyHash::of(&key), Timestamp::now()).await? {
                bail!("this key is not known, or revoked already");
            }
            println!("revoked");
        }
    }
    store.close().await;
    Ok(())
}
