//! Links for people without a key.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stampede_model::Timestamp;

/// A link to a file. Who has it opens the file until its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// Its address: absolute if the server knows its own (`CDN_URL` or `PUBLIC_URL`), else a path.
    pub url: String,
    /// The file: `pdf`, `zip`, `qr.svg` or `qr.png`.
    pub format: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ticketing::golden::assert_golden;

    #[test]
    fn a_link_has_the_names_that_clients_read() {
        let link = Link {
            url: "https://example.org/api/links/x".into(),
            format: "pdf".into(),
            expires_at: Timestamp::from_second(1_800_000_000).unwrap(),
        };
        assert_golden(
            &link,
            json!({
                "url": "https://example.org/api/links/x", "format": "pdf", "expiresAt": "2027-01-15T08:00:00Z",
            }),
        );
    }
}
