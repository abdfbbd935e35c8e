//! The secret that the private ticket keys in the database are encrypted with.
//!
//! It comes from `TICKET_KEY_SECRET`. With SQLite, which has one server, it may be left unset: then the
//! first start makes a file with it in `DATA_DIR`, readable by its owner only. The file is written
//! whole and synced before the first key is encrypted with it, and never written again: a secret that
//! is lost or replaced makes every private key unreadable.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use stampede_model::Timestamp;
use stampede_store::{Store, TicketSecret};

use crate::settings::Settings;

/// The file's name in `DATA_DIR`.
const FILE: &str = "ticket-master.key";

/// Gives the store the secret, checks that it is the right one, and makes a key for every event that has none.
/// For servers.
pub(crate) async fn prepare(settings: &Settings, store: Store) -> Result<Store> {
    must_be_shared(settings)?;
    let secret = match known(settings)? {
        Some(secret) => secret,
        None if store.has_ticket_secret().await? => bail!(
            "TICKET_KEY_SECRET is not set and {} is gone, but the ticket keys in the database are \
             encrypted with a secret. Set the variable or restore the file; if the secret is lost for \
             good, make new keys with: stampede ticket-keys renew (tickets that were handed out stay \
             valid)",
            file(settings).display()
        ),
        None => make(settings)?,
    };
    let store = store.with_ticket_secret(&secret);
    store.prepare_ticket_keys(Timestamp::now()).await?;
    Ok(store)
}

/// Gives the store the present secret; the keys in the database may be encrypted with another one.
pub(crate) fn prepare_to_renew(settings: &Settings, store: Store) -> Result<Store> {
    must_be_shared(settings)?;
    let secret = match known(settings)? {
        Some(secret) => secret,
        None => make(settings)?,
    };
    Ok(store.with_ticket_secret(&secret))
}

/// The secret from the settings or the file, if there is one.
pub(crate) fn known(settings: &Settings) -> Result<Option<TicketSecret>> {
    if let Some(secret) = &settings.ticket_key_secret {
        return Ok(Some(TicketSecret::new(secret)));
    }
    if is_shared(settings) {
        return Ok(None);
    }
    let path = file(settings);
    match std::fs::read_to_string(&path) {
        Ok(text) => read(&path, &text).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Whether other nodes may use the same database. Then the file is not used: each node would make its own.
fn is_shared(settings: &Settings) -> bool {
    !settings.database_url.starts_with("sqlite:")
}

/// Refuses a shared database without a secret in the settings.
pub(crate) fn must_be_shared(settings: &Settings) -> Result<()> {
    if !is_shared(settings) || settings.ticket_key_secret.is_some() {
        return Ok(());
    }
    let file = file(settings);
    let way = match file.exists() {
        true => format!(
            "{} is of this machine alone and is not used. If this database was used with it so far, give \
             its content to all nodes: TICKET_KEY_SECRET=$(cat {}). Otherwise make a secret with: openssl rand -hex 32",
            file.display(),
            file.display()
        ),
        false => "Make one with: openssl rand -hex 32".to_owned(),
    };
    bail!(
        "TICKET_KEY_SECRET is not set. Private ticket keys in a shared database are encrypted with it: \
         set it to the same random text on all nodes, and keep it. {way}"
    )
}

fn read(path: &Path, text: &str) -> Result<TicketSecret> {
    let text = text.trim_end();
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        bail!(
            "{} is damaged: it must hold 64 hexadecimal digits. Restore it from a backup; do not \
             delete it, for the ticket keys in the database are encrypted with it",
            path.display()
        );
    }
    Ok(TicketSecret::new(text))
}

/// Makes the file. Of several processes that do so at once, one wins and all use its secret.
fn make(settings: &Settings) -> Result<TicketSecret> {
    let path = file(settings);
    write_once(&path).with_context(|| format!("cannot make {} (DATA_DIR)", path.display()))?;
    let text = std::fs::read_to_string(&path)?;
    tracing::info!(
        "made {}: keep a copy of it, apart from the database; without it no ticket can be signed with the present keys",
        path.display()
    );
    read(&path, &text)
}

fn write_once(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let draft = folder.join(format!(".{FILE}.{}", hex::encode(rand::random::<[u8; 8]>())));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    writeln!(file, "{}", hex::encode(rand::random::<[u8; 32]>()))?;
    file.sync_all()?;
    // A hard link makes the whole file appear at once, and never replaces an existing one.
    let named = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    match named {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => File::open(folder)?.sync_all(),
    }
}

fn file(settings: &Settings) -> PathBuf {
    settings.data_dir.join(FILE)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_file_is_made_once_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data").join(FILE);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| write_once(&path).unwrap());
            }
        });
        let first = std::fs::read_to_string(&path).unwrap();
        write_once(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), first);
        assert!(read(&path, &first).is_ok());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "no drafts are left: {left:?}");
    }

    #[test]
    fn a_damaged_file_is_not_taken_for_a_secret() {
        for text in ["", "\n", "abc", &"g".repeat(64), &"a".repeat(63)] {
            let error = read(Path::new("/x/ticket-master.key"), text).unwrap_err().to_string();
            assert!(error.contains("/x/ticket-master.key is damaged"), "{error}");
        }
    }
}
