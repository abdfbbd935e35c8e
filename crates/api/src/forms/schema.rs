//! The schemas of forms.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// A field of a form, described.
pub(crate) struct Field {
    name: &'static str,
    required: bool,
    schema: Schema,
}

impl Field {
    /// A field of a type; one that may be absent may be `null`, too.
    pub(crate) fn of<T: JsonSchema>(
        schemas: &mut SchemaGenerator,
        name: &'static str,
        about: &str,
        required: bool,
    ) -> Self {
        let schema = schemas.subschema_for::<T>();
        let mut schema = if required { schema } else { or_null(schema) };
        let about = about.trim();
        if !about.is_empty() {
            schema.insert("description".to_owned(), about.into());
        }
        Self { name, required, schema }
    }
}

/// The schema of a form; `lenient`: fields that it does not know are no mistake.
pub(crate) fn form_schema(about: &str, fields: Vec<Field>, lenient: bool) -> Schema {
    let required: Vec<&str> =
        fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let properties: Map<String, Value> =
        fields.iter().map(|field| (field.name.to_owned(), field.schema.clone().into())).collect();
    let mut schema = json_schema!({ "type": "object", "properties": properties });
    let about = about.trim();
    if !about.is_empty() {
        schema.insert("description".to_owned(), about.into());
    }
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    if !lenient {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
    schema
}

/// The schema, or `null`.
pub(crate) fn or_null(mut schema: Schema) -> Schema {
    if schema.as_bool() == Some(true) {
        return schema;
    }
    if schema.get("enum").is_none() && schema.get("const").is_none() {
        match schema.get("type").cloned() {
            Some(Value::String(kind)) => {
                schema.insert("type".to_owned(), json!([kind, "null"]));
                return schema;
            }
            Some(Value::Array(mut kinds)) => {
                kinds.push("null".into());
                schema.insert("type".to_owned(), kinds.into());
                return schema;
            }
            _ => {}
        }
    }
    json_schema!({ "anyOf": [schema, { "type": "null" }] })
}
