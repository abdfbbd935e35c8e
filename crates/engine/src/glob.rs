//! Patterns of `KEYS`, `SCAN … MATCH` and pattern subscriptions: `*`, `?`, `[a-z]`, `[^x]`, `\x`.
//!
//! After a mismatch, matching resumes at the last star only, so the cost is at most pattern length
//! times text length. A pattern of many stars cannot block the server.

/// Whether all of `text` matches `pattern`.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to resume if the text after the last star does not match.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            retry = Some((p + 1, t));
            p += 1;
            continue;
        }
        if t == text.len() {
            if p == pattern.len() {
                return true;
            }
        } else if p < pattern.len()
            && let Some(width) = one(&pattern[p..], text[t])
        {
            p += width;
            t += 1;
            continue;
        }
        match retry {
            Some((after, from)) if from < text.len() => {
                p = after;
                t = from + 1;
                retry = Some((after, from + 1));
            }
            _ => return false,
        }
    }
}

/// Matches one byte with the first element of a pattern; returns the element's width.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] => class(rest, byte).map(|width| width + 1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [plain, ..] => (*plain == byte).then_some(1),
        [] => None,
    }
}

/// Matches a class, given without its opening bracket; an unclosed class ends with the pattern.
fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let negated = pattern.first() == Some(&b'^');
    let mut at = usize::from(negated);
    let mut found = false;
    loop {
        match &pattern[at.min(pattern.len())..] {
            [b'\\', escaped, ..] => {
                found |= *escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [] => break,
            [from, b'-', to, ..] => {
                let (low, high) = (*from.min(to), *from.max(to));
                found |= (low..=high).contains(&byte);
                at += 3;
            }
            [plain, ..] => {
                found |= *plain == byte;
                at += 1;
            }
        }
    }
    (found != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h\\*llo", "h*llo", true),
            ("h\\*llo", "hxllo", false),
            ("[abc", "a", true),
            ("*:meta", "bull:q:meta", true),
            ("bull:*:*:lock", "bull:q:17:lock", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "aXbYbZc", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_do_not_take_for_ever() {
        let pattern = b"a*".repeat(50);
        assert!(matches(&pattern, &[b'a'; 2000]));
        assert!(!matches(&[pattern, b"c".to_vec()].concat(), &[b'a'; 2000]));
    }
}
