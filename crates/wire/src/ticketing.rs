//! Events, orders, tickets, batches, keys, templates and verification.
//!
//! | file | answers of |
//! |---|---|
//! | [`events`] | `/api/events` |
//! | [`orders`] | `POST /api/tickets` |
//! | [`tickets`] | `/api/tickets` |
//! | [`batches`] | `/api/batches`, and the key `batch:{id}` in Redis |
//! | [`keys`] | `/api/events/{id}/keys` |
//! | [`links`] | `/api/tickets/{id}/links`, `/api/batches/{id}/links` |
//! | [`templates`] | `/api/templates` |
//! | [`uploads`] | `POST /api/events/{id}/batches` |
//! | [`verification`] | `POST /api/verify`, `stampede verify --json` |

pub mod batches;
pub mod events;
pub mod keys;
pub mod links;
pub mod orders;
pub mod templates;
pub mod tickets;
pub mod uploads;
pub mod verification;

#[cfg(test)]
pub(crate) mod golden {
    //! Helpers of the golden tests.

    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    /// The value is written as this JSON, and the JSON is read back as the value.
    pub(crate) fn assert_golden<T>(value: &T, json: Value)
    where
        T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        assert_eq!(serde_json::to_value(value).unwrap(), json);
        assert_eq!(&serde_json::from_value::<T>(json).unwrap(), value);
    }
}
