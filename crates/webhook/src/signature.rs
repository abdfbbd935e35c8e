//! Secrets and signatures, as Standard Webhooks has them: `whsec_<base64>`, and HMAC-SHA-256 over id, time and body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use stampede_model::{FeedEventId, Timestamp};

/// Bytes of a new secret.
const SECRET_BYTES: usize = 32;

/// A random secret.
pub(crate) fn new_secret() -> [u8; SECRET_BYTES] {
    rand::random()
}

/// A secret as receivers keep it.
pub(crate) fn shown(secret: &[u8]) -> String {
    format!("whsec_{}", STANDARD.encode(secret))
}

/// The header `webhook-signature`: one signature for each secret. The time is signed, so that a receiver can tell an old
/// request that somebody sends again.
pub(crate) fn signatures(
    secrets: &[Vec<u8>],
    message: FeedEventId,
    at: Timestamp,
    body: &str,
) -> String {
    let signed = format!("{message}.{}.{body}", at.as_second());
    let signature = |secret: &Vec<u8>| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        format!("v1,{}", STANDARD.encode(hmac::sign(&key, signed.as_bytes())))
    };
    secrets.iter().map(signature).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_the_standard() {
        // Made with Python: hmac.new(b"0123456789abcdef01234567", f"{id}.{time}.{body}".encode(), "sha256").
        let message = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let at = Timestamp::from_second(1_614_265_330).unwrap();
        let secrets = [b"0123456789abcdef01234567".to_vec(), b"former".to_vec()];
        let both = signatures(&secrets, message, at, r#"{"test": 2432232314}"#);
        assert_eq!(
            both,
            concat!(
                "v1,FRCzFcDMHbG7RDaZNUX4YOzRsf//Ewtsrv6z2MzyLq4=",
                " v1,L+QezPGuZ9bGscqSsq3gyEaHosPTANYpXVhIaJZ2yiQ="
            )
        );
        assert_eq!(shown(b"abc"), "whsec_YWJj");
        assert_ne!(new_secret(), new_secret());
    }
}
