//! The test vectors of docs/ticket-token.md: `docs/ticket-token.json` is what this code makes, accepts and refuses.
//!
//! `STAMPEDE_WRITE_VECTORS=1 cargo nextest run --workspace -E 'test(vectors::)'` writes the file.

use ed25519_dalek::{Signer as _, SigningKey};
use serde::Serialize;
use stampede_model::{Claims, EventId, KeyRing, Refusal, Token};

use crate::token::{decode, encode};
use crate::{event, ring, seed, signer, tricks};

const DOMAIN: &[u8] = b"stampede ticket token v1\0\0";
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

/// The file of vectors.
#[derive(Serialize)]
struct Vectors {
    about: &'static str,
    keys: KeyRing,
    seeds: Vec<Seed>,
    accepted: Vec<Accepted>,
    refused: Vec<Refused>,
}

/// The private half of a key, for people who want to make tokens themselves.
#[derive(Serialize)]
struct Seed {
    kid: u32,
    seed: String,
}

#[derive(Serialize)]
struct Accepted {
    token: String,
    claims: Claims,
}

#[derive(Serialize)]
struct Refused {
    what: &'static str,
    reason: &'static str,
    token: String,
}

/// Keys 1 and 2 are trusted, key 3 is revoked.
fn keys() -> KeyRing {
    ring(event(), &[1, 2, 3], &[3])
}

fn other_event() -> EventId {
    "0198f3a2-7c41-7d20-9b1e-4f6a2c8d5e02".parse().unwrap()
}

/// The token that most refused ones are made of.
fn genuine() -> String {
    signer(event(), 1).sign(42, 1).to_string()
}

/// The genuine token with other bytes.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = decode(&genuine());
    change(&mut bytes);
    encode(&bytes)
}

/// The genuine token with changed claims, signed by its key; `before` stands for the domain.
fn signed(before: &[u8], change: impl FnOnce(&mut [u8])) -> String {
    changed(|bytes| {
        change(&mut bytes[..29]);
        let message = [before, &bytes[..29]].concat();
        let signature = SigningKey::from_bytes(&seed(event(), 1)).sign(&message);
        bytes[29..].copy_from_slice(&signature.to_bytes());
    })
}

fn accepted() -> Vec<Accepted> {
    [(1, 42, 1), (2, 7, 3), (1, u32::MAX, u32::MAX)]
        .into_iter()
        .map(|(key, serial, generation)| Accepted {
            token: signer(event(), key).sign(serial, generation).to_string(),
            claims: Claims { event: event(), key, serial, generation },
        })
        .collect()
}

