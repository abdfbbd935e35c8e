//! Templates of organisers, and the designs that ship.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::{Diagnostic, TemplateFiles, TemplateId, Timestamp};

use super::orders::Warning;

/// An organiser's template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// The template's id.
    pub id: TemplateId,
    /// The user it belongs to.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// Number of the latest revision.
    pub revision: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// One page of templates, and all designs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplatePage {
    /// The designs that ship.
    pub designs: Vec<Design>,
    /// The templates.
    pub templates: Vec<Template>,
    /// The `after` of the next page; `null` on the last page.
    pub next: Option<TemplateId>,
}

/// A design that ships.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Design {
    /// The design's name in requests.
    pub id: String,
    /// Its description for people.
    pub name: String,
    /// Always true.
    pub read_only: bool,
    /// Its files; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Files>,
}

/// A template that was created or changed, with what its compiler says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedTemplate {
    /// The template.
    #[serde(flatten)]
    pub template: Template,
    /// What the compiler says.
    #[serde(flatten)]
    pub compiled: Compiled,
}

/// A template with the files of its latest revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateWithFiles {
    /// The template.
    #[serde(flatten)]
    pub template: Template,
    /// Hash of the files.
    pub hash: String,
    /// The author's note to the revision.
    pub note: String,
    /// The files.
    pub files: Files,
}

/// The answer of `GET /api/templates/{id}`: a template of an organiser, or a design that ships.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TemplateOrDesign {
    /// A template with the files of its latest revision.
    Template(TemplateWithFiles),
    /// A design that ships.
    Design(Design),
}

/// One revision of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Its number; 1 for the first.
    pub revision: u32,
    /// Hash of its files.
    pub hash: String,
    /// Bytes in its files.
    pub size: u64,
    /// The user who wrote it.
    pub author: String,
    /// The author's note.
    pub note: String,
    /// When it was written.
    pub created_at: Timestamp,
    /// Its files; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Files>,
}

/// One page of revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevisionPage {
    /// The revisions.
    pub revisions: Vec<Revision>,
    /// The `after` of the next page; `null` on the last page.
    pub next: Option<u32>,
}

/// What a compiler says of a template that works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compiled {
    /// How tickets are printed: stamped in microseconds, or typeset one by one.
    pub mode: Mode,
    /// The reason for which tickets are typeset; absent if they are stamped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The pages of a ticket.
    pub pages: Vec<Page>,
    /// The values of a ticket that the fields show.
    pub fields: Vec<String>,
    /// Warnings of the compiler.
    pub diagnostics: Vec<Diagnostic>,
}

/// How the tickets of a template are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Values are put into a compiled page.
    Stamped,
    /// Each ticket is typeset.
    Typeset,
}

/// The size of a page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// In millimetres.
    pub width_mm: f32,
    /// In millimetres.
    pub height_mm: f32,
}

/// The answer of `POST /api/templates/validate` for files that work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValidatedTemplate {
    /// Always true; files that do not work are a problem with diagnostics.
    pub valid: bool,
    /// Hash of the files.
    pub hash: String,
    /// What the compiler says.
    #[serde(flatten)]
    pub compiled: Compiled,
    /// What would not come out well on the ticket of the request.
    pub warnings: Vec<Warning>,
}

/// The files of a template by name: texts as they are, all others in base64.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Files(pub BTreeMap<String, FileContent>);

/// The content of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FileContent {
    /// A text.
    Text(String),
    /// Bytes that are no text.
    Binary {
        /// The bytes in base64.
        base64: String,
    },
}

impl FileContent {
    /// The bytes of the file; `None` if its base64 is wrong.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Binary { base64 } => STANDARD.decode(base64).ok(),
        }
    }
}

impl From<&[u8]> for FileContent {
    fn from(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Binary { base64: STANDARD.encode(bytes) },
        }
    }
}

impl From<&TemplateFiles> for Files {
    fn from(files: &TemplateFiles) -> Self {
        Self(files.iter().map(|(name, bytes)| (name.to_owned(), bytes.into())).collect())
    }
}

impl From<stampede_model::Template> for Template {
    fn from(template: stampede_model::Template) -> Self {
        let stampede_model::Template { id, owner, name, revision, created_at, updated_at } =
            template;
        Self { id, owner, name, revision, created_at, updated_at }
    }
}

