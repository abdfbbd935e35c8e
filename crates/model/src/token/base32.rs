//! Base32 (RFC 4648, upper case, no padding) for texts of one fixed length; one spelling for each value.

use super::LENGTH;

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Characters of a token.
const TEXT: usize = (LENGTH * 8).div_ceil(5);

/// Writes the bytes.
pub(super) fn encode(bytes: &[u8; LENGTH]) -> String {
    let mut text = String::with_capacity(TEXT);
    let (mut buffer, mut bits) = (0u32, 0);
    for byte in bytes {
        buffer = buffer << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(character(buffer >> bits));
        }
    }
    if bits > 0 {
        text.push(character(buffer << (5 - bits)));
    }
    text
}

/// Reads what [`encode`] writes, and nothing else.
pub(super) fn decode(text: &[u8]) -> Option<[u8; LENGTH]> {
    if text.len() != TEXT {
        return None;
    }
    let mut bytes = [0; LENGTH];
    let (mut buffer, mut bits, mut written) = (0u32, 0, 0);
    for character in text {
        buffer = buffer << 5 | value(*character)?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes[written] = (buffer >> bits) as u8;
            written += 1;
        }
    }
    // Bits that belong to no byte would give a token a second spelling.
    (buffer & ((1 << bits) - 1) == 0).then_some(bytes)
}

fn character(five_bits: u32) -> char {
    char::from(ALPHABET[(five_bits & 31) as usize])
}

fn value(character: u8) -> Option<u32> {
    match character {
        b'A'..=b'Z' => Some(u32::from(character - b'A')),
        b'2'..=b'7' => Some(u32::from(character - b'2') + 26),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_exactly_one_spelling() {
        let mut bytes = [0u8; LENGTH];
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = (at * 37 + 11) as u8;
        }
        let text = encode(&bytes);
        assert_eq!((text.len(), decode(text.as_bytes())), (149, Some(bytes)));
        // The last character carries one bit that is not part of any byte.
        let last = text.chars().last().unwrap();
        let sibling = ALPHABET[ALPHABET.iter().position(|c| char::from(*c) == last).unwrap() ^ 1];
        let other = format!("{}{}", &text[..148], char::from(sibling));
        assert_eq!(decode(other.as_bytes()), None);
    }

    #[test]
    fn it_agrees_with_the_examples_of_the_standard() {
        // RFC 4648, section 10: "foobar" is MZXW6YTBOI; the rest of ours are zeros.
        let mut bytes = [0u8; LENGTH];
        bytes[..6].copy_from_slice(b"foobar");
        assert!(encode(&bytes).starts_with("MZXW6YTBOIAAAAAA"));
    }
}
