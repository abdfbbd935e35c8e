//! Declares forms, and reads their fields.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

use super::parts::Part;
use super::reading::{Reading, excess};
use super::skip::Skip;

/// Fields of one object; a body with more is refused.
const MOST_FIELDS: usize = 1_000;
/// Unknown names that are kept of one object.
const MOST_UNKNOWN: usize = 40;
/// Characters that are kept of an unknown name; longer ones resemble nothing.
const LONGEST_NAME: usize = 60;

/// A JSON object with known fields.
pub(crate) trait Form: Part + Sized + Send + 'static {
    /// The names of its fields in JSON.
    const NAMES: &'static [&'static str];

    /// A form without any field.
    fn blank() -> Self;

    /// Reads the value of the field that the object has just named; false if the form has no such field.
    fn read_field<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        object: &mut A,
        reading: &Reading,
    ) -> Result<bool, A::Error>;

    /// Whether the body names any of the fields.
    fn names_any(&self) -> bool;

    /// The names that the form does not know.
    fn unknown(&self) -> &Unknown;

    /// The names that the form does not know, to add one.
    fn unknown_mut(&mut self) -> &mut Unknown;
}

/// Whether a word is given: `required`, `lenient`.
macro_rules! is_set {
    () => {
        false
    };
    (required) => {
        true
    };
    (lenient) => {
        true
    };
}

pub(crate) use is_set;

