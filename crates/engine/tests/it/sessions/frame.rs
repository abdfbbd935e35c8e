//! Splitting a byte stream into replies, in both protocols.

/// The length of the first reply in `bytes`; `None` if it is incomplete.
pub(crate) fn len(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    let mut at = line + 2;
    let number = || std::str::from_utf8(&bytes[1..line]).ok().and_then(|text| text.parse().ok());
    let items: i64 = match bytes[0] {
        b'$' | b'=' => {
            let size: i64 = number().unwrap_or(-1);
            if size >= 0 {
                at += size as usize + 2;
            }
            return (at <= bytes.len()).then_some(at);
        }
        b'*' | b'~' | b'>' => number().unwrap_or(0),
        b'%' => 2 * number().unwrap_or(0),
        _ => 0,
    };
    for _ in 0..items.max(0) {
        at += len(&bytes[at..])?;
    }
    Some(at)
}

/// The bytes of each element of an array; `None` if it is not an array.
pub(crate) fn items(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    if !matches!(bytes.first(), Some(b'*' | b'~' | b'>' | b'%')) {
        return None;
    }
    let mut at = bytes.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let mut items = Vec::new();
    while at < bytes.len() {
        let end = at + len(&bytes[at..])?;
        items.push(&bytes[at..end]);
        at = end;
    }
    Some(items)
}

/// The text of a bulk or simple string.
pub(crate) fn text(bytes: &[u8]) -> &[u8] {
    let line = bytes.windows(2).position(|pair| pair == b"\r\n").unwrap_or(bytes.len());
    match bytes.first() {
        Some(b'$' | b'=') => bytes.get(line + 2..bytes.len() - 2).unwrap_or_default(),
        _ => bytes.get(1..line).unwrap_or_default(),
    }
}

#[test]
fn a_reply_is_found_when_it_is_whole() {
    let reply = b"*3\r\n$1\r\na\r\n%1\r\n+k\r\n_\r\n$-1\r\n";
    for end in 0..reply.len() {
        assert_eq!(len(&reply[..end]), None, "{end}");
    }
    assert_eq!(len(reply), Some(reply.len()));
    let found = items(reply).unwrap();
    assert_eq!(found, [&b"$1\r\na\r\n"[..], b"%1\r\n+k\r\n_\r\n", b"$-1\r\n"]);
    assert_eq!(text(found[0]), b"a");
}
