//! Content streams without the digits nobody sees.

/// The same drawing, with numbers rounded and single spaces.
///
/// Texts, names and everything else stay byte for byte.
pub(super) fn minified(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len());
    let mut at = 0;
    while let Some(&byte) = content.get(at) {
        let end = match byte {
            b'(' => string_end(content, at),
            b'<' if content.get(at + 1) != Some(&b'<') => hex_end(content, at),
            b if b.is_ascii_whitespace() => {
                let end = at + content[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
                let needed = out.last().is_some_and(|last| !is_delimiter(*last))
                    && content.get(end).is_some_and(|next| !is_delimiter(*next));
                if needed {
                    out.push(b' ');
                }
                at = end;
                continue;
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => {
                let end = at + content[at..].iter().take_while(|b| is_number_part(**b)).count();
                match std::str::from_utf8(&content[at..end])
                    .ok()
                    .and_then(|t| t.parse::<f64>().ok())
                {
                    Some(value) => out.extend(number(value).into_bytes()),
                    None => out.extend(&content[at..end]),
                }
                at = end;
                continue;
            }
            b'/' => at + 1 + content[at + 1..].iter().take_while(|b| is_regular(**b)).count(),
            b if is_regular(b) => at + content[at..].iter().take_while(|b| is_regular(**b)).count(),
            _ => at + 1,
        };
        out.extend(&content[at..end]);
        at = end;
    }
    out.push(b'\n');
    out
}

/// A number in few digits: a thousandth of a point for lengths, five digits for scales.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 2,
        v if v >= 1.0 => 3,
        v if v >= 0.01 => 5,
        _ => 7,
    };
    let mut text = format!("{value:.digits$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    match text.as_str() {
        "-0" | "" => "0".to_owned(),
        _ => match text.strip_prefix("-0.") {
            Some(rest) => format!("-.{rest}"),
            None => text.strip_prefix("0.").map_or(text.clone(), |rest| format!(".{rest}")),
        },
    }
}

fn is_number_part(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.')
}

fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'/' | b' ' | b'\n')
}

fn is_regular(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !is_delimiter(byte) && byte != 0
}

pub(super) fn string_end(content: &[u8], start: usize) -> usize {
    let (mut depth, mut at) = (0, start);
    while let Some(byte) = content.get(at) {
        match byte {
            b'\\' => at += 1,
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at.min(content.len())
}

pub(super) fn hex_end(content: &[u8], start: usize) -> usize {
    content[start..].iter().position(|b| *b == b'>').map_or(content.len(), |end| start + end + 1)
}

#[cfg(test)]
mod tests {

    fn minified(text: &str) -> String {
        String::from_utf8(super::minified(text.as_bytes())).unwrap()
    }

    #[test]
    fn numbers_lose_digits_that_nobody_sees() {
        assert_eq!(
            minified("1.000000 -0.50004 123.45678 0.0001234 0 m"),
            "1 -.50004 123.46 .0001234 0 m\n"
        );
        assert_eq!(minified("-0.0000000001 5. .5 w"), "0 5 .5 w\n");
    }

    #[test]
    fn texts_and_names_stay_as_they_are() {
        let text = "/f0.1234567 12 Tf[(a 1.00000 \\) (b))-20<00 1.0>]TJ";
        assert_eq!(minified(text), format!("{text}\n"));
    }

    #[test]
    fn spaces_stay_only_between_words() {
        assert_eq!(minified("q\n  1  0  0 1 5 5 cm\n/x1 Do\nQ\n"), "q 1 0 0 1 5 5 cm/x1 Do Q\n");
    }

    #[test]
    fn broken_streams_are_passed_on() {
        for text in ["(", "<", "/", "1-2.3.4", "(\\"] {
            assert!(minified(text).starts_with(text), "{text}");
        }
    }
}
