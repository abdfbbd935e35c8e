//! What providers tell by themselves: receipts, and people who want no more messages.

use http::HeaderMap;
use stampede_model::campaign::SuppressionReason;
use stampede_model::{RecipientId, Timestamp};

/// A request of a provider.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The whole URL as the provider called it, with its query: Twilio signs it.
    pub url: &'a str,
    /// The query, without the question mark.
    pub query: &'a str,
    /// The body, byte for byte: signatures are over it.
    pub body: &'a [u8],
    /// The present: signatures grow old.
    pub now: Timestamp,
}

/// What a request of a provider tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Receipts, stops and starts that the request tells of.
    pub notices: Vec<Notice>,
    /// The number of the request, if the provider numbers its requests: a number that was worked on is not worked on again. `None`:
    /// repeating the request changes nothing.
    pub update: Option<i64>,
}

impl From<Vec<Notice>> for Received {
    fn from(notices: Vec<Notice>) -> Self {
        Self { notices, update: None }
    }
}

/// Something that a provider told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// What became of a message.
    Receipt {
        /// The recipient, if the provider names it.
        recipient: Option<RecipientId>,
        /// The provider's id of the message, if the provider names it.
        provider_id: Option<String>,
        /// What became of it.
        status: Status,
        /// The code of a failure.
        code: Option<String>,
        /// What was said about a failure.
        detail: Option<String>,
        /// It failed because the address does not exist.
        is_bounce: bool,
        /// Why the address gets nothing any more.
        suppress: Option<SuppressionReason>,
        /// The address as the provider writes it, in all spellings that it may have; empty: the provider does not tell it.
        addresses: Vec<String>,
        /// When it happened.
        at: Timestamp,
    },
    /// An address wants, or can get, no more messages.
    Stop {
        /// The address as the provider writes it. The ledger may write it in another way.
        address: String,
        /// Why.
        reason: SuppressionReason,
    },
    /// An address that had said stop wants messages again.
    Start {
        /// The address.
        address: String,
    },
}

/// What became of a message. A row of the ledger only moves up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The provider accepted it.
    Sent,
    /// It arrived.
    Delivered,
    /// It was read.
    Read,
    /// It did not arrive.
    Failed,
}

/// Why a request of a provider is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It proves nothing.
    #[error("the request has no signature")]
    NoSignature,
    /// Its signature is not made with a secret of the account, or is too old.
    #[error("the signature is not made with a secret of this account, or is too old")]
    WrongSignature,
    /// It is signed, and cannot be read.
    #[error("the request cannot be read: {0}")]
    Malformed(String),
    /// The account's channel has no such requests, or the account no secret for them.
    #[error(
        "this account takes no such requests: its channel has none, or its credentials hold no secret for them"
    )]
    NotOffered,
}
