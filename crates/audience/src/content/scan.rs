//! The guard, and the pieces of a template. Nothing here recurses: the length of a template shows in time, not in the stack.

use super::{LONGEST_TEMPLATE, MOST_TAGS};

/// A place in a template, both numbers from 1; 0: the whole template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    pub(super) const WHOLE: Self = Self { line: 0, column: 0 };
}

/// Finds the line and column of bytes; asked with growing positions, it reads the text once.
pub(super) struct Places<'t> {
    text: &'t str,
    at: usize,
    place: Place,
}

impl<'t> Places<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, place: Place { line: 1, column: 1 } }
    }

    pub(super) fn of(&mut self, position: usize) -> Place {
        if position < self.at {
            *self = Self::new(self.text);
        }
        for c in self.text[self.at..position].chars() {
            match c {
                '\n' => (self.place.line, self.place.column) = (self.place.line + 1, 1),
                _ => self.place.column += 1,
            }
        }
        self.at = position;
        self.place
    }
}

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text that is sent as it stands.
    Text,
    /// `{{ … }}`
    Output,
    /// `{% … %}`
    Tag,
}

/// A piece of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    pub(super) kind: Kind,
    /// The text, or what stands between the braces, without the hyphens.
    pub(super) inner: &'t str,
    /// Where the piece begins, in bytes.
    pub(super) begins: usize,
    /// Where `inner` begins, in bytes.
    pub(super) inner_begins: usize,
    /// White space before it is taken away.
    pub(super) trims_before: bool,
    /// White space after it is taken away.
    pub(super) trims_after: bool,
}

/// Refuses templates that are too long or have too many tags, before anything else looks at them.
pub(super) fn guard(source: &str) -> Result<(), String> {
    if source.len() > LONGEST_TEMPLATE {
        let length = source.len();
        return Err(format!("is longer than {LONGEST_TEMPLATE} bytes, has {length}; shorten it"));
    }
    let tags = source.matches("{{").count() + source.matches("{%").count();
    if tags > MOST_TAGS {
        return Err(format!("has more than {MOST_TAGS} tags, has {tags}; use fewer"));
    }
    if source.contains('\0') {
        return Err("contains U+0000; remove it".to_owned());
    }
    Ok(())
}

/// The next piece after a position; `None` at the end; else where a piece begins that never ends.
pub(super) fn next(source: &str, from: usize) -> Result<Option<Piece<'_>>, usize> {
    let rest = &source[from..];
    if rest.is_empty() {
        return Ok(None);
    }
    let opens = [rest.find("{{"), rest.find("{%")].into_iter().flatten().min();
    match opens {
        Some(0) => braces(source, from).map(Some),
        opens => {
            let inner = &rest[..opens.unwrap_or(rest.len())];
            let (begins, inner_begins) = (from, from);
            let kind = Kind::Text;
            Ok(Some(Piece {
                kind,
                inner,
                begins,
                inner_begins,
                trims_before: false,
                trims_after: false,
            }))
        }
    }
}

/// Where the piece after this one begins.
pub(super) fn after(piece: &Piece<'_>) -> usize {
    let end = piece.inner_begins + piece.inner.len();
    match piece.kind {
        Kind::Text => end,
        Kind::Output | Kind::Tag => end + usize::from(piece.trims_after) + 2,
    }
}

/// The piece that begins with the braces at a position. Braces inside of quotes do not end it.
fn braces(source: &str, begins: usize) -> Result<Piece<'_>, usize> {
    let (kind, close) = match source.as_bytes().get(begins + 1) {
        Some(b'{') => (Kind::Output, "}}"),
        _ => (Kind::Tag, "%}"),
    };
    let trims_before = source[begins + 2..].starts_with('-');
    let inner_begins = begins + 2 + usize::from(trims_before);
    let mut quote = None;
    for (offset, c) in source[inner_begins..].char_indices() {
        match quote {
            Some(opened) if c == opened => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if source[inner_begins + offset..].starts_with(close) => {
                let inner = &source[inner_begins..][..offset];
                let (inner, trims_after) = match inner.strip_suffix('-') {
                    Some(inner) => (inner, true),
                    None => (inner, false),
                };
                return Ok(Piece { kind, inner, begins, inner_begins, trims_before, trims_after });
            }
            None => {}
        }
    }
    Err(begins)
}

/// Finds the tag that ends a block whose content is not looked at: `endraw`, `endcomment`. Returns the content's end and the tag.
pub(super) fn end_of<'t>(source: &'t str, from: usize, end: &str) -> Option<(usize, Piece<'t>)> {
    let mut at = from;
    while let Some(offset) = source[at..].find("{%") {
        let begins = at + offset;
        let piece = braces(source, begins).ok().filter(|piece| piece.inner.trim() == end);
        if let Some(piece) = piece {
            return Some((begins, piece));
        }
        at = begins + 2;
    }
    None
}
