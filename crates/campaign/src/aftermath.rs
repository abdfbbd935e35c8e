//! What follows from the outcome of an attempt: pure.
//!
//! | outcome | recipient | others |
//! |---|---|---|
//! | sent | `sent` | |
//! | not sent, temporary | `pending` after a back-off, or `failed` after the last attempt | the breaker is told when nothing was sent |
//! | unknown | `unknown`; of an idempotent channel, tried again with the same key | |
//! | slow down | `pending`, no attempt used | the account is held |
//! | wait for this recipient | `pending`, no attempt used | the pair is held |
//! | never, refused | `failed` | |
//! | content | `pending`, no attempt used | the campaign pauses |
//! | account | `pending`, no attempt used | all campaigns of the account pause |

use std::time::Duration;

use stampede_model::Timestamp;
use stampede_model::campaign::{Channel, Outcome};
use stampede_store::AttemptEffect;

use crate::pace;

/// A provider that wants a longer pause is asked again after this time.
const LONGEST_HOLD: Duration = Duration::from_secs(24 * 60 * 60);

/// What an attempt means for others than its recipient.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Consequence {
    /// Nothing.
    Nothing,
    /// Nobody sends through the account for so long.
    HoldAccount(Duration),
    /// Nobody sends to the address through the account for so long.
    HoldPair(Duration),
    /// The campaign pauses, for this reason.
    PauseCampaign(String),
    /// All campaigns of the account pause, for this reason.
    BlockAccount(String),
    /// The rules of the automatic pause are looked at.
    CountFailure,
}

/// What the breaker of the account learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    /// The provider answered.
    Worked,
    /// It could not be reached, or hung.
    Failed,
    /// Nothing can be said.
    Unclear,
}

/// An attempt, as far as it decides what follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempted {
    /// The channel.
    pub(crate) channel: Channel,
    /// The channel drops repeated messages with the same key.
    pub(crate) is_idempotent: bool,
    /// Attempts that count, this one included.
    pub(crate) attempts: u32,
    /// Most attempts.
    pub(crate) max_attempts: u32,
    /// When it ended.
    pub(crate) now: Timestamp,
    /// From 0 until before 1, for the jitter.
    pub(crate) random: f64,
}

impl Attempted {
    /// What an outcome leads to.
    pub(crate) fn follow(&self, outcome: &Outcome) -> (AttemptEffect, Consequence) {
        let at = |pause: Duration| self.now + pause.min(LONGEST_HOLD);
        match outcome {
            Outcome::Sent { provider_id, moved_to } => {
                let (provider_id, moved_to) = (provider_id.clone(), moved_to.clone());
                (AttemptEffect::Sent { provider_id, moved_to }, Consequence::Nothing)
            }
            Outcome::NotSent(_) | Outcome::Temporary(_) => {
                (self.again(), Consequence::CountFailure)
            }
            Outcome::Unknown(_) if self.is_idempotent => (self.again(), Consequence::CountFailure),
            Outcome::Unknown(_) => (AttemptEffect::Unknown, Consequence::CountFailure),
            Outcome::SlowDown(pause, _) => {
                let pause = (*pause).min(LONGEST_HOLD);
                (AttemptEffect::Postpone(at(pause)), Consequence::HoldAccount(pause))
            }
            Outcome::WaitForRecipient(pause, _) => {
                let pause = (*pause).min(LONGEST_HOLD);
                (AttemptEffect::Postpone(at(pause)), Consequence::HoldPair(pause))
            }
            Outcome::Never(_, suppress) => {
                (AttemptEffect::Failed(*suppress), Consequence::CountFailure)
            }
            Outcome::Refused(_) => (AttemptEffect::Failed(None), Consequence::CountFailure),
            Outcome::Content(failure) => (
                AttemptEffect::Postpone(self.now),
                Consequence::PauseCampaign(told("the content is refused", failure)),
            ),
            Outcome::Account(failure) => (
                AttemptEffect::Postpone(self.now),
                Consequence::BlockAccount(told("the account is refused", failure)),
            ),
        }
    }

    /// What the outcome says about the provider.
    pub(crate) fn health(outcome: &Outcome) -> Health {
        match outcome {
            Outcome::NotSent(_) | Outcome::Unknown(_) => Health::Failed,
            Outcome::Temporary(_) | Outcome::SlowDown(..) => Health::Unclear,
            _ => Health::Worked,
        }
    }

    fn again(&self) -> AttemptEffect {
        if self.attempts >= self.max_attempts {
            return AttemptEffect::Failed(None);
        }
        let pause = pace::back_off(self.channel, self.attempts, self.random);
        AttemptEffect::Retry(self.now + pause)
    }
}

fn told(what: &str, failure: &stampede_model::campaign::Failure) -> String {
    format!("{what}: {} {}", failure.code, failure.text).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use stampede_model::campaign::{Failure, SuppressionReason};

    use super::*;

    fn attempted(channel: Channel, attempts: u32) -> Attempted {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        Attempted { channel, is_idempotent: false, attempts, max_attempts: 3, now, random: 0.0 }
    }

    fn failure() -> Failure {
        Failure::new("131026", "no such person")
    }

    #[test]
    fn every_outcome_leads_where_the_table_says() {
        let one = attempted(Channel::Webhook, 1);
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3_600));
        let sent = Outcome::Sent { provider_id: Some("7".into()), moved_to: None };
        let follow = |outcome: Outcome| one.follow(&outcome);
        assert!(matches!(follow(sent), (AttemptEffect::Sent { .. }, Consequence::Nothing)));
        let again = AttemptEffect::Retry(one.now + Duration::from_secs(30));
        for passes in [Outcome::NotSent(failure()), Outcome::Temporary(failure())] {
            assert_eq!(follow(passes), (again.clone(), Consequence::CountFailure));
        }
        let unknown = Outcome::Unknown(failure());
        assert_eq!(follow(unknown.clone()).0, AttemptEffect::Unknown);
        let idempotent = Attempted { is_idempotent: true, ..one };
        assert_eq!(idempotent.follow(&unknown).0, again, "the same key is sent again");
        assert_eq!(
            follow(Outcome::SlowDown(second, failure())),
            (AttemptEffect::Postpone(one.now + second), Consequence::HoldAccount(second))
        );
        assert_eq!(
            follow(Outcome::WaitForRecipient(hour, failure())),
            (AttemptEffect::Postpone(one.now + hour), Consequence::HoldPair(hour))
        );
        let bounce = Some(SuppressionReason::Bounce);
        assert_eq!(
            follow(Outcome::Never(failure(), bounce)),
            (AttemptEffect::Failed(bounce), Consequence::CountFailure)
        );
        assert_eq!(follow(Outcome::Refused(failure())).0, AttemptEffect::Failed(None));
        let reason = "the content is refused: 131026 no such person".to_owned();
        assert_eq!(
            follow(Outcome::Content(failure())),
            (AttemptEffect::Postpone(one.now), Consequence::PauseCampaign(reason))
        );
        assert!(matches!(follow(Outcome::Account(failure())).1, Consequence::BlockAccount(_)));
    }

    #[test]
    fn the_last_attempt_fails_and_no_pause_is_without_end() {
        let temporary = Outcome::Temporary(failure());
        assert_eq!(attempted(Channel::Sms, 3).follow(&temporary).0, AttemptEffect::Failed(None));
        let endless = Outcome::SlowDown(Duration::MAX, failure());
        assert_eq!(
            attempted(Channel::Sms, 1).follow(&endless).1,
            Consequence::HoldAccount(LONGEST_HOLD)
        );
    }
}
