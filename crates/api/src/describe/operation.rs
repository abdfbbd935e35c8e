//! One operation while it is being described.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::auth::Right;
use crate::problem::Code;

/// Problems of tokens of identity providers.
const TOKEN: [Code; 9] = [
    Code::TokenMalformed,
    Code::TokenAlgorithm,
    Code::TokenKeyUnknown,
    Code::TokenSignature,
    Code::TokenAudience,
    Code::TokenIssuer,
    Code::TokenExpired,
    Code::TokenNotYet,
    Code::TokenRole,
];

/// A place of a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    /// The query.
    Query,
    /// A header of the request.
    Header,
}

impl Place {
    fn as_str(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

/// What a parameter of the path may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment {
    /// An id: any other text is answered with 404.
    Id,
    /// A name that Redis knows: it may break rules (422).
    Name,
}

/// An answer that does not refuse.
#[derive(Debug, Default)]
pub(super) struct Reply {
    about: String,
    content: BTreeMap<&'static str, Schema>,
    headers: Map<String, Value>,
}

/// One operation while it is being described.
pub(crate) struct Operation<'g> {
    schemas: &'g mut SchemaGenerator,
    segments: Vec<Schema>,
    parameters: Vec<Value>,
    body: Option<Value>,
    replies: BTreeMap<u16, Reply>,
    codes: BTreeSet<Code>,
    /// The request may have a key, and need not.
    key_is_optional: bool,
}

impl<'g> Operation<'g> {
    /// An operation of which nothing is known yet.
    pub(super) fn new(schemas: &'g mut SchemaGenerator) -> Self {
        Self {
            schemas,
            segments: Vec::new(),
            parameters: Vec::new(),
            body: None,
            replies: BTreeMap::new(),
            codes: BTreeSet::from([Code::Internal, Code::TooSlow]),
            key_is_optional: false,
        }
    }

    /// The schema of a type; a reference, unless the type is a simple one.
    pub(crate) fn schema<T: JsonSchema>(&mut self) -> Schema {
        self.schemas.subschema_for::<T>()
    }

    /// The right that the guard demands.
    pub(crate) fn demands(&mut self, right: Right) {
        if right != Right::Nothing {
            self.may_refuse(&[Code::Unauthorized, Code::Forbidden, Code::Unavailable]);
            self.may_refuse(&[Code::OutOfScope]);
            self.may_refuse(&TOKEN);
        }
    }

    /// The operation takes a key, and does without one.
    pub(crate) fn takes_a_key(&mut self) {
        self.key_is_optional = true;
        self.may_refuse(&[Code::Unauthorized, Code::RateLimited]);
        self.may_refuse(&TOKEN);
    }

    /// The next parameter of the path.
    pub(crate) fn segment<T: JsonSchema>(&mut self, segment: Segment) {
        let schema = self.schema::<T>();
        self.segments.push(schema);
        // Records of others are answered with 403.
        self.may_refuse(&[Code::NotFound, Code::Forbidden]);
        if segment == Segment::Name {
            self.may_refuse(&[Code::Invalid]);
        }
    }

    /// A parameter of the query, or a header.
    pub(crate) fn parameter(&mut self, place: Place, name: &str, about: &str, schema: Schema) {
        let place = place.as_str();
        let mut parameter =
            json!({ "name": name, "in": place, "required": false, "schema": schema });
        if !about.is_empty() {
            parameter["description"] = about.into();
        }
        if place == "query" {
            // An empty parameter counts as absent.
            parameter["allowEmptyValue"] = true.into();
        }
        self.parameters.push(parameter);
    }

    /// Whether the request may have this header.
    pub(super) fn has_header(&self, name: &str) -> bool {
        let is_it = |known: &Value| known["in"] == "header" && known["name"] == name;
        self.parameters.iter().any(is_it)
    }

    /// The body, as JSON.
    pub(crate) fn body<T: JsonSchema>(&mut self, required: bool) {
        let schema = self.schema::<T>();
        let content = json!({ "application/json": { "schema": schema } });
        self.body = Some(json!({ "required": required, "content": content }));
    }

