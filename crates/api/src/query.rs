//! Parameters of the query: each is read by its name, every mistake is named, unknown parameters are refused. An empty
//! parameter counts as absent.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use http::request::Parts;
use schemars::{JsonSchema, Schema, json_schema};

use crate::app::App;
use crate::describe::Operation;
use crate::problem::{Code, FieldError, Problem};
use crate::unknown;

/// Most mistakes in one answer.
const MAX_MISTAKES: usize = 20;

/// The parameters that a route expects.
pub(crate) trait FromQuery: Sized {
    /// Reads all parameters of the route; those that it does not read are refused as unknown.
    fn from_query(query: &mut Query) -> Self;
}

/// Parameters of the query.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: FromQuery> FromRequestParts<App> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        read(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// No parameters, for routes that look as if they had some.
pub(crate) struct Nothing;

impl FromQuery for Nothing {
    fn from_query(_: &mut Query) -> Self {
        Self
    }
}

fn read<T: FromQuery>(text: &str) -> Result<T, Problem> {
    let mut query = Query::default();
    for (name, value) in url::form_urlencoded::parse(text.as_bytes()) {
        if let Some(before) = query.values.insert(name.to_string(), value.to_string())
            && before != value
        {
            query.wrong(&name, "is given twice");
        }
    }
    let read = T::from_query(&mut query);
    query.finish(read)
}

/// A parameter that a route asks for.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    kind: Wanted,
}

