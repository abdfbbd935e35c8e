//! Length-prefixed texts in one buffer.
//!
//! ```text
//!   len text len text …        len: one byte, or 255 and four bytes (little endian)
//! ```

const WIDE: u8 = 255;

/// The start and end of the text whose length is stored at `at`.
pub(super) fn text_at(bytes: &[u8], at: usize) -> (usize, usize) {
    if bytes[at] < WIDE {
        return (at + 1, at + 1 + usize::from(bytes[at]));
    }
    let mut len = [0; 4];
    len.copy_from_slice(&bytes[at + 1..at + 5]);
    (at + 5, at + 5 + u32::from_le_bytes(len) as usize)
}

/// The length prefix of a text of `len` bytes, and its width.
pub(super) fn head_of(len: usize) -> ([u8; 5], usize) {
    let mut head = [0; 5];
    if len < usize::from(WIDE) {
        head[0] = len as u8;
        return (head, 1);
    }
    head[0] = WIDE;
    head[1..].copy_from_slice(&(len as u32).to_le_bytes());
    (head, 5)
}

/// Appends a text.
pub(super) fn append(bytes: &mut Vec<u8>, text: &[u8]) {
    let (head, width) = head_of(text.len());
    bytes.extend_from_slice(&head[..width]);
    bytes.extend_from_slice(text);
}

/// All texts from the front.
pub(super) fn texts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == bytes.len() {
            return None;
        }
        let (start, end) = text_at(bytes, at);
        at = end;
        Some(&bytes[start..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_come_back_in_order() {
        let lengths = [0, 1, 254, 255, 256, 70_000];
        let mut bytes = Vec::new();
        for len in lengths {
            append(&mut bytes, &vec![b'x'; len]);
        }
        assert!(texts(&bytes).map(<[u8]>::len).eq(lengths));
    }
}
