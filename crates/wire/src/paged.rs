//! A list with the cursor of its next page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub struct Paged<T> {
    /// The records of the page.
    #[serde(flatten)]
    pub list: T,
    /// The `after` of the next page; `null` on the last.
    pub next: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::queues::Limits;

    #[test]
    fn next_stands_beside_the_records() {
        let page = Paged { list: Limits { limits: Vec::new() }, next: Some("sms".to_owned()) };
        assert_eq!(json!(page), json!({ "limits": [], "next": "sms" }));
        let read: Limits = serde_json::from_value(json!(page)).unwrap();
        assert_eq!(read, page.list, "older clients read the records");
    }
}
