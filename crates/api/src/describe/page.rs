//! The OpenAPI document as a page for people. Made by the server, without scripts, pictures or fonts.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::example;

/// The style of the page.
const STYLE: &str = include_str!("page.css");
/// Methods in the order in which a path lists them.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The page loads nothing; its style is known by its hash.
pub(super) fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

/// The page.
pub(super) fn written(document: &Value) -> String {
    let mut html = String::new();
    let info = &document["info"];
    let (title, version) = (text(&info["title"]), text(&info["version"]));
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} API {version}</title><style>{STYLE}</style></head><body>\
         <header><h1>{title} API</h1><p>Version {version}. The same as \
         <a href=\"/api/openapi.json\">OpenAPI 3.1</a>, for programs. \
         In lines for the shell, <code>BASE</code> is the address of this server, and <code>KEY</code> an API key.</p>{}</header><nav>",
        paragraphs(&info["description"]),
    );
    let tags: Vec<&str> = document["tags"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tag| tag["name"].as_str())
        .collect();
    for tag in &tags {
        let _ = write!(html, "<h2><a href=\"#{0}\">{0}</a></h2><ul>", escaped(tag));
        for (path, method, operation) in operations(document, tag) {
            let _ = write!(
                html,
                "<li><a href=\"#{}\"><b class=\"{method}\">{method}</b> {}</a></li>",
                text(&operation["operationId"]),
                escaped(path),
            );
        }
        html.push_str("</ul>");
    }
    html.push_str("<h2><a href=\"#schemas\">Schemas</a></h2></nav><main>");
    for tag in &tags {
        let _ = write!(html, "<h2 id=\"{0}\">{0}</h2>", escaped(tag));
        for (path, method, operation) in operations(document, tag) {
            write_operation(&mut html, document, path, method, operation);
        }
    }
    html.push_str("<h2 id=\"schemas\">Schemas</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let _ = write!(html, "<section id=\"schema-{0}\"><h3>{0}</h3>", escaped(name));
        html.push_str(&paragraphs(&schema["description"]));
        html.push_str(&fields(schema));
        html.push_str("</section>");
    }
    html.push_str("</main></body></html>\n");
    html
}

/// The operations of a room, by path.
fn operations<'d>(
    document: &'d Value,
    tag: &'d str,
) -> impl Iterator<Item = (&'d str, &'static str, &'d Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, methods)| {
        METHODS.into_iter().filter_map(move |method| {
            methods.get(method).map(|operation| (path.as_str(), method, operation))
        })
    });
    all.filter(move |(_, _, operation)| operation["tags"][0] == tag)
}

fn write_operation(
    html: &mut String,
    document: &Value,
    path: &str,
    method: &str,
    operation: &Value,
) {
    let _ = write!(
        html,
        "<section id=\"{}\"><h3><b class=\"{method}\">{method}</b> <code>{}</code></h3><p>{}. {}</p>",
        text(&operation["operationId"]),
        escaped(path),
        text(&operation["summary"]),
        text(&operation["description"]),
    );
    let parameters = operation["parameters"].as_array();
    if let Some(parameters) = parameters {
        html.push_str("<table><tr><th>parameter</th><th>in</th><th>type</th><th>meaning</th></tr>");
        for parameter in parameters {
            let _ = write!(
                html,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                text(&parameter["name"]),
                text(&parameter["in"]),
                shape(&parameter["schema"]),
                inline(&parameter["description"]),
            );
        }
        html.push_str("</table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        let _ = write!(html, "<p>Body: {}</p>", shape(body));
    }
    let sent = (!body.is_null()).then(|| example::of(body, document));
    let _ = write!(html, "<pre>{}</pre>", escaped(&curl(path, method, operation, sent.as_ref())));
    html.push_str("<table><tr><th>status</th><th>answer</th></tr>");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let response = example::resolved(response, document);
        let mut kinds = String::new();
        for (kind, content) in response["content"].as_object().into_iter().flatten() {
            if kind != "application/problem+json" {
                let _ =
                    write!(kinds, " <code>{}</code> {}", escaped(kind), shape(&content["schema"]));
            }
        }
        let about = inline(&response["description"]);
        let _ = write!(html, "<tr><td>{status}</td><td>{about}{kinds}</td></tr>");
    }
    html.push_str("</table>");
    let answered = ["200", "201", "202"].into_iter().find_map(|status| {
        let schema = &operation["responses"][status]["content"]["application/json"]["schema"];
        (!schema.is_null()).then_some(schema)
    });
    if let Some(schema) = answered {
        let example = example::of(schema, document);
        let example = serde_json::to_string_pretty(&example).unwrap_or_default();
        let _ = write!(
            html,
            "<details><summary>Example of an answer</summary><pre>{}</pre></details>",
            escaped(&example)
        );
    }
    html.push_str("</section>");
}

