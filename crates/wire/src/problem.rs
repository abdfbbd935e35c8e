//! Answers that refuse: `application/problem+json` (RFC 9457).

mod code;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::code::Code;

/// A mistake in one field of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldError {
    /// The line of an uploaded file where the row begins; absent if the mistake is in no row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Path of the field: `quantity`, `holders[3].name`; empty if the mistake is about a whole row.
    pub field: String,
    /// The rule that the field breaks.
    pub message: String,
}

/// The body of an answer that refuses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// Always `about:blank`: `code` says what kind it is.
    #[serde(rename = "type", default = "about_blank")]
    pub kind: String,
    /// The status in words.
    #[serde(default)]
    pub title: String,
    /// The status code.
    #[serde(default)]
    pub status: u16,
    /// The kind of problem, for programs; a new version may have further ones.
    #[serde(default)]
    pub code: String,
    /// The reason, in a sentence.
    #[serde(default)]
    pub detail: String,
    /// `detail` once more: the name that older clients read (docs/compatibility.md).
    #[serde(default)]
    pub error: String,
    /// All mistakes of a request at once; absent if the problem is not about fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// The id of the request, which is also in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Members of this one problem, such as `diagnostics` of a template.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

fn about_blank() -> String {
    "about:blank".to_owned()
}

impl FieldError {
    /// A mistake in a field of a body, a query or a header.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { line: None, field: field.into(), message: message.into() }
    }
}

impl Problem {
    /// A problem without fields.
    pub fn new(code: Code, title: &str, detail: String) -> Self {
        Self {
            kind: about_blank(),
            title: title.to_owned(),
            status: code.status(),
            code: code.as_str().to_owned(),
            error: detail.clone(),
            detail,
            errors: Vec::new(),
            request_id: None,
            more: Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_names_are_those_of_rfc_9457_and_of_older_clients() {
        let mut problem = Problem::new(Code::NotReady, "Conflict", "not yet".to_owned());
        let plain = json!({
            "type": "about:blank", "title": "Conflict", "status": 409, "code": "not_ready",
            "detail": "not yet", "error": "not yet",
        });
        assert_eq!(serde_json::to_value(&problem).unwrap(), plain);
        problem.errors = vec![FieldError::new("name", "is missing")];
        problem.more.insert("missing".into(), json!(3));
        problem.request_id = Some("r1".into());
        let whole = serde_json::to_value(&problem).unwrap();
        assert_eq!(whole["errors"], json!([{ "field": "name", "message": "is missing" }]));
        assert_eq!((&whole["missing"], &whole["requestId"]), (&json!(3), &json!("r1")));
        assert_eq!(serde_json::from_value::<Problem>(whole).unwrap(), problem);
    }

    #[test]
    fn the_answer_of_a_proxy_in_between_is_read_as_far_as_it_goes() {
        let read: Problem = serde_json::from_value(json!({ "error": "no" })).unwrap();
        assert_eq!((read.error.as_str(), read.status), ("no", 0));
    }
}
