//! Secrets and signatures, as Standard Webhooks has them: `whsec_<base64>`, and HMAC-SHA-256 over id, time and body.

use std::fmt::Display;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use ring::hmac;
use stampede_model::Timestamp;

/// Bytes of a new secret.
const SECRET_BYTES: usize = 32;
/// Fewest bytes of a secret that somebody else made: 24 are what the standard asks for.
const FEWEST_BYTES: usize = 24;
/// How far the time of a message may be from ours. An older message may be one that somebody sends again.
pub const TOLERANCE: Duration = Duration::from_secs(5 * 60);
/// Bytes of a signature.
const SIGNATURE_BYTES: usize = 32;
/// Most signatures of a message that are compared: a sender has one for each of its secrets.
const MOST_SIGNATURES: usize = 10;

/// A random secret.
pub fn new_secret() -> [u8; SECRET_BYTES] {
    rand::random()
}

/// A secret as receivers keep it.
pub fn shown(secret: &[u8]) -> String {
    format!("whsec_{}", STANDARD.encode(secret))
}

/// Reads [`shown`] back; the error says what would be right, and nothing of the secret.
pub fn parse_secret(shown: &str) -> Result<Vec<u8>, String> {
    let secret = shown.strip_prefix("whsec_").and_then(|rest| STANDARD.decode(rest).ok());
    match secret {
        Some(secret) if secret.len() >= FEWEST_BYTES => Ok(secret),
        Some(_) => Err(format!("must have at least {FEWEST_BYTES} bytes behind whsec_, in base64")),
        None => Err("must be whsec_ and base64 behind it".to_owned()),
    }
}

/// The header `webhook-signature`: one signature for each secret. The time is signed, so that a receiver can tell an old
/// request that somebody sends again.
pub fn signatures(secrets: &[Vec<u8>], message: impl Display, at: Timestamp, body: &str) -> String {
    let signed = format!("{message}.{}.{body}", at.as_second());
    let signature = |secret: &Vec<u8>| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        format!("v1,{}", STANDARD.encode(hmac::sign(&key, signed.as_bytes())))
    };
    secrets.iter().map(signature).collect::<Vec<_>>().join(" ")
}

/// A message that proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unproven {
    /// One of `webhook-id`, `webhook-timestamp` and `webhook-signature` is missing.
    #[error("webhook-id, webhook-timestamp or webhook-signature is missing")]
    Unsigned,
    /// No signature is made with one of the secrets.
    #[error("webhook-signature is not made with this secret")]
    Wrong,
    /// The time of the message is too far from ours.
    #[error("webhook-timestamp is more than 5 minutes from the present")]
    Old,
}

/// Verifies a message that came; in constant time for a given length. Returns its id.
///
/// Anybody can send a message that proves nothing. So the time is looked at first, and the body is read once for each secret,
/// however many signatures there are.
pub fn verify<'a>(
    secrets: &[Vec<u8>],
    headers: &'a HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<&'a str, Unproven> {
    // A header that comes twice is ambiguous: another reader may take the other one.
    let header = |name: &str| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(only), None) => only.to_str().map_err(|_| Unproven::Wrong),
            (None, _) => Err(Unproven::Unsigned),
            _ => Err(Unproven::Wrong),
        }
    };
    let (id, time) = (header("webhook-id")?, header("webhook-timestamp")?);
    let given = candidates(header("webhook-signature")?);
    let apart = time.parse::<i64>().map_err(|_| Unproven::Wrong)?.abs_diff(now.as_second());
    if apart > TOLERANCE.as_secs() {
        return Err(Unproven::Old);
    }
    if given.is_empty() {
        return Err(Unproven::Wrong);
    }
    // Signatures are compared by their tags under a key that nobody knows: equal signatures have equal tags, and the time of a
    // comparison tells nothing.
    let blind = hmac::Key::new(hmac::HMAC_SHA256, &new_secret());
    let is_right = secrets.iter().any(|secret| {
        let mut right = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret));
        for part in [id.as_bytes(), b".", time.as_bytes(), b".", body] {
            right.update(part);
        }
        let right = hmac::sign(&blind, right.sign().as_ref());
        given.iter().any(|one| hmac::verify(&blind, one, right.as_ref()).is_ok())
    });
    if is_right { Ok(id) } else { Err(Unproven::Wrong) }
}

