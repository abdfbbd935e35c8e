//! Reads the files of a template from JSON: texts as they are, all others in base64.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use stampede_model::TemplateFiles;
use stampede_wire::ticketing::templates::FileContent;

use crate::app::App;
use crate::input::{Fields, as_text};

/// Reads `files`, or the files of the `design` that is named; mistakes are noted.
pub(super) fn read(fields: &mut Fields<'_>, app: &App) -> Option<TemplateFiles> {
    if let Some(Value::Object(object)) = fields.get("files") {
        let files = read_contents(fields, object)?;
        return match TemplateFiles::new(files) {
            Ok(files) => Some(files),
            Err(error) => {
                fields.wrong("files", error);
                None
            }
        };
    }
    if fields.get("files").is_some() {
        fields.wrong("files", "must be an object with file names and contents");
        return None;
    }
    fields.read("design", |value| {
        let name = as_text(value)?;
        let design = app.press.design(name).ok_or("is no design that ships")?;
        Ok::<_, String>(design.files.clone())
    })
}

fn read_contents(
    fields: &mut Fields<'_>,
    object: &Map<String, Value>,
) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for (name, value) in object {
        match content(value) {
            Some(bytes) => {
                files.insert(name.clone(), bytes);
            }
            None => {
                let name: String = name.chars().take(TemplateFiles::MAX_NAME).collect();
                fields.wrong(
                    &format!("files[{name:?}]"),
                    "must be a text, or {\"base64\": \"…\"} with anything else",
                );
            }
        }
    }
    (files.len() == object.len()).then_some(files)
}

fn content(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Object(object) => {
            let base64 = object.get("base64")?.as_str()?.to_owned();
            FileContent::Binary { base64 }.bytes()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stampede_wire::ticketing::templates::Files;

    use super::*;

    #[test]
    fn files_survive_a_round_trip() {
        let files = BTreeMap::from([
            ("template.typ".to_owned(), "Привет \"мир\"\n".as_bytes().to_vec()),
            ("logo.png".to_owned(), vec![0x89, b'P', 0, 255]),
            ("empty".to_owned(), vec![]),
        ]);
        let json = json!(Files::from(&TemplateFiles::new(files.clone()).unwrap()));
        assert_eq!(json["logo.png"], json!({ "base64": "iVAA/w==" }));
        let object = json.as_object().unwrap();
        assert_eq!(read_contents(&mut Fields::new(object), object), Some(files));
    }

    #[test]
    fn what_is_neither_text_nor_base64_is_named() {
        let Value::Object(object) =
            json!({ "a.typ": "fine", "b": 1, "c": { "base64": "***" }, "d": null })
        else {
            unreachable!()
        };
        let mut fields = Fields::new(&object);
        assert_eq!(read_contents(&mut fields, &object), None);
        assert_eq!(fields.mistakes(), 3);
    }
}