/// Declares a form. The text after `=` is the field's name in JSON; `required` after it says that the description lists the
/// field as such (the handler refuses a body without it). A form that is `(lenient)` lets in fields that it does not know.
macro_rules! form {
    (
        $(#[doc = $about:literal])*
        $visible:vis struct $name:ident $(($lenient:ident))? {
            $( $(#[doc = $doc:literal])* $field:ident: $part:ty = $key:literal $($required:ident)?, )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone)]
        $visible struct $name {
            $( $(#[doc = $doc])* $visible $field: $crate::forms::Given<$part>, )*
            /// Names that the form does not know.
            $visible unknown: $crate::forms::Unknown,
        }

        impl $crate::forms::Form for $name {
            const NAMES: &'static [&'static str] = &[$($key),*];

            fn blank() -> Self {
                Self {
                    $( $field: $crate::forms::Given::absent($key), )*
                    unknown: $crate::forms::Unknown::default(),
                }
            }

            #[allow(unused_variables, reason = "a form without fields")]
            fn read_field<'de, A: serde::de::MapAccess<'de>>(
                &mut self,
                name: &str,
                object: &mut A,
                reading: &$crate::forms::Reading,
            ) -> Result<bool, A::Error> {
                match name {
                    $( $key => self.$field.read(object, reading)?, )*
                    _ => return Ok(false),
                }
                #[allow(unreachable_code, reason = "a form without fields")]
                Ok(true)
            }

            fn names_any(&self) -> bool {
                false $( || self.$field.is_named() )*
            }

            fn unknown(&self) -> &$crate::forms::Unknown {
                &self.unknown
            }

            fn unknown_mut(&mut self) -> &mut $crate::forms::Unknown {
                &mut self.unknown
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            #[allow(unused_variables, reason = "a form without fields")]
            fn json_schema(schemas: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let fields = vec![$( $crate::forms::Field::of::<$part>(
                    schemas,
                    $key,
                    concat!($($doc),*),
                    $crate::forms::is_set!($($required)?),
                ) ),*];
                let lenient = $crate::forms::is_set!($($lenient)?);
                $crate::forms::form_schema(concat!($($about),*), fields, lenient)
            }
        }

        impl $crate::forms::Part for $name {
            const EXPECTED: &'static str = "must be an object";

            fn object<'de, A: serde::de::MapAccess<'de>>(
                object: A,
                reading: &$crate::forms::Reading,
            ) -> Result<Result<Self, String>, A::Error> {
                $crate::forms::read_form(object, reading).map(Ok)
            }
        }
    };
}

pub(crate) use form;

/// A form of which any field may be absent, and one must be given: a change of a record.
#[derive(Debug, Clone)]
pub(crate) struct Changes<F>(pub(crate) F);

impl<F: Form> JsonSchema for Changes<F> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Changes", F::schema_name()).into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let mut schema = F::json_schema(schemas);
        schema.remove("required");
        schema.insert("minProperties".to_owned(), 1.into());
        schema
    }
}

impl<F: Form> Part for Changes<F> {
    const EXPECTED: &'static str = F::EXPECTED;

    fn object<'de, A: MapAccess<'de>>(
        object: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        read_form(object, reading).map(|form| Ok(Self(form)))
    }
}

impl<F: Form> Form for Changes<F> {
    const NAMES: &'static [&'static str] = F::NAMES;

    fn blank() -> Self {
        Self(F::blank())
    }

    fn read_field<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        object: &mut A,
        reading: &Reading,
    ) -> Result<bool, A::Error> {
        self.0.read_field(name, object, reading)
    }

    fn names_any(&self) -> bool {
        self.0.names_any()
    }

    fn unknown(&self) -> &Unknown {
        self.0.unknown()
    }

    fn unknown_mut(&mut self) -> &mut Unknown {
        self.0.unknown_mut()
    }
}

/// Reads an object into a form.
pub(crate) fn read_form<'de, F: Form, A: MapAccess<'de>>(
    mut object: A,
    reading: &Reading,
) -> Result<F, A::Error> {
    let mut form = F::blank();
    let mut count = 0;
    while let Some(name) = object.next_key_seed(Name)? {
        count += 1;
        if count > MOST_FIELDS {
            let message = format!("has an object with more than {MOST_FIELDS} fields");
            return Err(reading.stop(excess("body", message)));
        }
        if !form.read_field(&name, &mut object, reading)? {
            form.unknown_mut().note(&name);
            object.next_value::<Skip>()?;
        }
    }
    Ok(form)
}

/// The first unknown names of an object, cut if they are long.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unknown(Vec<String>);

impl Unknown {
    fn note(&mut self, name: &str) {
        if self.0.len() < MOST_UNKNOWN {
            self.0.push(name.chars().take(LONGEST_NAME).collect());
        }
    }

    /// The names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Forgets names that are known elsewhere.
    pub(crate) fn forgive(&mut self, names: &[&str]) {
        self.0.retain(|name| !names.contains(&name.as_str()));
    }
}

/// Reads the name of a field, without a copy if there is none in the way.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::{Line, List, Mistakes, ReadingLimits, Whole, parse};
    use crate::problem::Problem;

    form! {
        struct Guest {
            name: Line<10> = "name",
        }
    }

    form! {
        struct Sample {
            first_name: Line<10> = "firstName",
            count: Whole = "count",
            guests: List<Guest, 3> = "guests",
        }
    }

    const LIMITS: ReadingLimits = ReadingLimits { holders: 10, payload: 1_000 };

    fn read(text: &str) -> Result<Sample, Problem> {
        parse(text.as_bytes(), LIMITS, None).map(|(form, _)| form)
    }

    fn mistakes(text: &str) -> String {
        let mut mistakes = Mistakes::default();
        let form = match read(text) {
            Ok(form) => form,
            Err(problem) => return problem.to_string(),
        };
        mistakes.only(&form);
        mistakes.required(form.first_name);
        mistakes.value(form.count);
        let guests = mistakes.value(form.guests).map(|List(guests)| guests).unwrap_or_default();
        for (index, guest) in guests.into_iter().enumerate() {
            let mut own = Mistakes::nested(format!("guests[{index}]."));
            match guest {
                Ok(guest) => drop(own.required(guest.name)),
                Err(message) => mistakes.wrong(&format!("guests[{index}]"), message),
            }
            mistakes.absorb(own);
        }
        mistakes.finish(Some(())).map_or_else(|problem| problem.to_string(), |()| "none".into())
    }

    #[test]
    fn all_mistakes_of_a_body_are_found_in_one_reading() {
        assert_eq!(mistakes(r#"{"firstName":"Ann","count":1,"guests":[{"name":"B"}]}"#), "none");
        let told = mistakes(
            r#"{"frstName":["junk",{"x":1}],"count":"many","guests":[{"name":7},5,{"nam":1}]}"#,
        );
        assert_eq!(
            told,
            "422 frstName is not known here; did you mean firstName?; firstName is missing; count must be a \
             whole number; guests[0].name must be a text; guests[1] must be an object; guests[2].name is missing"
        );
    }

    #[test]
    fn a_field_that_is_given_twice_is_a_mistake() {
        let told = mistakes(r#"{"firstName":"Ann","count":1,"count":2}"#);
        assert_eq!(told, "422 count is given twice");
    }

    #[test]
    fn a_field_that_is_given_many_times_hides_no_mistake_of_another() {
        let again = r#""count":1,"#.repeat(150);
        let told = mistakes(&format!(r#"{{"firstName":"Ann",{again}"guests":[{{"name":7}}]}}"#));
        assert_eq!(told, "422 count is given twice; guests[0].name must be a text");
    }

    #[test]
    fn more_of_anything_than_a_form_allows_is_refused() {
        let many: Vec<String> = (0..1_001).map(|n| format!("\"k{n}\":0")).collect();
        let told = mistakes(&format!("{{{}}}", many.join(",")));
        assert_eq!(told, "422 body has an object with more than 1000 fields");
        let told = mistakes(r#"{"firstName":"A","guests":[{},{},{},{},{}]}"#);
        assert_eq!(told, "422 guests may have at most 3 entries, has 5");
        let told = mistakes(&format!(r#"{{"firstName":"{}"}}"#, "x".repeat(11)));
        assert_eq!(told, "422 firstName must have at most 10 characters, has 11");
        let flood: Vec<String> = (0..900).map(|n| format!("\"{n}{}\":0", "k".repeat(99))).collect();
        let form = read(&format!("{{{}}}", flood.join(","))).unwrap();
        assert_eq!(form.unknown.names().count(), MOST_UNKNOWN);
        assert!(form.unknown.names().all(|name| name.len() == LONGEST_NAME));
    }

    #[test]
    fn a_body_that_is_no_object_is_told_from_one_that_is_no_json() {
        for (text, status) in [
            ("[1]", "422"),
            ("\"x\"", "422"),
            ("null", "422"),
            ("", "400"),
            ("{", "400"),
            ("[1", "400"),
            ("{} x", "400"),
            (r#"{"x": 1e999}"#, "400"),
            (r#"{"x": "\ud800"}"#, "400"),
        ] {
            let problem = read(text).map(drop).unwrap_err().to_string();
            assert!(problem.starts_with(status), "{text}: {problem}");
        }
        let deep = format!("{{\"x\":{}}}", "[".repeat(100_000));
        assert!(read(&deep).map(drop).unwrap_err().to_string().contains("recursion limit"));
    }
}