    /// The body, in one of several media types.
    pub(crate) fn bodies(&mut self, kinds: impl Iterator<Item = (&'static str, Schema)>) {
        let content: Map<String, Value> =
            kinds.map(|(kind, schema)| (kind.to_owned(), json!({ "schema": schema }))).collect();
        self.body = Some(json!({ "required": true, "content": content }));
    }

    /// An answer of JSON.
    pub(crate) fn answers_json<T: JsonSchema>(&mut self, status: u16, about: &str) {
        let schema = self.schema::<T>();
        self.answers(status, about, Some(("application/json", schema)));
    }

    /// An answer that does not refuse, with its media type.
    pub(crate) fn answers(
        &mut self,
        status: u16,
        about: &str,
        content: Option<(&'static str, Schema)>,
    ) {
        let reply = self.replies.entry(status).or_default();
        reply.about = about.to_owned();
        reply.content.extend(content);
    }

    /// A file of which parts can be had (`ranges.rs`).
    pub(crate) fn answers_file(&mut self, about: &str, kind: &'static str, schema: Schema) {
        self.answers(200, about, Some((kind, schema.clone())));
        self.answers(206, "A part of it.", Some((kind, schema)));
        self.answers_with_header(
            "ETag",
            "The version of the file, for `If-None-Match` and `If-Range`.",
        );
        self.answers_with_header("Accept-Ranges", "`bytes`: parts of it can be had.");
    }

    /// A header of all answers that do not refuse.
    pub(crate) fn answers_with_header(&mut self, name: &str, about: &str) {
        for reply in self.replies.values_mut() {
            let header = json!({ "description": about, "schema": { "type": "string" } });
            reply.headers.insert(name.to_owned(), header);
        }
    }

    /// Problems that may be the answer.
    pub(crate) fn may_refuse(&mut self, codes: &[Code]) {
        self.codes.extend(codes);
    }

    /// The statuses of all possible answers.
    pub(super) fn statuses(&self) -> BTreeSet<u16> {
        let refusals = self.codes.iter().map(|code| code.status());
        self.replies.keys().copied().chain(refusals).collect()
    }

    /// The description as OpenAPI writes it; `None` if the operation does nothing but refuse.
    pub(super) fn written(self, path: &str, right: Right) -> Option<(Value, BTreeSet<Code>)> {
        if self.replies.is_empty() {
            return None;
        }
        let mut parameters = written_segments(path, self.segments);
        parameters.extend(self.parameters);
        let mut operation = Map::new();
        if !parameters.is_empty() {
            operation.insert("parameters".to_owned(), parameters.into());
        }
        if let Some(body) = self.body {
            operation.insert("requestBody".to_owned(), body);
        }
        match right {
            Right::Nothing if self.key_is_optional => {
                let security = json!([{}, { "bearer": [] }, { "apiKey": [] }]);
                operation.insert("security".to_owned(), security);
            }
            Right::Nothing => drop(operation.insert("security".to_owned(), json!([]))),
            _ => {}
        }
        let replies = self.replies.into_iter();
        let responses: Map<String, Value> =
            replies.map(|(status, reply)| (status.to_string(), reply.written())).collect();
        operation.insert("responses".to_owned(), responses.into());
        Some((operation.into(), self.codes))
    }
}

impl Reply {
    fn written(self) -> Value {
        let mut response = json!({ "description": self.about });
        if !self.content.is_empty() {
            let content = self.content.into_iter();
            let content: Map<String, Value> = content
                .map(|(kind, schema)| (kind.to_owned(), json!({ "schema": schema })))
                .collect();
            response["content"] = content.into();
        }
        if !self.headers.is_empty() {
            response["headers"] = self.headers.into();
        }
        response
    }
}

/// The parameters of a path, each with the schema of its place.
fn written_segments(path: &str, schemas: Vec<Schema>) -> Vec<Value> {
    let mut schemas = schemas.into_iter();
    let mut parameters = Vec::new();
    let mut before = "";
    for segment in path.split('/') {
        if let Some(name) = segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            let schema = schemas.next().unwrap_or_default();
            let about = format!("The {} of the {}.", spoken(name), singular(before));
            parameters.push(json!({
                "name": name, "in": "path", "required": true, "description": about, "schema": schema,
            }));
        } else {
            before = segment;
        }
    }
    parameters
}

fn spoken(name: &str) -> &str {
    match name {
        "kid" => "number",
        name => name,
    }
}

/// `events` → `event`, `batches` → `batch`, `dead-letters` → `dead letter`.
fn singular(plural: &str) -> String {
    if plural == "u" {
        return "link to unsubscribe".to_owned();
    }
    let one = match plural.strip_suffix("ches") {
        Some(stem) => format!("{stem}ch"),
        None => plural.strip_suffix('s').unwrap_or(plural).to_owned(),
    };
    one.replace('-', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_path_are_told_by_what_they_belong_to() {
        let told = |path: &str| -> Vec<String> {
            let written = written_segments(path, Vec::new());
            written.iter().map(|p| p["description"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(told("/api/batches/{id}/zip"), ["The id of the batch."]);
        let keys = ["The id of the event.", "The number of the key."];
        assert_eq!(told("/api/events/{id}/keys/{kid}"), keys);
    }
}
