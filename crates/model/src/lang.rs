//! Languages, as BCP 47 writes them: `de`, `pt-BR`, `zh-Hant-TW`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// A language, if need be with a script and a region. There is one spelling of each.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lang {
    tag: String,
    language: usize,
    region: Option<usize>,
}

impl Lang {
    /// The whole tag: `pt-BR`.
    pub fn as_str(&self) -> &str {
        &self.tag
    }

    /// The language alone: `pt`.
    pub fn language(&self) -> &str {
        &self.tag[..self.language]
    }

    /// The region, if there is one: `BR`.
    pub fn region(&self) -> Option<&str> {
        self.region.map(|start| &self.tag[start..])
    }
}

impl Default for Lang {
    fn default() -> Self {
        Self { tag: "en".to_owned(), language: 2, region: None }
    }
}

impl FromStr for Lang {
    type Err = &'static str;

    /// Extensions and variants are refused: nothing on a ticket depends on them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const REFUSED: &str = "must be a language such as de or pt-BR";
        let mut parts = text.split('-').peekable();
        let letters = |part: &&str| part.bytes().all(|b| b.is_ascii_alphabetic());
        let language = parts.next().filter(|part| matches!(part.len(), 2 | 3)).filter(letters);
        let mut tag = language.ok_or(REFUSED)?.to_ascii_lowercase();
        let language = tag.len();
        if let Some(script) = parts.next_if(|part| part.len() == 4 && letters(part)) {
            let (first, rest) = script.split_at(1);
            tag += &format!("-{}{}", first.to_ascii_uppercase(), rest.to_ascii_lowercase());
        }
        let is_region = |part: &&str| {
            let digits = part.len() == 3 && part.bytes().all(|b| b.is_ascii_digit());
            digits || (part.len() == 2 && letters(part))
        };
        let region = parts.next_if(is_region).map(|region| {
            tag += &format!("-{}", region.to_ascii_uppercase());
            tag.len() - region.len()
        });
        if parts.next().is_some() { Err(REFUSED) } else { Ok(Self { tag, language, region }) }
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tag)
    }
}

impl JsonSchema for Lang {
    fn schema_name() -> Cow<'static, str> {
        "Lang".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = "^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?$";
        json_schema!({ "type": "string", "pattern": pattern, "examples": ["de", "pt-BR"] })
    }
}

impl Serialize for Lang {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_has_one_spelling_and_gives_its_parts() {
        for (text, tag, language, region) in [
            ("de", "de", "de", None),
            ("PT-br", "pt-BR", "pt", Some("BR")),
            ("zh-hANT-tw", "zh-Hant-TW", "zh", Some("TW")),
            ("sr-Latn", "sr-Latn", "sr", None),
            ("es-419", "es-419", "es", Some("419")),
            ("fil", "fil", "fil", None),
        ] {
            let lang: Lang = text.parse().unwrap();
            assert_eq!((lang.as_str(), lang.language(), lang.region()), (tag, language, region));
        }
    }

    #[test]
    fn what_is_no_language_is_refused() {
        for text in
            ["", "d", "deutsch", "de_DE", "de-", "-DE", "de-DE-x-a", "12", "дe", "de-DEU", "de DE"]
        {
            assert!(text.parse::<Lang>().is_err(), "{text}");
        }
    }
}