/// What the value of a parameter must be.
#[derive(Clone)]
enum Wanted {
    Text,
    Flag,
    Whole(RangeInclusive<u32>),
    Number(RangeInclusive<f32>),
    Word(&'static [&'static str]),
    Value(fn(&mut Operation<'_>) -> Schema),
}

impl Asked {
    /// The schema of its value.
    pub(crate) fn schema(&self, operation: &mut Operation<'_>) -> Schema {
        match &self.kind {
            Wanted::Text => json_schema!({ "type": "string" }),
            Wanted::Flag => json_schema!({ "type": "boolean" }),
            Wanted::Whole(bounds) => {
                json_schema!({ "type": "integer", "minimum": bounds.start(), "maximum": bounds.end() })
            }
            Wanted::Number(bounds) => {
                json_schema!({ "type": "number", "minimum": bounds.start(), "maximum": bounds.end() })
            }
            Wanted::Word(words) => json_schema!({ "type": "string", "enum": words }),
            Wanted::Value(schema) => schema(operation),
        }
    }
}

/// The parameters that a route asks for: those that it reads from an empty query.
pub(crate) fn described<T: FromQuery>() -> Vec<Asked> {
    let mut query = Query::default();
    T::from_query(&mut query);
    query.asked
}

/// A query that is being read.
#[derive(Default)]
pub(crate) struct Query {
    values: BTreeMap<String, String>,
    asked: Vec<Asked>,
    about: &'static str,
    errors: Vec<FieldError>,
}

impl Query {
    /// The meaning of the parameter that is read next, for the description of the API.
    pub(crate) fn about(&mut self, about: &'static str) -> &mut Self {
        self.about = about;
        self
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.ask(name, Wanted::Text)
    }

    fn ask(&mut self, name: &'static str, kind: Wanted) -> Option<String> {
        let about = std::mem::take(&mut self.about);
        self.asked.push(Asked { name, about, kind });
        self.values.remove(name).filter(|value| !value.is_empty())
    }

    /// A value that is parsed from a text; `right` names the form it must have.
    pub(crate) fn parsed<T: FromStr + JsonSchema>(
        &mut self,
        name: &'static str,
        right: &str,
    ) -> Option<T> {
        let schema = Wanted::Value(|operation| operation.schema::<T>());
        self.read(name, schema, right)
    }

    fn read<T: FromStr>(&mut self, name: &'static str, kind: Wanted, right: &str) -> Option<T> {
        let text = self.ask(name, kind)?;
        let read = text.parse().ok();
        if read.is_none() {
            self.wrong(name, &format!("{right}, not {:?}", unknown::shown(&text)));
        }
        read
    }

    /// A whole number within bounds.
    pub(crate) fn whole(&mut self, name: &'static str, bounds: RangeInclusive<u32>) -> Option<u32> {
        let right = match (bounds.start(), bounds.end()) {
            (0, &u32::MAX) => "must be a whole number".to_owned(),
            (least, &u32::MAX) => format!("must be a whole number, at least {least}"),
            (least, most) => format!("must be a whole number from {least} to {most}"),
        };
        let number = self.read(name, Wanted::Whole(bounds.clone()), &right)?;
        if bounds.contains(&number) {
            return Some(number);
        }
        self.wrong(name, &format!("{right}, not {number}"));
        None
    }

    /// A number within bounds.
    pub(crate) fn number(
        &mut self,
        name: &'static str,
        bounds: RangeInclusive<f32>,
    ) -> Option<f32> {
        let right = format!("must be a number from {} to {}", bounds.start(), bounds.end());
        let number = self.read(name, Wanted::Number(bounds.clone()), &right)?;
        if bounds.contains(&number) {
            return Some(number);
        }
        self.wrong(name, &right);
        None
    }

    /// One of some words, or the message that names them.
    pub(crate) fn word(
        &mut self,
        name: &'static str,
        words: &'static [&'static str],
        right: &str,
    ) -> Option<&'static str> {
        let text = self.ask(name, Wanted::Word(words))?;
        let word = words.iter().find(|word| **word == text);
        if word.is_none() {
            self.wrong(name, right);
        }
        word.copied()
    }

    /// Whether a parameter is given without a value. It has to be read, too.
    pub(crate) fn is_bare(&mut self, name: &'static str) -> bool {
        self.values.get(name).is_some_and(String::is_empty)
    }

    /// A boolean; absent is false.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        match self.ask(name, Wanted::Flag).as_deref() {
            None | Some("false" | "0") => false,
            Some("true" | "1") => true,
            Some(_) => {
                self.wrong(name, "must be true or false");
                false
            }
        }
    }

    /// Notes a mistake.
    pub(crate) fn wrong(&mut self, name: &str, message: &str) {
        let field = unknown::shown(name);
        self.errors.push(FieldError::new(field, message));
    }

    fn finish<T>(mut self, read: T) -> Result<T, Problem> {
        let unknown = std::mem::take(&mut self.values);
        let asked: Vec<&str> = self.asked.iter().map(|asked| asked.name).collect();
        for name in unknown.keys().take(MAX_MISTAKES) {
            let remark = unknown::remark(name, &asked);
            self.wrong(name, &remark);
        }
        if self.errors.is_empty() {
            return Ok(read);
        }
        Err(Problem::listing(Code::InvalidQuery, "in the query, ", self.errors))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sample(Option<u32>, Option<String>, bool);

    impl FromQuery for Sample {
        fn from_query(query: &mut Query) -> Self {
            Self(query.whole("limit", 1..=10), query.text("after"), query.flag("force"))
        }
    }

    #[test]
    fn what_is_absent_or_empty_has_its_default() {
        for text in ["", "limit=&after=&force=", "&&"] {
            let Sample(limit, after, force) = read(text).unwrap();
            assert_eq!((limit, after, force), (None, None, false), "{text}");
        }
        let Sample(limit, after, force) = read("limit=5&after=a%20b&force=1").unwrap();
        assert_eq!((limit, after.as_deref(), force), (Some(5), Some("a b"), true));
    }

    #[test]
    fn mistakes_are_named_with_what_would_be_right() {
        for (text, message) in [
            ("limit=abc", "in the query, limit must be a whole number from 1 to 10, not \"abc\""),
            ("limit=0", "limit must be a whole number from 1 to 10, not 0"),
            ("limit=-1", "limit must be a whole number from 1 to 10, not \"-1\""),
            ("limit=99999999999999999999", "limit must be a whole number from 1 to 10"),
            ("limt=5", "limt is not known here; did you mean limit?"),
            ("sort=up", "sort is not known here; known are limit, after, force"),
            ("force=perhaps", "force must be true or false"),
            ("after=a&after=b", "after is given twice"),
            ("limit=x&frce=1", "x\"; frce is not known here; did you mean force?"),
        ] {
            let problem = read::<Sample>(text).map(|_| ()).unwrap_err().to_string();
            assert!(problem.starts_with("400 ") && problem.contains(message), "{text}: {problem}");
        }
    }

    #[test]
    fn a_flood_of_parameters_is_answered_shortly() {
        let text: String = (0..10_000).map(|n| format!("{}{n}=1&", "x".repeat(50))).collect();
        assert!(read::<Sample>(&text).map(|_| ()).unwrap_err().to_string().len() < 2_000);
        assert!(read::<Nothing>("limit=5").is_err());
    }
}
