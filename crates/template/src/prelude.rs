//! The prelude: what templates are given by Stampede, written in Typst.

use std::sync::LazyLock;

use serde_json::json;
use stampede_model::TicketDocument;
use typst::syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot};

use crate::fonts::FAMILIES;

/// Stands before every template, so that nobody needs to import anything.
pub(crate) const FIRST_LINES: &str = "#import \"/stampede.typ\": *\n";

/// How many lines that is: what messages about the template subtract.
pub(crate) const LINES_BEFORE: usize = 1;

/// Words in several languages.
pub(crate) const WORDS: &str = include_str!("prelude/words.json");

static FILE: LazyLock<FileId> = LazyLock::new(|| file_id("stampede.typ"));

static SOURCE: LazyLock<Source> = LazyLock::new(|| {
    // One file to templates, three to us: what both modes need, drawing values, making boxes.
    let text = concat!(
        include_str!("prelude/base.typ"),
        include_str!("prelude/typeset.typ"),
        include_str!("prelude/fields.typ"),
    );
    Source::new(file(), text.to_owned())
});

/// Whether there are words in the language.
pub(crate) fn speaks(lang: &str) -> bool {
    static LANGUAGES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let words: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(WORDS).unwrap_or_default();
        words.into_iter().map(|(lang, _)| lang).collect()
    });
    LANGUAGES.iter().any(|known| known == lang)
}

/// What the fields of a template do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They leave boxes for the stamper.
    Stamp,
    /// They draw the ticket's values.
    Typeset,
}

/// The file the prelude is.
pub(crate) fn file() -> FileId {
    *FILE
}

/// Its source.
pub(crate) fn source() -> Source {
    SOURCE.clone()
}

/// `stampede.json`: what the prelude has to know.
pub(crate) fn setup(mode: Mode) -> String {
    let mode = match mode {
        Mode::Stamp => "stamp",
        Mode::Typeset => "typeset",
    };
    json!({ "mode": mode, "fields": TicketDocument::FIELDS, "families": *FAMILIES }).to_string()
}

/// The id of a file in the world of templates. Typst keeps it for ever.
pub(crate) fn file_id(name: &str) -> FileId {
    // Names were checked by `Bundle::new`; a name that still is no path gets one that is never read.
    let path = VirtualPath::new(name).or_else(|_| VirtualPath::new("unreadable"));
    RootedPath::new(VirtualRoot::Project, path.expect("a plain name is a path")).intern()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_every_word() {
        let words: serde_json::Value = serde_json::from_str(WORDS).unwrap();
        let english: Vec<&String> = words["en"].as_object().unwrap().keys().collect();
        for lang in ["en", "ru", "uk", "de", "es", "fr", "ar", "he", "hi", "th", "zh"] {
            let keys: Vec<&String> = words[lang].as_object().unwrap().keys().collect();
            assert_eq!(keys, english, "{lang}");
        }
    }
}
