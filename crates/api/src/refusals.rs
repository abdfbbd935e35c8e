//! Errors of the rooms below, as problems: the one place that makes answers of them.
//!
//! Errors of the store and of the press become errors of ticketing first, which sorts them by what the caller
//! can do.

use serde_json::json;
use stampede_identity::{NotKnown, TokenRefusal};
use stampede_model::TicketId;
use stampede_ticketing::{Error, Warnings};
use stampede_wire::ticketing::orders::TicketWarnings;

use crate::problem::{Code, FieldError, Problem};

/// `Retry-After` while a ticket waits for its PDF.
const RETRY_AFTER_S: u32 = 1;

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Unavailable { what, cause } => {
                tracing::warn!(what, cause, "request refused");
                Self::unavailable(what)
            }
            Error::Template(diagnostics) => Self::template(&diagnostics),
            Error::Unprintable(reason) => Self::new(Code::Invalid, reason),
            Error::Internal(cause) => Self::internal(&cause),
        }
    }
}

impl From<stampede_checkin::Error> for Problem {
    fn from(error: stampede_checkin::Error) -> Self {
        match error {
            stampede_checkin::Error::Unavailable(cause) => {
                Self::from(Error::Unavailable { what: "the database", cause })
            }
            stampede_checkin::Error::Internal(cause) => Self::internal(&cause),
        }
    }
}

impl From<stampede_identity::Error> for Problem {
    fn from(error: stampede_identity::Error) -> Self {
        match error {
            stampede_identity::Error::Unavailable { what, cause } => {
                Self::from(Error::Unavailable { what, cause })
            }
            stampede_identity::Error::Internal(cause) => Self::internal(&cause),
        }
    }
}

impl From<stampede_webhook::Error> for Problem {
    fn from(error: stampede_webhook::Error) -> Self {
        match error {
            stampede_webhook::Error::Unavailable { what, cause } => {
                Self::from(Error::Unavailable { what, cause })
            }
            stampede_webhook::Error::Internal(cause) => Self::internal(&cause),
        }
    }
}

impl From<stampede_campaign::Error> for Problem {
    fn from(error: stampede_campaign::Error) -> Self {
        match error {
            stampede_campaign::Error::Unavailable { what, cause } => {
                Self::from(Error::Unavailable { what, cause })
            }
            stampede_campaign::Error::Internal(cause) => Self::internal(&cause),
        }
    }
}

impl From<stampede_studio::Error> for Problem {
    fn from(error: stampede_studio::Error) -> Self {
        match error {
            stampede_studio::Error::Full { queued, retry_after } => {
                let seconds = retry_after.as_secs_f64().ceil() as u32;
                let detail = format!("{queued} stickers wait already; try again in {seconds} s");
                Self::new(Code::Overloaded, detail).retry_after(seconds)
            }
            stampede_studio::Error::Invalid(mistakes) => {
                let told = mistakes.into_iter();
                Self::invalid(told.map(|it| FieldError::new(it.field, it.message)).collect())
            }
            stampede_studio::Error::Unavailable { what, cause } => {
                Self::from(Error::Unavailable { what, cause })
            }
            stampede_studio::Error::Internal(cause) => Self::internal(&cause),
        }
    }
}

/// The code of a token's refusal.
fn code_of(refusal: &TokenRefusal) -> Code {
    match refusal {
        TokenRefusal::Malformed(_) => Code::TokenMalformed,
        TokenRefusal::Algorithm(_) => Code::TokenAlgorithm,
        TokenRefusal::KeyUnknown => Code::TokenKeyUnknown,
        TokenRefusal::Signature => Code::TokenSignature,
        TokenRefusal::Audience => Code::TokenAudience,
        TokenRefusal::Issuer => Code::TokenIssuer,
        TokenRefusal::Expired => Code::TokenExpired,
        TokenRefusal::NotYet => Code::TokenNotYet,
        TokenRefusal::Role(_) => Code::TokenRole,
    }
}

impl From<stampede_audit::Error> for Problem {
    fn from(error: stampede_audit::Error) -> Self {
        Self::from(error.0)
    }
}

impl From<NotKnown> for Problem {
    fn from(not_known: NotKnown) -> Self {
        match not_known {
            NotKnown::Key => Self::new(Code::Unauthorized, "this API key is not valid"),
            NotKnown::Token(refusal) => Self::new(code_of(&refusal), refusal.to_string()),
        }
    }
}

impl From<stampede_store::Error> for Problem {
    fn from(error: stampede_store::Error) -> Self {
        Self::from(Error::from(error))
    }
}

impl From<stampede_press::Error> for Problem {
    fn from(error: stampede_press::Error) -> Self {
        Self::from(Error::from(error))
    }
}

impl Problem {
    /// 422: the request is strict, and some of its tickets have warnings.
    pub(crate) fn warnings(warnings: &Warnings) -> Self {
        Self::listed_warnings(warnings.refusal(), &warnings.listed(&[]))
    }

    /// 422: the upload is strict, and there are warnings about it.
    pub(crate) fn has_warnings(listed: TicketWarnings) -> Self {
        let first = listed.warnings.first().map(|warning| {
            let line = warning.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            format!("{line}{}", warning.message)
        });
        let detail = format!(
            "nothing was ordered: there are warnings, and the upload is strict; {}",
            first.unwrap_or_default()
        );
        Self::listed_warnings(detail, &listed)
    }

    fn listed_warnings(detail: String, listed: &TicketWarnings) -> Self {
        Self::new(Code::HasWarnings, detail)
            .with("warnings", json!(listed.warnings))
            .with("ticketsWithWarnings", json!(listed.tickets_with_warnings))
    }

    /// 409: the ticket is void, so it cannot be `done`.
    pub(crate) fn void(done: &str) -> Self {
        Self::new(Code::Void, format!("the ticket is void and cannot be {done}"))
    }

    /// 409 until the PDF of a ticket is made.
    pub(crate) fn pdf_not_ready(ticket: TicketId) -> Self {
        Self::not_ready(ticket, RETRY_AFTER_S)
    }
}
