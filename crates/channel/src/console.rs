//! The console: one line in the log for each message, and failures on request, to try everything else out.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use stampede_model::campaign::{AccountId, Failure, Outcome};
use stampede_outbound::BeforeWrite;

use crate::answers;
use crate::message::Message;
use crate::settings::Reader;

/// How the console behaves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    /// The share of messages that fail for a time.
    fail: f64,
    /// The share of messages of which nobody knows whether they arrived.
    unknown: f64,
    /// How long a message takes, in milliseconds.
    ms: f64,
}

/// It has none.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Credentials {}

impl Settings {
    /// Whether it tells of every message what became of it. A console that does not promises nothing, so that people can try out
    /// what `unknown` means.
    pub(crate) fn is_always_known(&self) -> bool {
        self.unknown == 0.0
    }
}

pub(crate) fn read(reader: &mut Reader) -> Option<(Settings, Credentials)> {
    let fail = reader.number("fail", 1.0).unwrap_or_default();
    let unknown = reader.number("unknown", 1.0).unwrap_or_default();
    let ms = reader.number("ms", 60_000.0).unwrap_or_default();
    Some((Settings { fail, unknown, ms }, Credentials {}))
}

pub(crate) async fn send(
    settings: &Settings,
    account: &AccountId,
    message: &Message,
    before: &mut dyn BeforeWrite,
) -> Outcome {
    if !before.allows().await {
        return answers::not_allowed();
    }
    let outcome = outcome(settings, message, rand::random(), rand::random());
    let Message { recipient, address, text, attempt, .. } = message;
    tracing::info!(%account, %recipient, address, text, attempt, outcome = outcome.as_str(), "message");
    tokio::time::sleep(Duration::from_millis(settings.ms as u64)).await;
    outcome
}

/// What comes of a message; the dice are from 0 to 1.
fn outcome(settings: &Settings, message: &Message, first: f64, second: f64) -> Outcome {
    if first < settings.fail {
        return Outcome::Temporary(Failure::new("console", "the account's setting fail says so"));
    }
    if second < settings.unknown {
        let text = "the account's setting unknown says so";
        return Outcome::Unknown(Failure::new("console", text));
    }
    Outcome::Sent { provider_id: Some(message.recipient.to_string()), moved_to: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::message;

    #[test]
    fn the_console_fails_as_often_as_it_is_told() {
        let settings = Settings { fail: 0.1, unknown: 0.01, ms: 0.0 };
        let word = |first, second| outcome(&settings, &message(), first, second).as_str();
        assert_eq!(
            (word(0.09, 0.5), word(0.1, 0.009), word(0.1, 0.01)),
            ("temporary", "unknown", "sent")
        );
        let never = outcome(&Settings::default(), &message(), 0.0, 0.0);
        let provider_id = Some(message().recipient.to_string());
        assert_eq!(never, Outcome::Sent { provider_id, moved_to: None });
    }
}
