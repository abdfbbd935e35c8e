//! Why a request has no answer, by what the caller may conclude.

/// A request has no answer. The text is for the person who chose the URL: it names no address and no part of the URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a byte of the request left: sending it again doubles nothing.
    #[error("{reason}")]
    NotSent {
        /// How far it came.
        stage: Stage,
        /// Why.
        reason: String,
    },
    /// The request, or a part of it, left: it may have been carried out.
    #[error("{reason}")]
    Unanswered {
        /// Why.
        reason: String,
    },
}

/// How far a request came that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The request cannot be made of URL and headers.
    Request,
    /// The name of the host has no address.
    Name,
    /// The addresses of the host may not be reached.
    Address,
    /// No connection.
    Connect,
    /// No TLS.
    Tls,
    /// The connection broke before the request was written.
    Write,
    /// The caller did not let it leave: see [`crate::BeforeWrite`].
    NotAllowed,
}

impl Stage {
    /// The stage as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Name => "name",
            Self::Address => "address",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Write => "write",
            Self::NotAllowed => "not_allowed",
        }
    }
}

impl Error {
    pub(crate) fn not_sent(stage: Stage, reason: impl Into<String>) -> Self {
        Self::NotSent { stage, reason: reason.into() }
    }

    pub(crate) fn unanswered(reason: impl Into<String>) -> Self {
        Self::Unanswered { reason: reason.into() }
    }
}
