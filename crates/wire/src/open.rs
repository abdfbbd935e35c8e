//! Records that other software reads and writes too: `workers:stats`, `scaling:history`, ….
//!
//! An open record has named fields and a map of all others. Reading loses nothing: a field that is missing, or
//! has another type than ours, is `None`, and what was written stays in `other`. Writing puts both together. So an entry of
//! an older, a newer or a foreign node comes out as it went in.

/// Declares a struct whose fields are all optional, with a map `other` for the rest.
///
/// The text after `=` is the field's name in JSON. A field of type `Option<T>` tells `null` from absent.
macro_rules! open_record {
    (
        $(#[doc = $about:literal])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])* $field:ident: $type:ty = $key:literal, )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $( $(#[doc = $doc])* pub $field: Option<$type>, )*
            /// Fields that this version does not know, or whose values it cannot read.
            pub other: serde_json::Map<String, serde_json::Value>,
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut all = self.other.clone();
                $(
                    if let Some(value) = &self.$field {
                        let value = serde_json::to_value(value).map_err(serde::ser::Error::custom)?;
                        all.insert($key.to_owned(), value);
                    }
                )*
                serde::Serialize::serialize(&all, serializer)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut properties = serde_json::Map::new();
                $(
                    let described = $crate::open::described::<$type>(generator, concat!($($doc),*));
                    properties.insert($key.to_owned(), described);
                )*
                schemars::json_schema!({
                    "type": "object",
                    "description": concat!($($about),*).trim(),
                    "properties": properties,
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let mut other: serde_json::Map<String, serde_json::Value> =
                    serde::Deserialize::deserialize(deserializer)?;
                Ok(Self {
                    $( $field: $crate::open::take(&mut other, $key), )*
                    other,
                })
            }
        }
    };
}

pub(crate) use open_record;

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The schema of a field with its description. Fields are never required: other software writes these records, too.
pub(crate) fn described<T: JsonSchema>(generator: &mut SchemaGenerator, about: &str) -> Value {
    let mut schema = generator.subschema_for::<T>();
    schema.insert("description".to_owned(), about.trim().into());
    schema.into()
}

/// A record of ours, or anything else that other software wrote in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Loose<T> {
    /// A record that can be read.
    Known(T),
    /// Anything else, kept as it is.
    Foreign(Value),
}

impl<T> Loose<T> {
    /// The record, if it can be read.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(record) => Some(record),
            Self::Foreign(_) => None,
        }
    }

    /// The record, to be changed.
    pub fn known_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Known(record) => Some(record),
            Self::Foreign(_) => None,
        }
    }
}

/// Takes a field out of a map, if it has the right type.
pub(crate) fn take<T: DeserializeOwned>(map: &mut Map<String, Value>, key: &str) -> Option<T> {
    let value = T::deserialize(map.get(key)?).ok()?;
    map.remove(key);
    Some(value)
}

#[cfg(test)]
#[allow(unreachable_pub)]
mod tests {
    use serde_json::json;

    open_record! {
        /// A sample.
        pub struct Sample {
            /// A number.
            workers: u64 = "workers",
            /// A number, or `null`.
            changed: Option<u64> = "changedMsAgo",
        }
    }

    #[test]
    fn an_entry_of_any_version_comes_out_as_it_went_in() {
        for (entry, workers, changed) in [
            (json!({}), None, None),
            (json!({ "workers": 3, "changedMsAgo": 7 }), Some(3), Some(Some(7))),
            (json!({ "workers": 3, "changedMsAgo": null }), Some(3), Some(None)),
            (json!({ "workers": "three", "changedMsAgo": "x" }), None, None),
            (json!({ "workers": null, "new": { "in": ["version", 9] } }), None, None),
        ] {
            let read: Sample = serde_json::from_value(entry.clone()).unwrap();
            assert_eq!((read.workers, read.changed), (workers, changed), "{entry}");
            assert_eq!(serde_json::to_value(&read).unwrap(), entry);
        }
        assert!(serde_json::from_value::<Sample>(json!([1])).is_err());
    }
}