/// A line for the shell.
fn curl(path: &str, method: &str, operation: &Value, body: Option<&Value>) -> String {
    let mut line = "curl".to_owned();
    if method != "get" {
        let _ = write!(line, " -X {}", method.to_uppercase());
    }
    let _ = write!(line, " \"$BASE{}\"", path.replace('{', "$").replace('}', ""));
    if operation["security"].as_array().is_none_or(|ways| !ways.is_empty()) {
        line.push_str(" \\\n  -H \"Authorization: Bearer $KEY\"");
    }
    if let Some(body) = body {
        let body = body.to_string().replace('\'', "'\\''");
        let _ = write!(line, " \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'");
    }
    line
}

/// The fields of an object, or the form of another schema.
fn fields(schema: &Value) -> String {
    let Some(properties) = schema["properties"].as_object() else {
        return format!("<p>{}</p>", shape(schema));
    };
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
    };
    let mut html =
        "<table><tr><th>field</th><th>type</th><th></th><th>meaning</th></tr>".to_owned();
    for (name, field) in properties {
        let must = if required(name) { "always" } else { "" };
        let _ = write!(
            html,
            "<tr><td><code>{}</code></td><td>{}</td><td>{must}</td><td>{}</td></tr>",
            escaped(name),
            shape(field),
            inline(&field["description"]),
        );
    }
    html.push_str("</table>");
    html
}

/// The form of a schema in a few words, with links to other schemas.
fn shape(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("<a href=\"#schema-{0}\">{0}</a>", escaped(name));
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[choice].as_array() {
            return choices.iter().map(shape).collect::<Vec<String>>().join(" or ");
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().map(|word| format!("<code>{}</code>", escaped(&word.to_string())));
        return words.collect::<Vec<String>>().join(" or ");
    }
    if let Some(word) = schema.get("const") {
        return format!("<code>{}</code>", escaped(&word.to_string()));
    }
    let mut told = match example::kind(schema) {
        "array" => format!("list of {}", shape(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("map of {}", shape(&schema["additionalProperties"]))
        }
        "object" if schema["properties"].is_object() => fields(schema),
        "" => "any JSON".to_owned(),
        kind => escaped(kind),
    };
    if let Some(format) = schema["format"].as_str().filter(|format| !format.contains("int")) {
        let _ = write!(told, " ({})", escaped(format));
    }
    for (key, word) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("maxLength", "longest"),
        ("maxItems", "at most"),
    ] {
        if schema[key].is_number() && schema[key] != 0 {
            let _ = write!(told, ", {word} {}", schema[key]);
        }
    }
    if schema["type"].as_array().is_some_and(|types| types.iter().any(|kind| kind == "null")) {
        told.push_str(" or null");
    }
    told
}

fn text(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

/// A text with `code` in it.
fn inline(value: &Value) -> String {
    let text = text(value).replace('\n', "<br>");
    let pieces = text.split('`').enumerate();
    pieces
        .map(
            |(n, piece)| {
                if n % 2 == 1 { format!("<code>{piece}</code>") } else { piece.to_owned() }
            },
        )
        .collect()
}

fn paragraphs(value: &Value) -> String {
    let text = inline(value);
    if text.is_empty() { text } else { format!("<p>{}</p>", text.replace("<br><br>", "</p><p>")) }
}

pub(crate) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use crate::describe::Document;

    #[test]
    fn the_page_shows_every_operation_and_loads_nothing() {
        let (page, json) = (&Document::get().page, super::super::openapi());
        let document: serde_json::Value = serde_json::from_str(json).unwrap();
        for path in document["paths"].as_object().unwrap().values() {
            for operation in path.as_object().unwrap().values() {
                let id = operation["operationId"].as_str().unwrap();
                assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
            }
        }
        for loader in ["<script", "<img", "<link", "src=", "@import", "url(", "http://", "https://"]
        {
            assert!(!page.contains(loader), "{loader}");
        }
        assert!(!page.contains("style=\""), "the policy knows one style only");
    }
}
