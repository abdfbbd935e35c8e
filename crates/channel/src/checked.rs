//! What a check of an account found.

use stampede_model::campaign::Failure;
use stampede_outbound::Answer;

use crate::answers;

/// The provider is there and does not refuse the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The provider has accepted the account. `false`: it is reachable, and says nothing about accounts without a message.
    pub is_verified: bool,
    /// The provider's description of the account, such as the name of a bot.
    pub text: String,
}

impl Checked {
    /// The provider accepts the account.
    pub(crate) fn verified(text: impl Into<String>) -> Self {
        Self { is_verified: true, text: text.into() }
    }

    /// Reads the answer to a `HEAD`. A server that does not know this method says nothing about the account; `who` is asked.
    pub(crate) fn by_head(who: &str, answer: &Answer) -> Result<Self, Failure> {
        match answer.status {
            500 | 502.. => Err(answers::failure(answer)),
            status @ 200..=299 => Ok(Self::verified(format!(
                "the {who} answers {status} to HEAD; no message was sent"
            ))),
            status => Ok(Self {
                is_verified: false,
                text: format!(
                    "reachable, cannot be verified: the {who} answers {status} to HEAD; no message was sent, a test message \
                     shows more"
                ),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_head_is_reachable_and_not_verified() {
        let head = |status| Checked::by_head("endpoint", &answers::answer(status, &[], ""));
        for status in [200, 204] {
            assert!(head(status).unwrap().is_verified, "{status}");
        }
        for status in [400, 404, 405, 501] {
            let checked = head(status).unwrap();
            assert!(!checked.is_verified, "{status}");
            assert!(checked.text.starts_with("reachable, cannot be verified"), "{}", checked.text);
        }
        for status in [500, 502, 503] {
            assert_eq!(head(status).unwrap_err().code, status.to_string());
        }
    }
}
