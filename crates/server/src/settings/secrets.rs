//! Secrets: never shown, checked for what can be checked.

use super::reader::Reader;

/// Characters of a secret.
const MIN_SECRET: usize = 32;

pub(super) fn read_admin_key(reader: &mut Reader<'_>) -> Option<String> {
    let key = reader.variable("ADMIN_KEY")?;
    // It travels in a header: anything else could never be presented.
    if key.chars().all(|c| c.is_ascii_graphic()) {
        return Some(key);
    }
    let right = "must be visible ASCII characters without spaces";
    reader.mistake("ADMIN_KEY", "…", right);
    None
}

pub(super) fn read_ticket_key_secret(reader: &mut Reader<'_>) -> Option<String> {
    let secret = reader.variable("TICKET_KEY_SECRET")?;
    // It is not stretched, so it must not be guessable.
    if secret.len() >= MIN_SECRET && secret.chars().all(|c| c.is_ascii_graphic()) {
        return Some(secret);
    }
    let right = format!(
        "must be at least {MIN_SECRET} random visible ASCII characters; make it with: openssl rand -hex 32"
    );
    reader.mistake("TICKET_KEY_SECRET", "…", right);
    None
}
