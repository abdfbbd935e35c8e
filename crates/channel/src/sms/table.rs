//! A provider's codes and what follows from them, as an account's owner sets them.

use serde::{Deserialize, Serialize};
use stampede_model::campaign::{Failure, Outcome, SuppressionReason};

use crate::answers::PAUSE;

/// What follows from a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    Sent,
    SlowDown,
    Temporary,
    Never,
    Bounced,
    Stop,
    Refused,
    Content,
    Account,
    Unknown,
}

impl Action {
    /// The words for all actions.
    pub(super) const WORDS: [(&'static str, Self); 10] = [
        ("sent", Self::Sent),
        ("slow_down", Self::SlowDown),
        ("temporary", Self::Temporary),
        ("never", Self::Never),
        ("bounced", Self::Bounced),
        ("stop", Self::Stop),
        ("refused", Self::Refused),
        ("content", Self::Content),
        ("account", Self::Account),
        ("unknown", Self::Unknown),
    ];

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(known, _)| *known == word).map(|(_, action)| action)
    }

    /// The outcome; `pause` is what the answer asks for.
    pub(super) fn outcome(
        self,
        failure: Failure,
        provider_id: Option<String>,
        pause: Option<std::time::Duration>,
    ) -> Outcome {
        match self {
            Self::Sent => Outcome::Sent { provider_id, moved_to: None },
            Self::SlowDown => Outcome::SlowDown(pause.unwrap_or(PAUSE), failure),
            Self::Temporary => Outcome::Temporary(failure),
            Self::Never => Outcome::Never(failure, None),
            Self::Bounced => Outcome::Bounced(failure, None),
            Self::Stop => Outcome::Never(failure, Some(SuppressionReason::Stop)),
            Self::Refused => Outcome::Refused(failure),
            Self::Content => Outcome::Content(failure),
            Self::Account => Outcome::Account(failure),
            Self::Unknown => Outcome::Unknown(failure),
        }
    }
}
