//! Damaged tokens, of which none may be accepted.
//!
//! Half of them are damaged at random, half by somebody who knows the format (`tricks.rs`). All cores share the work; the
//! seeds are fixed, so that a failure can be repeated. `STAMPEDE_TOKEN_MUTATIONS=1000000` tries as many.

use std::time::Instant;

use fastrand::Rng;
use stampede_model::{Claims, KeyRing, Refusal, Token};

use crate::{event, ring, signer, tricks};

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// How many are tried.
fn mutations() -> u32 {
    let given = std::env::var("STAMPEDE_TOKEN_MUTATIONS").ok();
    given.and_then(|number| number.parse().ok()).unwrap_or(100_000)
}

#[test]
fn of_many_mutations_of_valid_tokens_none_is_accepted() {
    let started = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let valid: Vec<String> = (1..=64)
        .map(|serial| signer(event(), 1 + serial % 3).sign(serial, 1 + serial % 2).to_string())
        .collect();
    let keys = ring(event(), &[1, 2, 3], &[]);
    for token in &valid {
        assert!(token.parse::<Token>().unwrap().verify(&keys).is_ok(), "{token}");
    }
    let mutations = mutations();
    let reached_signature: u32 = std::thread::scope(|scope| {
        let run = |thread| {
            let (valid, keys) = (&valid, &keys);
            let share = mutations / threads + u32::from(thread < mutations % threads);
            scope.spawn(move || attack(share, u64::from(thread), valid, keys))
        };
        let threads: Vec<_> = (0..threads).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    // If most were thrown out by their shape already, this would test little.
    assert!(reached_signature > mutations / 3, "{reached_signature}");
    eprintln!(
        "{mutations} mutations, {reached_signature} up to the signature: {:.1?}",
        started.elapsed()
    );
}

/// Mutates and verifies; returns how many were refused only by their signature.
fn attack(mutations: u32, seed: u64, valid: &[String], keys: &KeyRing) -> u32 {
    let mut dice = Rng::with_seed(seed);
    let mut reached_signature = 0;
    for _ in 0..mutations {
        let mutated = mutate(&mut dice, valid);
        match verify(&mutated, keys) {
            Ok(claims) => {
                panic!("{} was accepted as {claims:?}", String::from_utf8_lossy(&mutated))
            }
            Err(Refusal::Forged) => reached_signature += 1,
            Err(_) => {}
        }
    }
    reached_signature
}

fn verify(text: &[u8], keys: &KeyRing) -> Result<Claims, Refusal> {
    let text = std::str::from_utf8(text).map_err(|_| Refusal::Malformed)?;
    text.parse::<Token>()?.verify(keys)
}

/// A valid token, damaged in one of many ways; never one of the valid ones.
fn mutate(dice: &mut Rng, valid: &[String]) -> Vec<u8> {
    loop {
        let text = if dice.bool() { tricks::play(dice, valid) } else { damaged(dice, valid) };
        if !valid.iter().any(|valid| valid.as_bytes() == text) {
            return text;
        }
    }
}

fn damaged(dice: &mut Rng, valid: &[String]) -> Vec<u8> {
    let mut text = dice.choice(valid).unwrap().as_bytes().to_vec();
    for _ in 0..dice.u8(1..=3) {
        damage(dice, &mut text, valid);
    }
    text
}

fn damage(dice: &mut Rng, text: &mut Vec<u8>, valid: &[String]) {
    let at = dice.usize(..text.len().max(1)).min(text.len().saturating_sub(1));
    // Mostly damage that keeps the shape, so that it is the signature that has to notice.
    match dice.u8(..16) {
        _ if text.is_empty() => text.push(b'A'),
        0..=5 => text[at] = *dice.choice(ALPHABET).unwrap(),
        6..=8 => {
            // One bit of what the character stands for.
            if let Some(value) = ALPHABET.iter().position(|c| *c == text[at]) {
                text[at] = ALPHABET[value ^ 1 << dice.u8(..5)];
            }
        }
        9 => {
            let with = dice.usize(..text.len());
            text.swap(at, with);
        }
        10..=12 => {
            // The head of this one, the tail of another.
            let other = dice.choice(valid).unwrap().as_bytes();
            if at < other.len() {
                text.truncate(at);
                text.extend_from_slice(&other[at..]);
            }
        }
        13 => text.truncate(at),
        14 => text.insert(at, *dice.choice(ALPHABET).unwrap()),
        _ => text[at] = dice.u8(..),
    }
}

#[test]
fn no_text_makes_the_parser_panic() {
    let mut dice = Rng::with_seed(4);
    let keys = ring(event(), &[1], &[]);
    for _ in 0..200_000 {
        let length = if dice.bool() { 149 } else { dice.usize(..400) };
        let text: Vec<u8> = (0..length)
            .map(|_| if dice.u8(..50) > 0 { *dice.choice(ALPHABET).unwrap() } else { dice.u8(..) })
            .collect();
        assert!(verify(&text, &keys).is_err());
    }
}
