//! An example of a schema: what a client might send, or get.

use serde_json::{Map, Value, json};

/// Schemas inside schemas, beyond which an example is left out.
const DEEPEST: usize = 6;

/// An example of a schema of the document. Of a request, only what is required and one more field are shown.
pub(super) fn of(schema: &Value, document: &Value) -> Value {
    value(schema, document, DEEPEST)
}

/// The schema that a reference names, or the schema itself.
pub(super) fn resolved<'d>(schema: &'d Value, document: &'d Value) -> &'d Value {
    let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    reference.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

fn value(schema: &Value, document: &Value, depth: usize) -> Value {
    let schema = resolved(schema, document);
    if depth == 0 {
        return Value::Null;
    }
    if let Some(example) = schema["examples"].get(0) {
        return example.clone();
    }
    if let Some(constant) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return constant.clone();
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(first) = schema[choice].get(0) {
            return value(first, document, depth - 1);
        }
    }
    match kind(schema) {
        "object" => object(schema, document, depth),
        "array" => json!([value(&schema["items"], document, depth - 1)]),
        "integer" => schema["minimum"].as_u64().filter(|least| *least > 0).unwrap_or(1).into(),
        "number" => json!(1.5),
        "boolean" => json!(true),
        "string" => text(schema).into(),
        _ => json!({}),
    }
}

/// The type of a schema, without `null`.
pub(super) fn kind(schema: &Value) -> &str {
    let types = schema["type"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let one_of_many = types.clone().find(|kind| *kind != "null");
    schema["type"].as_str().or(one_of_many).unwrap_or_default()
}

fn object(schema: &Value, document: &Value, depth: usize) -> Value {
    let mut fields = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        fields.insert(name.clone(), value(field, document, depth - 1));
    }
    if let Some(entry) = schema.get("additionalProperties").filter(|entry| entry.is_object()) {
        fields.insert("name".to_owned(), value(entry, document, depth - 1));
    }
    fields.into()
}

fn text(schema: &Value) -> &'static str {
    match schema["format"].as_str() {
        Some("uuid") => "01890a5d-ac96-774b-bcce-b302099a8057",
        Some("date-time") => "2027-03-01T18:30:00Z",
        Some("email") => "ann@example.com",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_have_the_form_of_their_schema() {
        let document = json!({ "components": { "schemas": { "A": {
            "type": "object",
            "properties": {
                "id": { "type": "string", "format": "uuid" },
                "count": { "type": ["integer", "null"], "minimum": 3 },
                "more": { "$ref": "#/components/schemas/A" },
            },
        } } } });
        let example = of(&json!({ "$ref": "#/components/schemas/A" }), &document);
        assert_eq!(example["count"], 3);
        assert_eq!(example["more"]["id"], "01890a5d-ac96-774b-bcce-b302099a8057");
        assert_eq!(
            example.pointer("/more/more/more/more/more/more"),
            Some(&Value::Null),
            "it ends"
        );
    }
}
