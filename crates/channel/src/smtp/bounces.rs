//! Bounces and complaints that come later, from whatever reads the mailbox they go to: `{recipient | email, type}`, signed after
//! Standard Webhooks.

use serde::Deserialize;
use stampede_model::RecipientId;
use stampede_model::campaign::SuppressionReason;

use super::Credentials;
use crate::notice::{Incoming, Notice, Refused, Status};
use crate::webhook;

#[derive(Deserialize)]
struct Bounce {
    recipient: Option<RecipientId>,
    email: Option<String>,
    r#type: Kind,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// The address does not exist.
    Hard,
    /// This mail did not arrive; a later one may.
    Soft,
    /// The person marked the mail as spam: it arrived.
    Complaint,
}

/// Reads a bounce.
pub(crate) fn receipts(
    credentials: &Credentials,
    incoming: &Incoming,
) -> Result<Vec<Notice>, Refused> {
    let bounce: Bounce = webhook::proven(&credentials.bounce_secret, incoming)?;
    let (status, code, suppress) = match bounce.r#type {
        Kind::Hard => (Status::Failed, Some("bounce"), Some(SuppressionReason::Bounce)),
        Kind::Soft => (Status::Failed, Some("soft_bounce"), None),
        Kind::Complaint => (Status::Delivered, None, Some(SuppressionReason::Complaint)),
    };
    if bounce.recipient.is_none() && bounce.email.is_none() {
        return Err(Refused::Malformed("recipient or email is missing".to_owned()));
    }
    let receipt = bounce.recipient.map(|recipient| Notice::Receipt {
        recipient: Some(recipient),
        provider_id: None,
        status,
        code: code.map(str::to_owned),
        detail: None,
        is_bounce: matches!(bounce.r#type, Kind::Hard),
        suppress,
        addresses: Vec::new(),
        at: incoming.now,
    });
    // The recipient's row may be gone with its campaign. Without the recipient, a soft bounce says nothing that could be kept.
    let stop = bounce.email.zip(suppress).map(|(address, reason)| Notice::Stop { address, reason });
    Ok(receipt.into_iter().chain(stop).collect())
}
