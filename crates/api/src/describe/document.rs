//! The OpenAPI document of all rooms.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use stampede_wire::problem::Problem;

use super::headers::{self, ALWAYS, COUNTED};
use super::operation::Operation;
use super::page;
use crate::auth::Right;
use crate::problem::Code;
use crate::rate_limits::is_free;
use crate::room::{Room, Route};

/// What a client reads before it reads the operations.
const ABOUT: &str = "Events, tickets, check-in, campaigns, webhooks, queues and nodes of a Stampede server.\n\n\
    Send an API key as `Authorization: Bearer <key>` or as `X-API-Key: <key>`. \
    Errors are problems (RFC 9457); programs tell them apart by `code`. \
    A field that may be absent may also be `null`.";

/// The description of the API, as it is served.
pub(crate) struct Document {
    /// The OpenAPI document.
    pub(crate) json: String,
    /// The document as a page for people.
    pub(crate) page: String,
    /// The content security policy of the page.
    pub(crate) policy: String,
}

impl Document {
    /// The description of this program's API.
    pub(crate) fn get() -> &'static Self {
        static DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
            let document = written(&crate::router::rooms());
            let json = serde_json::to_string_pretty(&document).unwrap_or_default();
            Document { json, page: page::written(&document), policy: page::policy() }
        });
        &DOCUMENT
    }

    /// Whether a handler takes an `Idempotency-Key` by itself.
    pub(crate) fn takes_key(describe: &dyn Fn(&mut Operation<'_>)) -> bool {
        let mut schemas = schemas();
        let mut operation = Operation::new(&mut schemas);
        describe(&mut operation);
        operation.has_header("Idempotency-Key")
    }

    /// The statuses that an operation may answer with.
    pub(crate) fn statuses(describe: &dyn Fn(&mut Operation<'_>)) -> BTreeSet<u16> {
        let mut schemas = schemas();
        let mut operation = Operation::new(&mut schemas);
        describe(&mut operation);
        operation.statuses()
    }
}

/// The OpenAPI document of this program's API, as `GET /api/openapi.json` answers it.
pub fn openapi() -> &'static str {
    &Document::get().json
}

/// Schemas as answers have them: a field that is always written is required.
fn schemas() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    settings.into_generator()
}

fn written(rooms: &[Room]) -> Value {
    let mut schemas = schemas();
    let problem = schemas.subschema_for::<Problem>();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let mut refusals = Map::new();
    let tags: Vec<Value> = rooms.iter().map(|room| json!({ "name": room.title })).collect();
    let routes: Vec<&Route> =
        rooms.iter().flat_map(|room| room.described().map(|(route, _)| route)).collect();
    for room in rooms {
        for (route, describe) in room.described() {
            let mut operation = Operation::new(&mut schemas);
            describe(&mut operation);
            if is_shadowed(route, &routes) {
                operation.may_refuse(&[Code::MethodNotAllowed]);
            }
            let Some((mut operation, codes)) = operation.written(route.path, route.right) else {
                continue;
            };
            operation["tags"] = json!([room.title]);
            operation["operationId"] = route.id.into();
            operation["summary"] = route.summary.into();
            operation["description"] = told(route.right).into();
            let common: &[&str] = if is_free(route.path) { &ALWAYS } else { &COUNTED };
            let replies = operation["responses"].as_object_mut();
            for reply in replies.into_iter().flat_map(|replies| replies.values_mut()) {
                headers::add(reply, common);
            }
            for (status, name) in named(&codes, &problem, &mut refusals) {
                let refused = json!({ "$ref": format!("#/components/responses/{name}") });
                if operation["responses"].get(&status).is_none() {
                    operation["responses"][status] = refused;
                }
            }
            let method = route.method.as_str().to_lowercase();
            paths.entry(route.path).or_default().insert(method, operation);
        }
    }
    let mut components: Value = schemas.take_definitions(true).into();
    list_words(&mut components);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Stampede", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }, { "apiKey": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": refusals,
            "headers": headers::described(),
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "apiKey": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
            },
        },
    })
}

/// Writes a choice of words, each with a description, as a list of words. Generators of clients read it better.
fn list_words(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(list_words),
        Value::Object(fields) => {
            fields.values_mut().for_each(list_words);
            let Some(choices) = fields.get("oneOf").and_then(Value::as_array) else { return };
            let word = |choice: &Value| choice["const"].as_str().map(str::to_owned);
            let Some(words) = choices.iter().map(word).collect::<Option<Vec<String>>>() else {
                return;
            };
            let told = choices.iter().zip(&words).filter_map(|(choice, word)| {
                choice["description"].as_str().map(|about| format!("`{word}`: {about}"))
            });
            let before = fields.get("description").and_then(Value::as_str).map(str::to_owned);
            let about: Vec<String> = before.into_iter().chain(told).collect();
            fields.remove("oneOf");
            fields.insert("type".to_owned(), json!("string"));
            fields.insert("enum".to_owned(), json!(words));
            fields.insert("description".to_owned(), about.join("\n").into());
        }
        _ => {}
    }
}

