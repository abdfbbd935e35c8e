//! Secrets: never shown, and checked as far as possible.

/// Fewest characters of a secret.
const MIN_SECRET: usize = 32;

/// Reads `ADMIN_KEY`. It is sent in a header, so it must be visible ASCII. A text with two dots counts as a signed token, which
/// nobody can guess: guesses at such a key would not be limited.
pub(super) fn admin_key(text: &str) -> Result<String, String> {
    if text.matches('.').count() == 2 {
        return Err("must not have exactly two dots: it looks like a signed token".to_owned());
    }
    if text.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    Err("must be visible ASCII characters without spaces".to_owned())
}

/// Reads `JWT_SECRET`. Who guesses it makes tokens of any user.
pub(super) fn jwt_secret(text: &str) -> Result<String, String> {
    if text.len() >= MIN_SECRET {
        return Ok(text.to_owned());
    }
    Err(format!(
        "must be at least {MIN_SECRET} characters that nobody can guess; make it with: openssl rand -hex 32"
    ))
}

/// Reads `TICKET_KEY_SECRET`. It is used without key stretching, so a short one could be guessed.
pub(super) fn ticket_key_secret(text: &str) -> Result<String, String> {
    if text.len() >= MIN_SECRET && text.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "must be at least {MIN_SECRET} random visible ASCII characters; make it with: openssl rand -hex 32"
    ))
}
