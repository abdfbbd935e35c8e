//! Lua's patterns.
//!
//! The matcher of stock Lua can backtrack for years without calling a hook, and recurse until the
//! process crashes. This matcher uses the same algorithm, but checks the time limit at intervals
//! and refuses patterns that nest too deeply. `strings.rs` has the functions that use it.

use super::native::Raise;
use super::stack::Stack;
use super::state::State;

/// The maximum number of captures of a pattern.
const MAX_CAPTURES: usize = 32;
/// The maximum number of open repetitions and captures; each is a call on the Rust stack.
const MAX_DEPTH: usize = 1000;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Unfinished,
    Position,
    Len(usize),
}

/// A pattern applied to a text.
pub(super) struct Matcher<'a> {
    state: &'a State,
    pub(super) source: &'a [u8],
    /// Ends at its first zero byte, as in Lua 5.1.
    pattern: &'a [u8],
    captures: [(usize, Extent); MAX_CAPTURES],
    /// The number of captures, finished or not.
    pub(super) level: usize,
    depth: usize,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(state: &'a State, source: &'a [u8], pattern: &'a [u8]) -> Self {
        let pattern = pattern.split(|byte| *byte == 0).next().unwrap_or_default();
        let captures = [(0, Extent::Unfinished); MAX_CAPTURES];
        Self { state, source, pattern, captures, level: 0, depth: 0 }
    }

    /// The end of a match that begins at `from`.
    pub(super) fn run(&mut self, from: usize) -> Result<Option<usize>, Raise> {
        self.level = 0;
        self.depth = 0;
        self.matches(from, 0)
    }

    /// Removes a leading `^`; returns whether there was one.
    pub(super) fn take_anchor(&mut self) -> bool {
        let Some(rest) = self.pattern.strip_prefix(b"^") else { return false };
        self.pattern = rest;
        true
    }

    fn source(&self, at: usize) -> u8 {
        self.source.get(at).copied().unwrap_or(0)
    }

    fn pattern(&self, at: usize) -> u8 {
        self.pattern.get(at).copied().unwrap_or(0)
    }

    fn matches(&mut self, s: usize, p: usize) -> Result<Option<usize>, Raise> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(here("pattern too complex"));
        }
        let result = self.matches_items(s, p);
        self.depth -= 1;
        result
    }

    fn matches_items(&mut self, mut s: usize, mut p: usize) -> Result<Option<usize>, Raise> {
        loop {
            self.state.step()?;
            match (self.pattern(p), self.pattern(p + 1)) {
                (b'(', b')') => return self.start_capture(s, p + 2, Extent::Position),
                (b'(', _) => return self.start_capture(s, p + 1, Extent::Unfinished),
                (b')', _) => return self.end_capture(s, p + 1),
                (b'%', b'b') => {
                    let Some(end) = self.balance(s, p + 2)? else { return Ok(None) };
                    (s, p) = (end, p + 4);
                }
                (b'%', b'f') => {
                    p += 2;
                    if self.pattern(p) != b'[' {
                        return Err(here("missing '[' after '%f' in pattern"));
                    }
                    let end = self.class_end(p)?;
                    let before = if s == 0 { 0 } else { self.source(s - 1) };
                    if self.in_set(before, p, end - 1) || !self.in_set(self.source(s), p, end - 1) {
                        return Ok(None);
                    }
                    p = end;
                }
                (b'%', digit @ b'0'..=b'9') => {
                    let Some(end) = self.repeat_capture(s, digit)? else { return Ok(None) };
                    (s, p) = (end, p + 2);
                }
                (0, _) => return Ok(Some(s)),
                (b'$', 0) => return Ok((s == self.source.len()).then_some(s)),
                _ => {
                    let end = self.class_end(p)?;
                    let fits = self.fits(s, p, end);
                    match self.pattern(end) {
                        b'?' => {
                            if fits && let Some(found) = self.matches(s + 1, end + 1)? {
                                return Ok(Some(found));
                            }
                            p = end + 1;
                        }
                        b'*' => return self.most(s, p, end),
                        b'+' if fits => return self.most(s + 1, p, end),
                        b'+' => return Ok(None),
                        b'-' => return self.fewest(s, p, end),
                        _ if !fits => return Ok(None),
                        _ => (s, p) = (s + 1, end),
                    }
                }
            }
        }
    }

    /// Matches as many repetitions as possible, then fewer.
    fn most(&mut self, s: usize, p: usize, end: usize) -> Result<Option<usize>, Raise> {
        let mut count = 0;
        while self.fits(s + count, p, end) {
            self.state.step()?;
            count += 1;
        }
        loop {
            if let Some(found) = self.matches(s + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    /// Matches as few repetitions as possible, then more.
    fn fewest(&mut self, mut s: usize, p: usize, end: usize) -> Result<Option<usize>, Raise> {
        loop {
            if let Some(found) = self.matches(s, end + 1)? {
                return Ok(Some(found));
            }
            if !self.fits(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn start_capture(
        &mut self,
        s: usize,
        p: usize,
        extent: Extent,
    ) -> Result<Option<usize>, Raise> {
        if self.level >= MAX_CAPTURES {
            return Err(here("too many captures"));
        }
        self.captures[self.level] = (s, extent);
        self.level += 1;
        let found = self.matches(s, p)?;
        if found.is_none() {
            self.level -= 1;
        }
        Ok(found)
    }

    fn end_capture(&mut self, s: usize, p: usize) -> Result<Option<usize>, Raise> {
        let open = self.captures[..self.level]
            .iter()
            .rposition(|(_, extent)| *extent == Extent::Unfinished);
        let open = open.ok_or_else(|| here("invalid pattern capture"))?;
        self.captures[open].1 = Extent::Len(s - self.captures[open].0);
        let found = self.matches(s, p)?;
        if found.is_none() {
            self.captures[open].1 = Extent::Unfinished;
        }
        Ok(found)
    }

    /// `%1` to `%9`: matches the text of an earlier capture.
    fn repeat_capture(&mut self, s: usize, digit: u8) -> Result<Option<usize>, Raise> {
        let index = usize::from(digit).wrapping_sub(usize::from(b'1'));
        match self.captures[..self.level].get(index) {
            Some((start, Extent::Len(len))) => {
                let text = &self.source[*start..start + len];
                Ok(self.source[s..].starts_with(text).then_some(s + len))
            }
            // The original compares the length -2 of a position capture, which never matches.
            Some((_, Extent::Position)) => Ok(None),
            _ => Err(here("invalid capture index")),
        }
    }

    /// `%bxy`: matches from an x to its matching y.
    fn balance(&mut self, s: usize, p: usize) -> Result<Option<usize>, Raise> {
        let (open, close) = (self.pattern(p), self.pattern(p + 1));
        if open == 0 || close == 0 {
            return Err(here("unbalanced pattern"));
        }
        if self.source(s) != open || s >= self.source.len() {
            return Ok(None);
        }
        let mut depth = 1;
        for at in s + 1..self.source.len() {
            self.state.step()?;
            let byte = self.source(at);
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + 1));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// The end of the single-character item at `p`.
    fn class_end(&self, mut p: usize) -> Result<usize, Raise> {
        let first = self.pattern(p);
        p += 1;
        match first {
            b'%' if self.pattern(p) == 0 => Err(here("malformed pattern (ends with '%')")),
            b'%' => Ok(p + 1),
            b'[' => {
                if self.pattern(p) == b'^' {
                    p += 1;
                }
                loop {
                    let byte = self.pattern(p);
                    if byte == 0 {
                        return Err(here("malformed pattern (missing ']')"));
                    }
                    p += 1;
                    if byte == b'%' && self.pattern(p) != 0 {
                        p += 1;
                    }
                    if self.pattern(p) == b']' {
                        return Ok(p + 1);
                    }
                }
            }
            _ => Ok(p),
        }
    }

    /// Whether the character at `s` matches the item from `p` to `end`.
    fn fits(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.source.get(s) else { return false };
        match self.pattern(p) {
            b'.' => true,
            b'%' => in_class(byte, self.pattern(p + 1)),
            b'[' => self.in_set(byte, p, end - 1),
            plain => plain == byte,
        }
    }

    /// Whether a character is in the set with `[` at `p` and `]` at `end`.
    fn in_set(&self, byte: u8, mut p: usize, end: usize) -> bool {
        let mut found = true;
        if self.pattern(p + 1) == b'^' {
            found = false;
            p += 1;
        }
        p += 1;
        while p < end {
            if self.pattern(p) == b'%' {
                p += 1;
                if in_class(byte, self.pattern(p)) {
                    return found;
                }
            } else if self.pattern(p + 1) == b'-' && p + 2 < end {
                if (self.pattern(p)..=self.pattern(p + 2)).contains(&byte) {
                    return found;
                }
                p += 2;
            } else if self.pattern(p) == byte {
                return found;
            }
            p += 1;
        }
        !found
    }

    /// The number of results of a match: its captures, or the whole match.
    fn results(&self) -> usize {
        self.level.max(1)
    }

    /// Pushes capture `index` of a match from `from` to `to`.
    pub(super) fn push_capture(
        &self,
        stack: &mut Stack<'_>,
        index: usize,
        from: usize,
        to: usize,
    ) -> Result<(), Raise> {
        if self.level == 0 && index == 0 {
            stack.push_bytes(&self.source[from..to]);
            return Ok(());
        }
        match self.captures[..self.level].get(index) {
            None => return Err(here("invalid capture index")),
            Some((_, Extent::Unfinished)) => return Err(here("unfinished capture")),
            Some((start, Extent::Position)) => stack.push_number(*start as f64 + 1.0),
            Some((start, Extent::Len(len))) => stack.push_bytes(&self.source[*start..start + len]),
        }
        Ok(())
    }

    pub(super) fn push_captures(
        &self,
        stack: &mut Stack<'_>,
        from: usize,
        to: usize,
    ) -> Result<usize, Raise> {
        stack.ensure(MAX_CAPTURES + 4);
        for index in 0..self.results() {
            self.push_capture(stack, index, from, to)?;
        }
        Ok(self.results())
    }
}

fn here(text: &str) -> Raise {
    Raise::Here(text.to_owned())
}

/// Whether a character is in the class of a letter; an upper-case letter negates the class.
fn in_class(byte: u8, class: u8) -> bool {
    let found = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    found == class.is_ascii_lowercase()
}
