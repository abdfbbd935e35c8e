//! The body of a request: text with `{{ to }}`, `{{ text }}` and the like, which is Liquid's way to put in values.
//!
//! Values are escaped for the body's type, so that no message can add a field. There are no tags and no filters.
//! `{{ secret.NAME }}` is the value of that name in the account's credentials: the template itself is shown to people.

use std::collections::BTreeMap;

use url::form_urlencoded::byte_serialize;

/// Most bytes of a template, and most places in it.
pub(crate) const LONGEST: usize = 64 << 10;
const MOST_PLACES: usize = 200;

/// How values are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// As in a string of JSON, without its quotes.
    Json,
    /// As in a form or a query.
    Form,
    /// As in XML.
    Xml,
}

impl Escape {
    /// What the headers of a request ask for. Without a type, the body is a form.
    pub(super) fn of(method: &str, headers: &BTreeMap<String, String>) -> Self {
        let kind = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let kind = kind.map(|(_, value)| value.to_lowercase()).unwrap_or_default();
        match kind {
            _ if method == "GET" => Self::Form,
            kind if kind.contains("json") => Self::Json,
            kind if kind.contains("xml") => Self::Xml,
            _ => Self::Form,
        }
    }

    fn apply(self, value: &str) -> String {
        match self {
            Self::Json => {
                let quoted = serde_json::Value::from(value).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
            Self::Form => byte_serialize(value.as_bytes()).collect(),
            Self::Xml => value
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;")
                .replace('\'', "&apos;"),
        }
    }
}

/// A value that a template can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    /// The number with its plus.
    To,
    /// The number without its plus.
    ToDigits,
    /// The message.
    Text,
    /// The recipient's id.
    Recipient,
}

/// What stands before the name of a secret.
const SECRET: &str = "secret.";

const NAMES: [(&str, Name); 4] = [
    ("to", Name::To),
    ("toDigits", Name::ToDigits),
    ("text", Name::Text),
    ("recipient", Name::Recipient),
];

enum Piece {
    Text(String),
    Value(Name),
}

/// A body with places for values. It holds the secrets that it names, so it cannot be printed.
pub(super) struct Template {
    pieces: Vec<Piece>,
    escape: Escape,
}

impl Template {
    /// Reads a template, and puts the secrets in; the error says what would be right.
    pub(super) fn parse(
        text: &str,
        escape: Escape,
        secrets: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("must have at most {LONGEST} bytes, has {}", text.len()));
        }
        if text.contains("{%") {
            return Err("has a tag {% … %}; only values such as {{ text }} are known".to_owned());
        }
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or("has {{ without }}")?;
            let name = name.trim_matches(|c: char| c == '-' || c.is_whitespace());
            let piece = match name.strip_prefix(SECRET) {
                Some(secret) => secrets.get(secret).map(|value| Piece::Text(escape.apply(value))),
                None => {
                    let known = NAMES.iter().find(|(known, _)| *known == name);
                    known.map(|(_, value)| Piece::Value(*value))
                }
            };
            let piece = piece.ok_or_else(|| unknown(name))?;
            pieces.extend([Piece::Text(before.to_owned()), piece]);
            if pieces.len() > 2 * MOST_PLACES {
                return Err(format!("has more than {MOST_PLACES} values"));
            }
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self { pieces, escape })
    }

    /// Fills the values in.
    pub(super) fn fill(&self, value: impl Fn(Name) -> String) -> String {
        let mut filled = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Value(name) => filled.push_str(&self.escape.apply(&value(*name))),
            }
        }
        filled
    }
}

fn unknown(name: &str) -> String {
    let shown: String = name.chars().take(40).collect();
    if name.starts_with(SECRET) {
        return format!("has {{{{ {shown} }}}}, which is not in credentials.secret");
    }
    let known = NAMES.map(|(name, _)| name).join(", ");
    format!("has {{{{ {shown} }}}}, which is not known; known are {known} and {SECRET}NAME")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> BTreeMap<String, String> {
        BTreeMap::from([("key".to_owned(), "k\"&{{ to }}".to_owned())])
    }

    fn filled(text: &str, escape: Escape) -> String {
        let template =
            Template::parse(text, escape, &secrets()).unwrap_or_else(|error| panic!("{error}"));
        template.fill(|name| match name {
            Name::To => "+49".to_owned(),
            Name::ToDigits => "49".to_owned(),
            Name::Text => "a\"&<b>\n{{ to }}".to_owned(),
            Name::Recipient => "r".to_owned(),
        })
    }

    #[test]
    fn a_value_is_escaped_for_the_body_and_never_read_as_a_template() {
        assert_eq!(
            filled(r#"{"to":"{{to}}","text":"{{ text }}"}"#, Escape::Json),
            r#"{"to":"+49","text":"a\"&<b>\n{{ to }}"}"#
        );
        assert_eq!(
            filled("To={{ to }}&n={{- toDigits -}}&Text={{ text }}", Escape::Form),
            "To=%2B49&n=49&Text=a%22%26%3Cb%3E%0A%7B%7B+to+%7D%7D"
        );
        assert_eq!(
            filled("<m id='{{ recipient }}'>{{ text }}</m>", Escape::Xml),
            "<m id='r'>a&quot;&amp;&lt;b&gt;\n{{ to }}</m>"
        );
    }

    #[test]
    fn what_is_no_value_is_refused_with_what_would_be_right() {
        for (text, told) in [
            ("{{ too }}", "known are to, toDigits, text, recipient"),
            ("{{ text | upcase }}", "not known"),
            ("{{ secret.other }}", "{{ secret.other }}, which is not in credentials.secret"),
            ("{{ secret.key | upcase }}", "not in credentials.secret"),
            ("{{ secret }}", "and secret.NAME"),
            ("{% for x in y %}", "tag"),
            ("{{ to", "without }}"),
            (&"{{to}}".repeat(201), "more than 200"),
            (&"x".repeat(LONGEST + 1), "at most"),
        ] {
            let error = Template::parse(text, Escape::Json, &secrets()).err().unwrap();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_secret_of_the_credentials_is_escaped_and_never_read_as_a_template() {
        let written = [
            (Escape::Json, r#"k\"&{{ to }} +49"#),
            (Escape::Form, "k%22%26%7B%7B+to+%7D%7D %2B49"),
            (Escape::Xml, "k&quot;&amp;{{ to }} +49"),
        ];
        for (escape, wanted) in written {
            assert_eq!(filled("{{ secret.key }} {{ to }}", escape), wanted, "{escape:?}");
        }
    }
}
