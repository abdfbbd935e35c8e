//! Numbers of tickets, packed for bundles: base64 of varints, or of a bitmap.
//!
//! - Serials: each as its difference to the one before (the first to 0), as a varint: seven bits a byte, the least
//!   first, the highest bit set if more follow.
//! - Generations: pairs of such a difference and the generation.
//! - A bitmap has one bit a serial: bit `serial % 8` of byte `serial / 8`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Packs serials, which must be sorted.
pub fn pack_serials(serials: impl IntoIterator<Item = u32>) -> String {
    let (mut bytes, mut last) = (Vec::new(), 0);
    for serial in serials {
        varint(&mut bytes, serial.wrapping_sub(last));
        last = serial;
    }
    STANDARD.encode(bytes)
}

/// Reads [`pack_serials`] back; `None` if it is damaged.
pub fn unpack_serials(text: &str) -> Option<Vec<u32>> {
    let (bytes, mut serials, mut last) = (STANDARD.decode(text).ok()?, Vec::new(), 0u32);
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        last = last.checked_add(read_varint(&mut rest)?)?;
        serials.push(last);
    }
    Some(serials)
}

/// Packs pairs of serial and generation, which must be sorted.
pub fn pack_generations(pairs: impl IntoIterator<Item = (u32, u32)>) -> String {
    let (mut bytes, mut last) = (Vec::new(), 0);
    for (serial, generation) in pairs {
        varint(&mut bytes, serial.wrapping_sub(last));
        varint(&mut bytes, generation);
        last = serial;
    }
    STANDARD.encode(bytes)
}

/// Reads [`pack_generations`] back; `None` if it is damaged.
pub fn unpack_generations(text: &str) -> Option<Vec<(u32, u32)>> {
    let (bytes, mut pairs, mut last) = (STANDARD.decode(text).ok()?, Vec::new(), 0u32);
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        last = last.checked_add(read_varint(&mut rest)?)?;
        pairs.push((last, read_varint(&mut rest)?));
    }
    Some(pairs)
}

/// Packs serials as a bitmap for serials up to `largest`.
pub fn pack_bitmap(serials: impl IntoIterator<Item = u32>, largest: u32) -> String {
    let mut bytes = vec![0u8; largest as usize / 8 + 1];
    for serial in serials {
        if let Some(byte) = bytes.get_mut(serial as usize / 8) {
            *byte |= 1 << (serial % 8);
        }
    }
    STANDARD.encode(bytes)
}

/// Reads [`pack_bitmap`] back; `None` if it is damaged.
pub fn unpack_bitmap(text: &str) -> Option<Vec<u32>> {
    let bytes = STANDARD.decode(text).ok()?;
    let bits = (0u32..).zip(bytes).flat_map(|(at, byte)| {
        (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at * 8 + bit)
    });
    Some(bits.collect())
}

fn varint(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0u64;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(number).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_read_back() {
        let serials = vec![1, 2, 3, 130, 20_000, u32::MAX];
        assert_eq!(unpack_serials(&pack_serials(serials.clone())), Some(serials.clone()));
        assert_eq!(pack_serials([1, 2, 130]), "AQGAAQ==");
        let pairs = vec![(5, 2), (6, 300), (1_000_000, u32::MAX)];
        assert_eq!(unpack_generations(&pack_generations(pairs.clone())), Some(pairs));
        assert_eq!(unpack_bitmap(&pack_bitmap([1, 8, 17], 20)), Some(vec![1, 8, 17]));
        assert_eq!(pack_bitmap([1, 8], 8), "AgE=");
        assert_eq!(unpack_serials(""), Some(Vec::new()));
    }

    #[test]
    fn damaged_texts_are_noticed() {
        for text in ["!", "gA==", "//////8=", "AQG"] {
            assert_eq!(unpack_serials(text), None, "{text}");
        }
        assert_eq!(unpack_generations("AQ=="), None);
    }
}
