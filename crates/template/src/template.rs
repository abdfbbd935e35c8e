//! Templates: one Typst file each, with a revision that changes whenever its output might.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use typst::syntax::Source;

use crate::{fonts, prelude, ticket_world};

/// Part of every revision. Count up when this crate starts to make other bytes from the same input.
const RENDERER_VERSION: &str = "stampede-1";

/// One Typst file that turns `ticket.json` and `qr.svg` into a ticket.
#[derive(Debug, Clone)]
pub struct Template {
    source: Source,
    revision: String,
}

impl Template {
    /// The template that ships with Stampede.
    pub fn default_ticket() -> Self {
        Self::from_source(include_str!("default_ticket.typ").to_owned())
    }

    /// An operator's own template; mistakes in it show when a ticket is rendered.
    pub fn from_source(source: String) -> Self {
        let revision = revision(&source);
        Self { source: Source::new(ticket_world::main_file(), source), revision }
    }

    /// Short hexadecimal hash over the source, the fonts and the versions of everything that renders.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The text it was made from.
    pub fn source_text(&self) -> &str {
        self.source.text()
    }

    /// The parsed source.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }
}

fn revision(source: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(version());
    hash.update(source);
    hex::encode(&hash.finalize()[..8])
}

/// Changes whenever the same bundle and values could give other bytes: with the renderer, Typst, the
/// fonts and the prelude.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let mut hash = Sha256::new();
        hash.update(RENDERER_VERSION);
        hash.update([0]);
        hash.update(typst::utils::version().raw());
        hash.update([0]);
        hash.update(*fonts::DIGEST);
        hash.update(prelude::source().text());
        hash.update(prelude::WORDS);
        hex::encode(&hash.finalize()[..8])
    });
    &VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_revision_follows_the_source() {
        let revision =
            |source: &str| Template::from_source(source.to_owned()).revision().to_owned();
        assert_eq!(revision("a"), revision("a"));
        assert_ne!(revision("a"), revision("b"));
        assert_eq!(revision("a").len(), 16);
        assert!(revision("a").bytes().all(|b| b.is_ascii_hexdigit()));
    }
}
