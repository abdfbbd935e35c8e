//! Which tokens are accepted, and the reason each of the others is refused with.

use stampede_model::{
    Claims, EventId, KeyRing, KeyRingError, PublicKey, Refusal, Timestamp, Token,
};

use crate::{event, ring, signer};

fn verify(text: &str, ring: &KeyRing) -> Result<Claims, Refusal> {
    text.parse::<Token>()?.verify(ring)
}

#[test]
fn a_genuine_token_says_what_was_signed() {
    let text = signer(event(), 2).sign(7, 3).to_string();
    let claims = Claims { event: event(), key: 2, serial: 7, generation: 3 };
    assert_eq!(verify(&text, &ring(event(), &[1, 2, 3], &[])), Ok(claims));
    assert_eq!(text.parse::<Token>().unwrap().to_string(), text);
    assert_eq!(signer(event(), 2).sign(7, 3).to_string(), text, "equal tickets, equal bytes");
}

/// Tickets printed years ago must stay valid. The file was made by openssl and Python from the drawing
/// in `token.rs`, not by this program.
#[test]
fn a_token_of_the_first_version_is_accepted_for_ever() {
    let text = include_str!("first_token.txt").trim_end();
    let claims = Claims { event: event(), key: 1, serial: 42, generation: 1 };
    assert_eq!(verify(text, &ring(event(), &[1], &[])), Ok(claims));
    assert_eq!(signer(event(), 1).sign(42, 1).to_string(), text);
}

#[test]
fn rotation_leaves_older_keys_and_revocation_takes_them_away() {
    let old = signer(event(), 1).sign(1, 1).to_string();
    let new = signer(event(), 2).sign(2, 1).to_string();
    assert!(verify(&old, &ring(event(), &[1, 2], &[])).is_ok());
    assert!(verify(&new, &ring(event(), &[1, 2], &[])).is_ok());
    let revoked = ring(event(), &[1, 2], &[1]);
    assert_eq!(verify(&old, &revoked), Err(Refusal::RevokedKey));
    assert!(verify(&new, &revoked).is_ok());
    assert_eq!(revoked.signing().unwrap().number, 2);
    assert_eq!(verify(&new, &ring(event(), &[1], &[])), Err(Refusal::UnknownKey));
}

#[test]
fn a_token_of_another_event_is_foreign_and_cannot_be_moved() {
    let other = EventId::generate();
    let text = signer(other, 1).sign(1, 1).to_string();
    assert_eq!(verify(&text, &ring(event(), &[1], &[])), Err(Refusal::ForeignEvent));
    // The same serial and signature under our event's id.
    let ours = signer(event(), 1).sign(1, 1).to_string();
    let moved = format!("{}{}", &ours[..48], &text[48..]);
    assert_eq!(verify(&moved, &ring(event(), &[1], &[])), Err(Refusal::Forged));
}

#[test]
fn a_token_signed_by_somebody_else_is_forged() {
    let stranger = stampede_model::Signer::new(event(), 1, &[9; 32]);
    let text = stranger.sign(1, 1).to_string();
    assert_eq!(verify(&text, &ring(event(), &[1], &[])), Err(Refusal::Forged));
    // A revoked key's number does not make a forgery any more genuine.
    assert_eq!(verify(&text, &ring(event(), &[1], &[1])), Err(Refusal::Forged));
    // The signature of one ticket does not fit another.
    let (one, two) = (signer(event(), 1).sign(1, 1), signer(event(), 1).sign(2, 1));
    let mixed = format!("{}{}", &one.to_string()[..47], &two.to_string()[47..]);
    assert_eq!(verify(&mixed, &ring(event(), &[1], &[])), Err(Refusal::Forged));
}

#[test]
fn other_spellings_of_a_genuine_token_are_refused() {
    let (text, keys) = (signer(event(), 1).sign(1, 1).to_string(), ring(event(), &[1], &[]));
    for other in [
        text.to_lowercase(),
        format!("{text} "),
        format!(" {text}"),
        format!("{text}\n"),
        format!("{text}="),
        format!("{text}A"),
        format!("{text}\0"),
        text.replacen('A', "a", 1),
        text.replacen('A', "А", 1),
        format!("{}-{}", &text[..10], &text[10..]),
        format!("{text}{text}"),
        text.chars().rev().collect(),
    ] {
        assert!(verify(&other, &keys).is_err(), "{other:?}");
    }
    for length in 0..text.len() {
        assert_eq!(verify(&text[..length], &keys), Err(Refusal::Malformed), "{length}");
    }
}

/// S + L is the classic second signature of lax verifiers.
#[test]
fn a_signature_that_is_not_canonical_is_forged() {
    let text = signer(event(), 1).sign(1, 1).to_string();
    let mut bytes = decode(&text);
    crate::tricks::add_order(&mut bytes[61..]);
    let second = encode(&bytes);
    assert_ne!(second, text);
    assert_eq!(verify(&second, &ring(event(), &[1], &[])), Err(Refusal::Forged));
}

/// With such a key, one signature would fit many messages.
#[test]
fn no_key_of_small_order_is_taken() {
    for point in crate::tricks::small_order_points() {
        assert_eq!(PublicKey::new(1, &point, Timestamp::UNIX_EPOCH, None), None, "{point:02x?}");
    }
}

#[test]
fn a_later_version_is_named_as_such() {
    let mut bytes = decode(&signer(event(), 1).sign(1, 1).to_string());
    for version in [0, 2, 255] {
        bytes[0] = version;
        let keys = ring(event(), &[1], &[]);
        assert_eq!(verify(&encode(&bytes), &keys), Err(Refusal::UnknownVersion));
    }
}

#[test]
fn keys_survive_the_way_to_a_scanner_and_bad_ones_are_refused() {
    let ring = ring(event(), &[1, 2], &[1]);
    let json = serde_json::to_string(&ring).unwrap();
    assert_eq!(KeyRing::from_json(&json), Ok(ring.clone()));
    let twice = json.replace("\"kid\":2", "\"kid\":1");
    assert_eq!(KeyRing::from_json(&twice), Err(KeyRingError::Twice(1)));
    let public = hex::encode(signer(event(), 1).public_bytes());
    for bad in [
        "",
        "00",
        &"0".repeat(64),
        &format!("01{}", "0".repeat(62)),
        &"z".repeat(64),
        &"f".repeat(64),
    ] {
        assert!(KeyRing::from_json(&json.replace(&public, bad)).is_err(), "{bad:?}");
    }
    for text in ["", "{}", "[]", "null", "{\"event\":1}"] {
        assert!(matches!(KeyRing::from_json(text), Err(KeyRingError::Shape(_))), "{text}");
    }
}

const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// An independent reading of base32, bit by bit.
pub(crate) fn decode(text: &str) -> Vec<u8> {
    let bits: Vec<u8> = text
        .bytes()
        .map(|c| ALPHABET.iter().position(|a| *a == c).unwrap())
        .flat_map(|value| (0..5).rev().map(move |bit| (value >> bit & 1) as u8))
        .collect();
    bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit)).collect()
}

/// The token's text of these bytes, written bit by bit.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let bits: Vec<u8> =
        bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    bits.chunks(5)
        .map(|five| (0..5).fold(0, |sum, at| sum << 1 | five.get(at).copied().unwrap_or(0)))
        .map(|value| char::from(ALPHABET[usize::from(value)]))
        .collect()
}
