//! The ticket token from outside: what is accepted, what never is, and whether it fits its symbol.

// A test that cannot go on says so by panicking.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod mutations;
mod symbol;
mod token;
mod tricks;
mod vectors;

use stampede_model::{EventId, KeyRing, PublicKey, Signer, Timestamp};

const EVENT: &str = "0198f3a2-7c41-7d20-9b1e-4f6a2c8d5e01";

fn event() -> EventId {
    EVENT.parse().unwrap()
}

/// Key `number` of an event; each from a seed of its own.
fn signer(event: EventId, number: u32) -> Signer {
    Signer::new(event, number, &seed(event, number))
}

fn seed(event: EventId, number: u32) -> [u8; 32] {
    let mut seed = [0x5a; 32];
    seed[..16].copy_from_slice(&event.to_bytes());
    seed[16..20].copy_from_slice(&number.to_be_bytes());
    seed
}

/// The public half; those named in `revoked` are.
fn ring(event: EventId, numbers: &[u32], revoked: &[u32]) -> KeyRing {
    let now = Timestamp::UNIX_EPOCH;
    let key = |number: &u32| {
        let public = signer(event, *number).public_bytes();
        PublicKey::new(*number, &public, now, revoked.contains(number).then_some(now)).unwrap()
    };
    KeyRing::new(event, "Opening Night".into(), numbers.iter().map(key).collect()).unwrap()
}