impl From<stampede_model::TemplateRevision> for Revision {
    fn from(revision: stampede_model::TemplateRevision) -> Self {
        let stampede_model::TemplateRevision { number, hash, size, author, note, created_at } =
            revision;
        Self { revision: number, hash, size, author, note, created_at, files: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    fn template() -> Template {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        Template {
            id: TemplateId::from_bytes([1; 16]),
            owner: "ann".into(),
            name: "Poster".into(),
            revision: 2,
            created_at: at,
            updated_at: at,
        }
    }

    fn compiled() -> Compiled {
        Compiled {
            mode: Mode::Stamped,
            reason: None,
            pages: vec![Page { width_mm: 210.0, height_mm: 297.0 }],
            fields: vec!["name".into()],
            diagnostics: Vec::new(),
        }
    }

    #[test]
    fn templates_have_the_names_that_clients_read() {
        let design = Design { id: "a4".into(), name: "A4".into(), read_only: true, files: None };
        let page = TemplatePage { designs: vec![design], templates: vec![template()], next: None };
        let json = json!({
            "id": "01010101-0101-0101-0101-010101010101",
            "owner": "ann",
            "name": "Poster",
            "revision": 2,
            "createdAt": "2027-01-15T08:00:00Z",
            "updatedAt": "2027-01-15T08:00:00Z",
        });
        assert_golden(
            &page,
            json!({
                "designs": [{ "id": "a4", "name": "A4", "readOnly": true }],
                "templates": [json],
                "next": null,
            }),
        );
        let mut wanted = json.clone();
        let said = json!({
            "mode": "stamped",
            "pages": [{ "widthMm": 210.0, "heightMm": 297.0 }],
            "fields": ["name"],
            "diagnostics": [],
        });
        wanted.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        assert_golden(&PublishedTemplate { template: template(), compiled: compiled() }, wanted);
        let mut wanted = json;
        for (name, value) in [("hash", json!("h")), ("note", json!("n")), ("files", json!({}))] {
            wanted[name] = value;
        }
        let with_files = TemplateWithFiles {
            template: template(),
            hash: "h".into(),
            note: "n".into(),
            files: Files::default(),
        };
        assert_golden(&with_files, wanted);
    }

    #[test]
    fn revisions_and_validations_have_the_names_that_clients_read() {
        let at = Timestamp::from_second(1_800_000_000).unwrap();
        let revision = Revision {
            revision: 3,
            hash: "h".into(),
            size: 7,
            author: "ann".into(),
            note: "n".into(),
            created_at: at,
            files: None,
        };
        assert_golden(
            &RevisionPage { revisions: vec![revision], next: Some(3) },
            json!({
                "revisions": [{
                    "revision": 3, "hash": "h", "size": 7, "author": "ann", "note": "n",
                    "createdAt": "2027-01-15T08:00:00Z",
                }],
                "next": 3,
            }),
        );
        let typeset = Compiled {
            mode: Mode::Typeset,
            reason: Some("it looks at its ticket".into()),
            pages: Vec::new(),
            ..compiled()
        };
        assert_golden(
            &ValidatedTemplate {
                valid: true,
                hash: "h".into(),
                compiled: typeset,
                warnings: Vec::new(),
            },
            json!({
                "valid": true,
                "hash": "h",
                "mode": "typeset",
                "reason": "it looks at its ticket",
                "pages": [],
                "fields": ["name"],
                "diagnostics": [],
                "warnings": [],
            }),
        );
    }

    #[test]
    fn files_survive_a_round_trip() {
        let files = BTreeMap::from([
            ("template.typ".to_owned(), "Привет \"мир\"\n".as_bytes().to_vec()),
            ("logo.png".to_owned(), vec![0x89, b'P', 0, 255]),
            ("empty".to_owned(), vec![]),
        ]);
        let shown = Files::from(&TemplateFiles::new(files.clone()).unwrap());
        assert_golden(
            &shown,
            json!({
                "template.typ": "Привет \"мир\"\n",
                "logo.png": { "base64": "iVAA/w==" },
                "empty": "",
            }),
        );
        let read = shown.0.iter().map(|(name, content)| (name.clone(), content.bytes().unwrap()));
        assert_eq!(read.collect::<BTreeMap<_, _>>(), files);
    }
}
