//! Requests that a client may send twice: who carries one out, and the answer for the second time.
//!
//! ```text
//!   (none) ── claim ──▶ in flight ── keep ──▶ done ── expires ──▶ (none)
//!     ▲                    │  ▲
//!     └────── release ─────┘  └── claim by another holder, after the time limit of the first
//! ```
//! A holder that dies leaves its record in flight until the time limit. Then the next request is carried out as if it were
//! the first: nobody knows how far the dead holder came.

use async_trait::async_trait;
use stampede_model::Timestamp;

use crate::{Result, Store};

/// A request that wants to be carried out once.
#[derive(Debug, Clone, Copy)]
pub struct RequestClaim<'a> {
    /// Whose keys are told apart from those of others.
    pub owner: &'a str,
    /// The key that the client chose.
    pub key: &'a str,
    /// Hash of what is asked, without the body.
    pub target: &'a str,
    /// A text that no other claim has.
    pub holder: &'a str,
    /// Until when nobody else may carry it out.
    pub held_until: Timestamp,
    /// When the record may be forgotten.
    pub expires_at: Timestamp,
}

/// What became of a claim. `A` is the answer: sealed as a backend keeps it, or open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestClaimed<A = Vec<u8>> {
    /// The request is to be carried out by this holder.
    Yes,
    /// Another holder carries out the same request.
    InFlight,
    /// The key was used for another request.
    OtherTarget,
    /// It was carried out.
    Done {
        /// Hash of its body.
        body_hash: String,
        /// The answer; `None`: it is not kept.
        answer: Option<A>,
    },
}

/// Requests that are carried out once.
#[async_trait]
pub trait IdempotentRequests {
    /// Claims a request. Of all claims at the same time, one gets [`RequestClaimed::Yes`].
    async fn claim(&self, claim: &RequestClaim<'_>, now: Timestamp) -> Result<RequestClaimed>;

    /// Keeps the sealed answer of a request that was carried out. `false`: another holder has it now, and nothing changes.
    async fn keep_sealed(
        &self,
        claim: &RequestClaim<'_>,
        body_hash: &str,
        answer: Option<&[u8]>,
    ) -> Result<bool>;

    /// Gives up a claim, so that the key can be used again. `false`: another holder has it now, and nothing changes.
    async fn release(&self, claim: &RequestClaim<'_>) -> Result<bool>;

    /// Forgets at most `most` records whose time is over; returns how many.
    async fn forget_requests(&self, most: u32, now: Timestamp) -> Result<u64>;
}

impl Store {
    /// Claims a request, and opens the answer if it was carried out: see [`IdempotentRequests::claim`]. An answer that was
    /// sealed with another secret counts as not kept.
    pub async fn claim_request(
        &self,
        claim: &RequestClaim<'_>,
        now: Timestamp,
    ) -> Result<RequestClaimed> {
        Ok(match self.claim(claim, now).await? {
            RequestClaimed::Done { body_hash, answer: Some(sealed) } => {
                let answer = self.vault()?.open_answer(claim.owner, claim.key, &sealed);
                RequestClaimed::Done { body_hash, answer }
            }
            other => other,
        })
    }

    /// Keeps the answer of a request that was carried out: see [`IdempotentRequests::keep_sealed`]. It is encrypted, because it
    /// may show a secret that is shown once.
    pub async fn keep_answer(
        &self,
        claim: &RequestClaim<'_>,
        body_hash: &str,
        answer: Option<&[u8]>,
    ) -> Result<bool> {
        let vault = self.vault()?;
        let sealed = answer.map(|answer| vault.seal_answer(claim.owner, claim.key, answer));
        self.keep_sealed(claim, body_hash, sealed.as_deref()).await
    }
}
