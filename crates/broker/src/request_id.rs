//! The id of the request that caused some work: it goes from the request's log lines into the jobs that the request adds,
//! and from a job into the log lines of the worker and the jobs that the job adds.
//!
//! ```text
//!   request ── scope ──▶ handler ──▶ room ──▶ Work::spec ──▶ payload {"requestId": …} ──▶ worker ── scope ──▶ run ──▶ Work::spec …
//! ```
//!
//! The id is a task-local value, not a parameter. A parameter would have to pass through every room and every function that
//! may add a job, and the one that forgets it breaks the chain without a test noticing. The price: a spawned task does not
//! inherit it, so tasks that work for a request are wrapped in [`kept`]. Nothing decides anything by this id.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde_json::Value;
use tracing::Instrument;
use uuid::Uuid;

tokio::task_local! {
    static CURRENT: RequestId;
}

/// Longest id, in characters.
const LONGEST: usize = 128;

/// The member of a payload that holds the id. Workers of other software ignore it.
const MEMBER: &str = "requestId";

/// The id of a request: 1 to 128 letters, digits and `-_.:/+=`. It can be written into logs and headers as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// Reads an id; `None` if the text is too long, empty, or has other characters.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let is_safe = |b: &u8| b.is_ascii_alphanumeric() || b"-_.:/+=".contains(b);
        let fits = (1..=LONGEST).contains(&text.len()) && text.iter().all(is_safe);
        let text = std::str::from_utf8(text).ok().filter(|_| fits)?;
        Some(Self(text.into()))
    }

    /// Makes an id; ids made later sort after earlier ones.
    pub fn generate() -> Self {
        let mut buffer = Uuid::encode_buffer();
        Self((*Uuid::now_v7().simple().encode_lower(&mut buffer)).into())
    }

    /// The id of the request that the running task works for.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// Runs a future as work for this request.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }

    /// The id in the payload of a job.
    pub(crate) fn of_payload(data: &Value) -> Option<Self> {
        Self::parse(data.get(MEMBER)?.as_str()?.as_bytes())
    }

    /// Adds the current id to a payload that has none.
    pub(crate) fn add_to(payload: &mut Value) {
        if let (Value::Object(fields), Some(id)) = (payload, Self::current()) {
            fields.entry(MEMBER).or_insert_with(|| Value::from(id.as_str()));
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A future to spawn that goes on working for the current request: it keeps the request's id and its span in the log.
pub fn kept<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let id = RequestId::current();
    let work = async move {
        match id {
            Some(id) => id.scope(work).await,
            None => work.await,
        }
    };
    work.in_current_span()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_short_texts_of_safe_characters_are_ids() {
        for text in ["a", "01890a5d-ac96-774b", "Root=1-6:ab/c+d_e.f", &"x".repeat(128)] {
            assert_eq!(
                RequestId::parse(text.as_bytes()).map(|id| id.to_string()).as_deref(),
                Some(text)
            );
        }
        let long = "x".repeat(129);
        for text in ["", " ", "a b", "a\nb", "a\"b", "a{b", "ä", "\x1b[31m", "a;b", "<b>", &long] {
            assert_eq!(RequestId::parse(text.as_bytes()), None, "{text:?}");
        }
        let made = RequestId::generate();
        assert_eq!(RequestId::parse(made.as_str().as_bytes()), Some(made.clone()));
        assert_ne!(RequestId::generate(), made);
    }

    #[tokio::test]
    async fn work_of_a_request_knows_its_id_also_in_a_kept_task() {
        assert_eq!(RequestId::current(), None);
        let id = RequestId::generate();
        let work = async {
            let here = RequestId::current();
            let kept = tokio::spawn(kept(async { RequestId::current() })).await.unwrap();
            let lost = tokio::spawn(async { RequestId::current() }).await.unwrap();
            (here, kept, lost)
        };
        assert_eq!(id.clone().scope(work).await, (Some(id.clone()), Some(id), None));
        assert_eq!(tokio::spawn(kept(async { RequestId::current() })).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_payload_carries_the_id_unless_it_has_one_of_its_own() {
        let id = RequestId::parse(b"r1").unwrap();
        let (own, added, number) = id
            .clone()
            .scope(async {
                let mut payloads = (json!({ "requestId": "own" }), json!({}), json!(7));
                RequestId::add_to(&mut payloads.0);
                RequestId::add_to(&mut payloads.1);
                RequestId::add_to(&mut payloads.2);
                payloads
            })
            .await;
        assert_eq!((own["requestId"].as_str(), number), (Some("own"), json!(7)));
        assert_eq!(RequestId::of_payload(&added), Some(id));
        for foreign in
            [json!({}), json!(7), json!({ "requestId": 7 }), json!({ "requestId": "a b" })]
        {
            assert_eq!(RequestId::of_payload(&foreign), None, "{foreign}");
        }
    }
}
