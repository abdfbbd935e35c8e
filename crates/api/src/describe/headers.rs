//! Headers that answers of many operations have: described once, and referred to.

use serde_json::{Map, Value, json};

/// Headers of every answer.
pub(super) const ALWAYS: [&str; 1] = ["X-Request-Id"];
/// Headers of every answer of an operation that is counted.
pub(super) const COUNTED: [&str; 3] = ["X-Request-Id", "RateLimit-Policy", "RateLimit"];

/// Adds headers to a response.
pub(super) fn add(response: &mut Value, names: &[&str]) {
    let headers = response["headers"].take();
    let mut headers = match headers {
        Value::Object(headers) => headers,
        _ => Map::new(),
    };
    for name in names {
        let reference = json!({ "$ref": format!("#/components/headers/{name}") });
        headers.insert((*name).to_owned(), reference);
    }
    response["headers"] = headers.into();
}

/// The headers of a refusal with this status.
pub(super) fn of_refusal(status: u16) -> Vec<&'static str> {
    let mut names = COUNTED.to_vec();
    if [409, 429, 503].contains(&status) {
        names.push("Retry-After");
    }
    names
}

/// All of them, as components of the document.
pub(super) fn described() -> Value {
    let text = |about: &str| json!({ "description": about, "schema": { "type": "string" } });
    json!({
        "X-Request-Id": text("The id of the request, which the client may choose; it is in the server's log."),
        "RateLimit-Policy": text("The limits that the request was counted for: `\"key\";q=120000;w=60` are 120,000 requests a minute."),
        "RateLimit": text("How it stands with them: `\"key\";r=119990;t=42` are 119,990 left for 42 seconds."),
        "Retry-After": {
            "description": "In how many seconds to try again, if that may help.",
            "schema": { "type": "integer", "minimum": 1 },
        },
    })
}
