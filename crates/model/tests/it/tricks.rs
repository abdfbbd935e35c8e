//! Attempts at a ticket by somebody who knows the format: other spellings, exchanged fields, and signatures that lax
//! verifiers accept.

use fastrand::Rng;

use crate::token::{decode, encode};
use crate::{event, signer};

/// The order of the curve's base point, L, least byte first.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// Adds L to the second half of a signature: the same number to a verifier that does not check its range.
pub(crate) fn add_order(scalar: &mut [u8]) {
    let mut carry = 0u16;
    for (byte, add) in scalar.iter_mut().zip(ORDER) {
        carry += u16::from(*byte) + u16::from(add);
        *byte = carry as u8;
        carry >>= 8;
    }
}

/// Replaces the second half of a signature by L − S.
fn negate(scalar: &mut [u8]) {
    let mut borrow = 0i16;
    for (byte, order) in scalar.iter_mut().zip(ORDER) {
        let left = i16::from(order) - i16::from(*byte) - borrow;
        borrow = i16::from(left < 0);
        *byte = left as u8;
    }
}

/// All spellings of the eight points whose order is small.
pub(crate) fn small_order_points() -> Vec<[u8; 32]> {
    let eighth = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05";
    let other = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a";
    let near_p = |first: &str| format!("{first}{}7f", "ff".repeat(30));
    let positive = [
        "00".repeat(32),
        format!("01{}", "00".repeat(31)),
        eighth.to_owned(),
        other.to_owned(),
        near_p("ec"),
        near_p("ed"),
        near_p("ee"),
    ];
    let mut points = Vec::new();
    for text in positive {
        let mut point = [0; 32];
        hex::decode_to_slice(text, &mut point).unwrap();
        points.push(point);
        point[31] |= 0x80;
        points.push(point);
    }
    points
}

/// Plays one trick on a valid token. The text may be that of the token if the trick changed nothing.
pub(crate) fn play(dice: &mut Rng, valid: &[String]) -> Vec<u8> {
    let text = dice.choice(valid).unwrap();
    if dice.u8(..4) == 0 {
        return other_spelling(dice, text);
    }
    let mut bytes = decode(text);
    match dice.u8(..11) {
        0 => (0..dice.u8(1..=4)).for_each(|_| bytes[dice.usize(..93)] ^= 1 << dice.u8(..8)),
        1 => exchange_fields(dice, &mut bytes),
        2 => bytes[29..].rotate_left(32),
        3 => (0..dice.u8(1..=15)).for_each(|_| add_order(&mut bytes[61..])),
        4 => {
            let points = small_order_points();
            bytes[29..61].copy_from_slice(dice.choice(&points).unwrap());
            if dice.bool() {
                bytes[61..].fill(0);
            }
        }
        // Another key of the event, another ticket, another generation: with the old signature.
        5 => bytes[20] = dice.u8(1..=3),
        6 => bytes[21..25].copy_from_slice(&dice.u32(..200).to_be_bytes()),
        7 => bytes[25..29].copy_from_slice(&dice.u32(..4).to_be_bytes()),
        8 => {
            negate(&mut bytes[61..]);
            bytes[60] ^= if dice.bool() { 0x80 } else { 0 };
        }
        9 => return by_a_stranger(dice),
        // The signature of another ticket of the event.
        _ => bytes[29..].copy_from_slice(&decode(dice.choice(valid).unwrap())[29..]),
    }
    encode(&bytes).into_bytes()
}

/// Two of the three numbers in each other's place.
fn exchange_fields(dice: &mut Rng, bytes: &mut [u8]) {
    let fields = [17usize, 21, 25];
    let (one, two) = (*dice.choice(&fields).unwrap(), *dice.choice(&fields).unwrap());
    for at in 0..4 {
        bytes.swap(one + at, two + at);
    }
}

/// Signed by the key of another event, under this event's id or under its own.
fn by_a_stranger(dice: &mut Rng) -> Vec<u8> {
    let mut other = event().to_bytes();
    other[15] ^= dice.u8(1..);
    let theirs = signer(stampede_model::EventId::from_bytes(other), dice.u32(1..=3));
    let mut bytes = decode(&theirs.sign(dice.u32(1..=64), dice.u32(1..=2)).to_string());
    if dice.bool() {
        bytes[1..17].copy_from_slice(&event().to_bytes());
    }
    encode(&bytes).into_bytes()
}

/// The token in a spelling that careless readers take for the same.
fn other_spelling(dice: &mut Rng, text: &str) -> Vec<u8> {
    let at = dice.usize(..text.len());
    let with = |inserted: &str| format!("{}{inserted}{}", &text[..at], &text[at..]);
    let replaced = |character: &str| format!("{}{character}{}", &text[..at], &text[at + 1..]);
    let own = &text[at..=at];
    match dice.u8(..11) {
        0 => text.to_lowercase(),
        1 => replaced(&own.to_lowercase()),
        2 => with(
            dice.choice([" ", "\n", "\r", "\t", "\0", "-", "=", "\u{200b}", "\u{a0}"]).unwrap(),
        ),
        3 => format!("{text}{}", "=".repeat(dice.usize(1..=8))),
        // Characters that look alike: O and 0, I and 1, B and 8, a full-width or a Cyrillic letter.
        4 => text.replacen('O', "0", 1).replacen('I', "1", 1).replacen('B', "8", 1),
        5 => replaced(
            &own.chars()
                .map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap())
                .collect::<String>(),
        ),
        6 => text.replacen('A', "\u{410}", 1),
        // The bit of the last character that belongs to no byte.
        7 => format!("{}{}", &text[..148], char::from(text.as_bytes()[148] + 1)),
        8 => hex::encode(decode(text)),
        9 => format!("https://tickets.example/{text}"),
        _ => format!("{text}{text}"),
    }
    .into_bytes()
}
