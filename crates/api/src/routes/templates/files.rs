//! The files of a template in JSON: texts as they are, all others in base64.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::MapAccess;
use stampede_model::{FilesError, MAIN_FILE, TemplateFiles};

use crate::app::App;
use crate::forms::{
    Given, Mistakes, Part, Reading, Seed, Skip, State, Text, form, inline_schema, read_form,
    skip_object,
};

/// The message for a content that is neither text nor base64.
const CONTENT: &str = "must be a text, or {\"base64\": \"…\"} with anything else";
/// Wrong files that are told.
const MOST_WRONG: usize = 20;

/// Names and contents of files, as many and as large as a template may have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    files: BTreeMap<String, Vec<u8>>,
    /// Names and messages of wrong files.
    wrong: Vec<(String, &'static str)>,
}

impl JsonSchema for Files {
    fn schema_name() -> Cow<'static, str> {
        "TemplateFiles".into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let binary = schemas.subschema_for::<BinaryForm>();
        json_schema!({
            "type": "object",
            "required": [MAIN_FILE],
            "maxProperties": TemplateFiles::MAX_FILES,
            "additionalProperties": { "anyOf": [{ "type": "string" }, binary] },
        })
    }
}

impl Part for Files {
    const EXPECTED: &'static str = "must be an object with file names and contents";

    fn object<'de, A: MapAccess<'de>>(
        mut object: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        let (mut files, mut count, mut size) = (Self::default(), 0, 0);
        while let Some(name) = object.next_key::<String>()? {
            count += 1;
            if count > TemplateFiles::MAX_FILES {
                drop(files);
                object.next_value::<Skip>()?;
                skip_object(object)?;
                let most = TemplateFiles::MAX_FILES;
                return Ok(Err(format!("may be at most {most} files, are more")));
            }
            let content = object.next_value_seed(Seed::<Content>::new(reading))?;
            if let State::Is(Content(bytes)) = &content {
                size += bytes.len() as u64;
            }
            // The contents of files that are too large together are counted, and not kept.
            if size > TemplateFiles::MAX_BYTES {
                files.files.clear();
            } else {
                files.add(name, content);
            }
        }
        if size > TemplateFiles::MAX_BYTES {
            return Ok(Err(FilesError::TooLarge(size).to_string()));
        }
        Ok(Ok(files))
    }
}

impl Files {
    fn add(&mut self, name: String, content: State<Content>) {
        match content {
            State::Is(Content(bytes)) => match self.files.insert(name.clone(), bytes) {
                None => {}
                Some(_) => self.note_wrong(&name, "is given twice"),
            },
            State::Wrong(_) | State::Null | State::Absent => self.note_wrong(&name, CONTENT),
        }
    }

    fn note_wrong(&mut self, name: &str, message: &'static str) {
        if self.wrong.len() < MOST_WRONG {
            let name = name.chars().take(TemplateFiles::MAX_NAME).collect();
            self.wrong.push((name, message));
        }
    }
}

/// The content of a file.
struct Content(Vec<u8>);

form! {
    /// `{"base64": "…"}`.
    struct BinaryForm (lenient) {
        /// The bytes.
        base64: Base64 = "base64" required,
    }
}

/// Bytes in base64.
#[derive(Debug, Clone)]
struct Base64(Vec<u8>);

impl JsonSchema for Base64 {
    inline_schema!("Base64", json_schema!({ "type": "string", "contentEncoding": "base64" }));
}

impl Part for Base64 {
    const EXPECTED: &'static str = CONTENT;

    fn text(text: &str) -> Result<Self, String> {
        STANDARD.decode(text).map(Self).map_err(|_| CONTENT.to_owned())
    }
}

impl JsonSchema for Content {
    inline_schema!("FileContent", Schema::default());
}

impl Part for Content {
    const EXPECTED: &'static str = CONTENT;

    fn text(text: &str) -> Result<Self, String> {
        Ok(Self(text.as_bytes().to_vec()))
    }

    fn object<'de, A: MapAccess<'de>>(
        object: A,
        reading: &Reading,
    ) -> Result<Result<Self, String>, A::Error> {
        let form: BinaryForm = read_form(object, reading)?;
        Ok(match form.base64.into_parts().1 {
            State::Is(Base64(bytes)) => Ok(Self(bytes)),
            _ => Err(CONTENT.to_owned()),
        })
    }
}

/// The `files` of a request, or the files of the `design` that it names; mistakes are noted.
pub(super) fn read(
    mistakes: &mut Mistakes,
    files: Given<Files>,
    design: Given<Text<200>>,
    app: &App,
) -> Option<TemplateFiles> {
    if !files.has_value() {
        return mistakes.read(design, |Text(name)| {
            let design = app.press.design(&name).ok_or("is no design that ships")?;
            Ok::<_, &str>(design.files.clone())
        });
    }
    // The files win; a design that is none at all is a mistake all the same.
    mistakes.value(design);
    let Files { files, wrong } = mistakes.value(files)?;
    if wrong.is_empty() {
        return match TemplateFiles::new(files) {
            Ok(files) => Some(files),
            Err(error) => {
                mistakes.wrong("files", error);
                None
            }
        };
    }
    for (name, message) in wrong {
        mistakes.wrong(&format!("files[{name:?}]"), message);
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stampede_wire::ticketing::templates::Files as Shown;

    use super::*;
    use crate::forms::{ReadingLimits, parse};

    form! {
        struct Sample {
            files: Files = "files",
        }
    }

    fn read_files(files: &Value) -> State<Files> {
        let limits = ReadingLimits { holders: 0, payload: 0 };
        let body = json!({ "files": files }).to_string();
        parse::<Sample>(body.as_bytes(), limits, None).unwrap().0.files.into_parts().1
    }

    #[test]
    fn files_survive_a_round_trip() {
        let files = BTreeMap::from([
            ("template.typ".to_owned(), "Привет \"мир\"\n".as_bytes().to_vec()),
            ("logo.png".to_owned(), vec![0x89, b'P', 0, 255]),
            ("empty".to_owned(), vec![]),
        ]);
        let json = json!(Shown::from(&TemplateFiles::new(files.clone()).unwrap()));
        assert_eq!(json["logo.png"], json!({ "base64": "iVAA/w==" }));
        let State::Is(read) = read_files(&json) else { panic!("{json}") };
        assert_eq!((read.files, read.wrong.len()), (files, 0));
    }

    #[test]
    fn what_is_neither_text_nor_base64_is_named() {
        let files = json!({ "a.typ": "fine", "b": 1, "c": { "base64": "***" }, "d": null });
        let State::Is(read) = read_files(&files) else { panic!() };
        let names: Vec<&str> = read.wrong.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "c", "d"]);
    }

    #[test]
    fn files_are_not_kept_once_they_are_too_many_or_too_large() {
        let many: BTreeMap<String, &str> = (0..101).map(|n| (n.to_string(), "")).collect();
        let State::Wrong(told) = read_files(&json!(many)) else { panic!() };
        assert_eq!(told, "may be at most 100 files, are more");
        let half = "x".repeat(5 << 20);
        let State::Wrong(told) = read_files(&json!({ "a": half, "b": half })) else { panic!() };
        assert_eq!(told, "may have at most 8388608 bytes together, have 10485760");
    }
}