/// Who may call a route.
fn told(right: Right) -> &'static str {
    match right {
        Right::Nothing => "Open: needs no key.",
        Right::Call => "Needs any valid key but a scanner's; records belong to the key's user.",
        Right::Watch => "Needs any valid key; shows what the key may see.",
        Right::Write => "Needs a key that may change things; records belong to the key's user.",
        Right::Admit => {
            "Needs a key that may let guests in: a scanner's, an organiser's or an administrator's."
        }
        Right::Oversee => {
            "Needs a key that reads everything: an administrator's, or a viewer's of the user `*`."
        }
        Right::Administer => "Needs an administrator's key.",
    }
}

/// One response for the codes of each status, shared by all operations with the same codes.
fn named(
    codes: &BTreeSet<Code>,
    problem: &schemars::Schema,
    all: &mut Map<String, Value>,
) -> Vec<(String, String)> {
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(*code);
    }
    let refusals = by_status.into_iter().map(|(status, codes)| {
        let words: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
        let name = words.join(".");
        let about: Vec<String> =
            codes.iter().map(|code| format!("`{}`: {}", code.as_str(), code.meaning())).collect();
        let mut response = json!({
            "description": about.join("\n"),
            "content": { "application/problem+json": { "schema": problem } },
        });
        headers::add(&mut response, &headers::of_refusal(status));
        all.insert(name.clone(), response);
        (status.to_string(), name)
    });
    refusals.collect()
}

/// Whether some value for the route's parameters leads to another path, which lacks the route's method (405).
fn is_shadowed(route: &Route, routes: &[&Route]) -> bool {
    let others =
        routes.iter().filter(|other| other.path != route.path && leads(route.path, other.path));
    let paths: BTreeSet<&str> = others.map(|other| other.path).collect();
    paths
        .into_iter()
        .any(|path| !routes.iter().any(|other| other.path == path && other.method == route.method))
}

/// Whether a request that is meant for `path` may be answered by the route of `other`, which is more exact.
fn leads(path: &str, other: &str) -> bool {
    let is_parameter = |segment: &str| segment.starts_with('{');
    let (mut path, mut other) = (path.split('/'), other.split('/'));
    loop {
        match (path.next(), other.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b || (is_parameter(a) && !is_parameter(b)) => {}
            (Some(a), Some(b)) if is_parameter(a) && is_parameter(b) => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        serde_json::from_str(openapi()).unwrap()
    }

    fn operations(document: &Value) -> impl Iterator<Item = &Value> {
        let paths = document["paths"].as_object().unwrap().values();
        paths.flat_map(|path| path.as_object().unwrap().values())
    }

    #[test]
    fn every_route_is_described_unless_it_only_refuses() {
        let document = document();
        for route in crate::router::routes() {
            let method = route.method.as_str().to_lowercase();
            let operation = &document["paths"][route.path][&method];
            if route.path.ends_with("{action}") {
                assert!(operation.is_null(), "{route:?}");
            } else {
                assert_eq!(operation["operationId"], route.id, "{route:?}");
            }
        }
    }

    #[test]
    fn names_are_unique_and_parameters_have_descriptions() {
        let document = document();
        let ids: Vec<&str> = operations(&document)
            .map(|operation| operation["operationId"].as_str().unwrap())
            .collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
        for operation in operations(&document) {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(parameter["description"].is_string(), "{operation:#}");
            }
        }
    }

    #[test]
    fn two_types_do_not_share_a_name() {
        let document = document();
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            // The generator appends a number to the second of them.
            assert!(!name.ends_with(|c: char| c.is_ascii_digit()), "{name}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn check(value: &Value, document: &Value) {
            match value {
                Value::Object(fields) => {
                    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                        let pointer = reference.strip_prefix('#').unwrap();
                        assert!(document.pointer(pointer).is_some(), "{reference}");
                    }
                    fields.values().for_each(|value| check(value, document));
                }
                Value::Array(values) => values.iter().for_each(|value| check(value, document)),
                _ => {}
            }
        }
        let document = document();
        check(&document, &document);
    }

    #[test]
    fn words_are_listed_with_their_meanings() {
        let status = &document()["components"]["schemas"]["TicketStatus"];
        assert_eq!(status["enum"], json!(["pending", "completed", "failed", "void"]));
        assert!(
            status["description"].as_str().unwrap().contains("\n`void`: Withdrawn"),
            "{status}"
        );
    }

    #[test]
    fn a_path_that_may_lead_to_another_one_is_recognised() {
        assert!(leads("/api/templates/{id}", "/api/templates/validate"));
        assert!(leads("/api/queues/{name}/jobs", "/api/queues/{name}/jobs"));
        assert!(!leads("/api/templates/validate", "/api/templates/{id}"));
        assert!(!leads("/api/templates/{id}", "/api/templates/{id}/preview"));
    }
}
