//! Secrets and signatures, compared in constant time.

use ring::{digest, hmac};

/// Whether one of the secrets is the given one. Digests are compared, so that not even the length of a secret is told by time.
pub(crate) fn is_one_of(secrets: &[String], given: &str) -> bool {
    let key = hmac::Key::new(
        hmac::HMAC_SHA256,
        digest::digest(&digest::SHA256, given.as_bytes()).as_ref(),
    );
    let given = hmac::sign(&key, given.as_bytes());
    // All are compared, whichever fits.
    secrets.iter().fold(false, |found, secret| {
        hmac::verify(&key, secret.as_bytes(), given.as_ref()).is_ok() | found
    })
}

/// Whether a signature is an HMAC of the message under one of the secrets.
pub(crate) fn is_signed(
    algorithm: hmac::Algorithm,
    secrets: &[String],
    message: &[u8],
    signature: &[u8],
) -> bool {
    secrets.iter().any(|secret| {
        let key = hmac::Key::new(algorithm, secret.as_bytes());
        hmac::verify(&key, message, signature).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_one_of_several_only_if_it_is_equal() {
        let secrets = ["present".to_owned(), "former".to_owned()];
        assert!(is_one_of(&secrets, "present") && is_one_of(&secrets, "former"));
        for wrong in ["", "presen", "present ", "Present", "presentformer"] {
            assert!(!is_one_of(&secrets, wrong), "{wrong}");
        }
        assert!(!is_one_of(&[], ""));
    }
}