/// The first signatures of a header that can be one.
fn candidates(signatures: &str) -> Vec<[u8; SIGNATURE_BYTES]> {
    let given = signatures.split(' ').filter_map(|one| one.strip_prefix("v1,"));
    let decoded = given.filter_map(|one| STANDARD.decode(one).ok());
    decoded.filter_map(|one| one.try_into().ok()).take(MOST_SIGNATURES).collect()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_signature_is_that_of_the_standard() {
        // Made with Python: hmac.new(b"0123456789abcdef01234567", f"{id}.{time}.{body}".encode(), "sha256").
        let message = "01890a5d-ac96-774b-bcce-b302099a8057";
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

    #[test]
    fn a_secret_is_read_back() {
        let secret = new_secret();
        assert_eq!(parse_secret(&shown(&secret)), Ok(secret.to_vec()));
        for wrong in
            ["", "abc", "whsec_", "whsec_!", "whsec_YWJj", "YWJjYWJjYWJjYWJjYWJjYWJjYWJjYWJj"]
        {
            assert!(parse_secret(wrong).is_err(), "{wrong}");
        }
    }

    fn headers(id: &str, at: i64, signature: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &'static str, value: &str| {
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        };
        insert("webhook-id", id);
        insert("webhook-timestamp", &at.to_string());
        insert("webhook-signature", signature);
        headers
    }

    #[test]
    fn only_a_message_that_is_signed_and_new_is_proven() {
        let (now, secret, former) =
            (Timestamp::from_second(1_700_000_000).unwrap(), vec![1; 32], vec![2; 32]);
        let both = [secret.clone(), former.clone()];
        let sign = |secret: &Vec<u8>, at: i64| {
            signatures(
                std::slice::from_ref(secret),
                "m1",
                Timestamp::from_second(at).unwrap(),
                "{}",
            )
        };
        let verified = |signature: &str, at: i64, body: &str| {
            verify(&both, &headers("m1", at, signature), body.as_bytes(), now).map(str::to_owned)
        };
        let at = 1_700_000_000;
        assert_eq!(verified(&sign(&secret, at), at, "{}"), Ok("m1".to_owned()));
        assert_eq!(verified(&sign(&former, at), at, "{}"), Ok("m1".to_owned()));
        let among = format!("v2,x v1,AAAA {}", sign(&former, at));
        assert_eq!(verified(&among, at, "{}"), Ok("m1".to_owned()));
        for at in [at - 300, at + 300] {
            assert!(verified(&sign(&secret, at), at, "{}").is_ok());
        }
        for at in [at - 301, at + 301, 0, -1] {
            assert_eq!(verified(&sign(&secret, at), at, "{}"), Err(Unproven::Old), "{at}");
        }
        for (signature, body) in [
            (sign(&secret, at), "{ }"),
            (sign(&vec![3; 32], at), "{}"),
            (sign(&secret, at - 1), "{}"),
            (String::new(), "{}"),
            ("v1,".to_owned(), "{}"),
            (sign(&secret, at).replace("v1,", "v1a,"), "{}"),
        ] {
            assert_eq!(verified(&signature, at, body), Err(Unproven::Wrong), "{signature} {body}");
        }
        let whole = headers("m1", at, &sign(&secret, at));
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            let mut lacking = whole.clone();
            lacking.remove(name);
            assert_eq!(verify(&both, &lacking, b"{}", now), Err(Unproven::Unsigned), "{name}");
            let mut twice = whole.clone();
            twice.append(name, whole[name].clone());
            assert_eq!(verify(&both, &twice, b"{}", now), Err(Unproven::Wrong), "{name}");
        }
        assert_eq!(
            verify(&[], &whole, b"{}", now),
            Err(Unproven::Wrong),
            "no secret proves nothing"
        );
    }

    #[test]
    fn the_time_is_looked_at_before_the_signatures() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let old = headers("m1", 1_600_000_000, "v1,AAAA");
        assert_eq!(verify(&[vec![1; 32]], &old, b"{}", now), Err(Unproven::Old));
        let mut no_time = headers("m1", 0, "v1,AAAA");
        no_time.insert("webhook-timestamp", HeaderValue::from_static("soon"));
        assert_eq!(verify(&[vec![1; 32]], &no_time, b"{}", now), Err(Unproven::Wrong));
    }

    #[test]
    fn ten_signatures_of_a_message_count() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let secret = vec![1; 32];
        let right = signatures(std::slice::from_ref(&secret), "m1", now, "{}");
        let wrong = format!("v1,{} ", STANDARD.encode([7; 32]));
        let verified = |before: usize| {
            let signatures = format!("v1,AAAA v1, {}{right}", wrong.repeat(before));
            let headers = headers("m1", now.as_second(), &signatures);
            verify(std::slice::from_ref(&secret), &headers, b"{}", now).map(str::to_owned)
        };
        assert_eq!(verified(9), Ok("m1".to_owned()), "those of another length do not count");
        assert_eq!(verified(10), Err(Unproven::Wrong));
    }

    #[test]
    fn many_signatures_of_a_large_message_cost_as_much_as_one() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let (secrets, body) = (vec![vec![1; 32], vec![2; 32], vec![3; 32]], vec![b'x'; 1 << 20]);
        for signature in ["v1, ".to_owned(), format!("v1,{} ", STANDARD.encode([7; 32]))] {
            let all = signature.repeat((60 << 10) / signature.len());
            let headers = headers("m1", now.as_second(), &all);
            let begun = std::time::Instant::now();
            assert_eq!(verify(&secrets, &headers, &body, now), Err(Unproven::Wrong));
            // Milliseconds; one pass over the body for each of the 15,000 signatures takes ten seconds.
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        }
    }
}
