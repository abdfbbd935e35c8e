//! The closed set of results of one attempt to send one message.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::states::words;

words!(
    /// Why an address gets nothing any more.
    SuppressionReason {
        /// The person said stop.
        Stop = "stop",
        /// Messages come back.
        Bounce = "bounce",
        /// The person complained.
        Complaint = "complaint",
        /// The person blocked the sender.
        Blocked = "blocked",
        /// Somebody of ours entered it.
        Manual = "manual",
    }
);

/// Why an attempt did not succeed, as it is kept and shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The provider's code, or a word of ours: `550 5.1.1`, `131026`, `connect`.
    pub code: String,
    /// What the provider said, up to 512 bytes, without secrets and control characters.
    pub text: String,
    /// The pause before the next attempt that the provider asked for, instead of the usual one.
    pub after: Option<Duration>,
}

impl Failure {
    /// Most bytes of the text that are kept.
    pub const LONGEST: usize = 512;

    /// A failure; the text is cut and made printable.
    pub fn new(code: impl Into<String>, text: &str) -> Self {
        let mut kept = String::new();
        for letter in text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }) {
            if kept.len() + letter.len_utf8() > Self::LONGEST {
                break;
            }
            kept.push(letter);
        }
        Self { code: code.into(), text: kept, after: None }
    }

    /// The failure with the pause that the provider asked for.
    #[must_use]
    pub fn after(self, pause: Duration) -> Self {
        Self { after: Some(pause), ..self }
    }
}

/// The result of one attempt. Every channel maps each answer of its provider to one of these.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The provider accepted the message, under this id.
    Sent {
        /// The provider's id of the message.
        provider_id: Option<String>,
        /// The address that the provider will use from now on, if it moved.
        moved_to: Option<String>,
    },
    /// Not a byte of the message left: name, connection or TLS failed. Uses an attempt, and tells the breaker.
    NotSent(Failure),
    /// The message left and nobody answered: it may have arrived.
    Unknown(Failure),
    /// The recipient has this address from now on, and got nothing. Uses no attempt: the next one is to the new address, if nobody
    /// there said stop.
    Moved(String, Failure),
    /// The provider wants fewer messages: nobody sends through this account for so long. Uses no attempt.
    SlowDown(Duration, Failure),
    /// This recipient has to wait for so long, all others go on. Uses no attempt.
    WaitForRecipient(Duration, Failure),
    /// The provider has a trouble that passes. Uses an attempt.
    Temporary(Failure),
    /// This recipient never gets it. With a reason, its address gets nothing any more.
    Never(Failure, Option<SuppressionReason>),
    /// The address does not exist: this recipient never gets it, and the automatic pause counts a hard bounce. With a reason, the
    /// address gets nothing any more.
    Bounced(Failure, Option<SuppressionReason>),
    /// The provider refuses it for its looks or its sender (spam, policy): failed, and counted twice for the automatic pause.
    Refused(Failure),
    /// The content is wrong: all others would fail, too. The campaign pauses at once.
    Content(Failure),
    /// The account is wrong: all campaigns of the account pause.
    Account(Failure),
    /// No message was made for this recipient, so that no provider was called: it has no text, or its ticket is void.
    Withheld(Failure),
}

impl Outcome {
    /// The word that the log of attempts keeps.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Sent { .. } => "sent",
            Self::NotSent(_) => "not_sent",
            Self::Unknown(_) => "unknown",
            Self::Moved(..) => "moved",
            Self::SlowDown(..) => "slow_down",
            Self::WaitForRecipient(..) => "wait_for_recipient",
            Self::Temporary(_) => "temporary",
            Self::Never(..) => "never",
            Self::Bounced(..) => "bounced",
            Self::Refused(_) => "refused",
            Self::Content(_) => "content",
            Self::Account(_) => "account",
            Self::Withheld(_) => "withheld",
        }
    }

    /// Why it did not succeed; `None`: it did.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Sent { .. } => None,
            Self::NotSent(failure)
            | Self::Unknown(failure)
            | Self::Moved(_, failure)
            | Self::SlowDown(_, failure)
            | Self::WaitForRecipient(_, failure)
            | Self::Temporary(failure)
            | Self::Never(failure, _)
            | Self::Bounced(failure, _)
            | Self::Refused(failure)
            | Self::Content(failure)
            | Self::Account(failure)
            | Self::Withheld(failure) => Some(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_failure_is_cut_at_a_letter_and_has_no_control_characters() {
        let failure = Failure::new("550", &format!("no\r\nsuch user {}", "ä".repeat(600)));
        assert!(failure.text.len() <= Failure::LONGEST);
        assert!(failure.text.starts_with("no  such user ä"));
    }
}