fn refused() -> Vec<Refused> {
    let reasons = [
        (Refusal::Malformed, spellings()),
        (Refusal::UnknownVersion, versions()),
        (Refusal::ForeignEvent, foreign()),
        (Refusal::UnknownKey, unknown_keys()),
        (Refusal::Forged, forged_claims()),
        (Refusal::Forged, forged_signatures()),
        (
            Refusal::RevokedKey,
            vec![("rightly signed by key 3", signer(event(), 3).sign(42, 1).to_string())],
        ),
    ];
    let each = |(reason, tokens): (Refusal, Vec<(&'static str, String)>)| {
        tokens.into_iter().map(move |(what, token)| Refused {
            what,
            reason: reason.as_str(),
            token,
        })
    };
    reasons.into_iter().flat_map(each).collect()
}

fn spellings() -> Vec<(&'static str, String)> {
    let text = genuine();
    vec![
        ("nothing", String::new()),
        ("the last character is missing", text[..148].to_owned()),
        ("one character more", format!("{text}A")),
        ("lower case", text.to_lowercase()),
        ("one letter in lower case", text.replacen('A', "a", 1)),
        ("a space before", format!(" {text}")),
        ("a line feed after", format!("{text}\n")),
        ("padding", format!("{text}===")),
        ("a hyphen inside", format!("{}-{}", &text[..10], &text[10..])),
        ("a Cyrillic letter that looks like A", text.replacen('A', "\u{410}", 1)),
        ("the digit 1, which the alphabet lacks", format!("1{}", &text[1..])),
        (
            "the last character carries a bit of no byte",
            format!("{}{}", &text[..148], after(&text)),
        ),
        ("hexadecimal instead of base32", hex::encode(decode(&text))),
        ("a code of another system", "https://tickets.example/t/42?s=9f8e7d".to_owned()),
        ("a ticket's id", "0198f3a2-7c41-7d20-9b1e-4f6a2c8d5e42".to_owned()),
    ]
}

/// The character after the last one of a token.
fn after(text: &str) -> char {
    char::from(text.as_bytes()[148] + 1)
}

fn versions() -> Vec<(&'static str, String)> {
    vec![
        ("version 0, rightly signed", signed(DOMAIN, |claims| claims[0] = 0)),
        ("version 2, rightly signed", signed(DOMAIN, |claims| claims[0] = 2)),
    ]
}

fn foreign() -> Vec<(&'static str, String)> {
    vec![
        ("another event, by its own key", signer(other_event(), 1).sign(42, 1).to_string()),
        ("a bit of the event's id is flipped", changed(|bytes| bytes[16] ^= 1)),
        ("another event, by a key of this event", signed(DOMAIN, |claims| claims[16] = 2)),
    ]
}

fn unknown_keys() -> Vec<(&'static str, String)> {
    vec![
        ("key 0", changed(|bytes| bytes[20] = 0)),
        ("key 4, by a key of the same owner", signer(event(), 4).sign(42, 1).to_string()),
    ]
}

fn forged_claims() -> Vec<(&'static str, String)> {
    let theirs = decode(&signer(other_event(), 1).sign(42, 1).to_string());
    vec![
        ("another ticket's number", changed(|bytes| bytes[24] = 43)),
        ("another generation", changed(|bytes| bytes[28] = 2)),
        ("another key of the event", changed(|bytes| bytes[20] = 2)),
        ("a revoked key of the event, which did not sign", changed(|bytes| bytes[20] = 3)),
        ("number and generation exchanged", changed(|bytes| bytes[21..29].rotate_left(4))),
        (
            "the signature of another event's ticket",
            changed(|bytes| bytes[29..].copy_from_slice(&theirs[29..])),
        ),
    ]
}

fn forged_signatures() -> Vec<(&'static str, String)> {
    let mut neutral = [0; 64];
    neutral[0] = 1;
    vec![
        ("a bit of the signature's first half is flipped", changed(|bytes| bytes[29] ^= 1)),
        ("a bit of the signature's second half is flipped", changed(|bytes| bytes[61] ^= 1)),
        ("a signature of zeros", changed(|bytes| bytes[29..].fill(0))),
        ("the neutral point and zero", changed(|bytes| bytes[29..].copy_from_slice(&neutral))),
        (
            "the second half plus the group's order",
            changed(|bytes| tricks::add_order(&mut bytes[61..])),
        ),
        ("the halves exchanged", changed(|bytes| bytes[29..].rotate_left(32))),
        ("signed without the domain", signed(b"", |_| ())),
        ("signed without the domain's two zero bytes", signed(&DOMAIN[..24], |_| ())),
    ]
}

#[test]
fn the_vectors_of_the_document_are_what_this_code_makes() {
    let about = "Test vectors of docs/ticket-token.md. These keys are public: never use them.";
    let seeds = [1, 2, 3].map(|kid| Seed { kid, seed: hex::encode(seed(event(), kid)) }).into();
    let vectors = Vectors { about, keys: keys(), seeds, accepted: accepted(), refused: refused() };
    let text = serde_json::to_string_pretty(&vectors).unwrap() + "\n";
    let file = format!("{FILES}/ticket-token.json");
    if std::env::var_os("STAMPEDE_WRITE_VECTORS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert!(std::fs::read_to_string(&file).unwrap() == text, "{file} is not what the code makes");
}

#[test]
fn every_vector_is_accepted_or_refused_with_its_reason() {
    let verify = |text: &str| text.parse::<Token>()?.verify(&keys());
    for vector in accepted() {
        assert_eq!(verify(&vector.token), Ok(vector.claims));
    }
    for vector in refused() {
        let refusal = verify(&vector.token).map_err(Refusal::as_str);
        assert_eq!(refusal, Err(vector.reason), "{}", vector.what);
    }
}

/// The page takes the first vector apart, line by line.
#[test]
fn the_example_on_the_page_is_the_first_vector() {
    let page = std::fs::read_to_string(format!("{FILES}/ticket-token.md")).unwrap();
    let token = genuine();
    let bytes = decode(&token);
    let public = signer(event(), 1).public_bytes();
    let parts = [
        &bytes[..1],
        &bytes[1..17],
        &bytes[17..21],
        &bytes[21..25],
        &bytes[25..29],
        &bytes[29..],
        &public,
    ];
    for part in [token].into_iter().chain(parts.map(hex::encode)) {
        assert!(page.contains(&part), "docs/ticket-token.md lacks {part}");
    }
}
