//! What follows from the outcome of an attempt: pure.
//!
//! | outcome | recipient | others |
//! |---|---|---|
//! | sent | `sent` | |
//! | not sent, temporary | `pending` after a back-off or the pause that the provider asked for, or `failed` after the last attempt | the breaker is told when nothing was sent |
//! | unknown | `unknown`; of an idempotent channel, tried again with the same key unless no attempt is left | |
//! | moved | `pending` with the new address, no attempt used; `skipped` if another recipient has that address | |
//! | slow down | `pending`, no attempt used | the account is held |
//! | wait for this recipient | `pending`, no attempt used | the pair is held |
//! | never, bounced, refused | `failed`; of a mailbox that is full again and again, the address is suppressed | |
//! | withheld | `failed`, no attempt used | |
//! | content | `pending`, no attempt used | the campaign pauses |
//! | account | `pending`, no attempt used | all campaigns of the account pause |

use std::time::Duration;

use stampede_channel::is_mailbox_full;
use stampede_model::Timestamp;
use stampede_model::campaign::{Channel, Failure, Outcome, SuppressionReason};
use stampede_store::AttemptEffect;

use crate::pace;

/// A provider that wants a longer pause is asked again after this time.
const LONGEST_HOLD: Duration = Duration::from_secs(24 * 60 * 60);

/// Attempts to send to an address that decide whether its full mailbox is given up, the present one included.
pub(crate) const FULL_OF: u32 = 5;
/// So many of them found the mailbox full.
const FULL_FROM: usize = 3;

/// Addresses that are shorter are not looked for in texts: they would be found in every code.
const SHORTEST_ADDRESS: usize = 5;

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
            // The breaker answers it, not the automatic pause.
            Outcome::NotSent(failure) => (self.again(failure), Consequence::Nothing),
            Outcome::Temporary(failure) => (self.again(failure), Consequence::CountFailure),
            // After the last attempt, nobody knows.
            Outcome::Unknown(failure) if self.is_idempotent && !self.is_last() => {
                (self.again(failure), Consequence::CountFailure)
            }
            Outcome::Unknown(_) => (AttemptEffect::Unknown, Consequence::CountFailure),
            Outcome::Moved(address, _) => {
                (AttemptEffect::Moved(address.clone()), Consequence::Nothing)
            }
            Outcome::SlowDown(pause, _) => {
                let pause = (*pause).min(LONGEST_HOLD);
                (AttemptEffect::Postpone(at(pause)), Consequence::HoldAccount(pause))
            }
            Outcome::WaitForRecipient(pause, _) => {
                let pause = (*pause).min(LONGEST_HOLD);
                (AttemptEffect::Postpone(at(pause)), Consequence::HoldPair(pause))
            }
            Outcome::Never(_, suppress) | Outcome::Bounced(_, suppress) => {
                (AttemptEffect::Failed(*suppress), Consequence::CountFailure)
            }
            Outcome::Withheld(_) => (AttemptEffect::Withheld, Consequence::Nothing),
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

    /// Whether the provider says that the mailbox is full.
    pub(crate) fn finds_mailbox_full(&self, outcome: &Outcome) -> bool {
        self.channel == Channel::Smtp
            && matches!(outcome, Outcome::Never(failure, None) if is_mailbox_full(&failure.code))
    }

    /// Whether no attempt is left.
    fn is_last(&self) -> bool {
        self.attempts >= self.max_attempts
    }

    fn again(&self, failure: &Failure) -> AttemptEffect {
        if self.is_last() {
            return AttemptEffect::Failed(None);
        }
        let usual = || pace::back_off(self.channel, self.attempts, self.random);
        AttemptEffect::Retry(self.now + failure.after.unwrap_or_else(usual).min(LONGEST_HOLD))
    }
}

/// What becomes of the recipient of a full mailbox, by the codes of the attempts before to send to its address, newest first.
pub(crate) fn full_mailbox<'a>(before: impl Iterator<Item = Option<&'a str>>) -> AttemptEffect {
    let before = before.take(FULL_OF as usize - 1);
    let full = 1 + before.filter(|code| code.is_some_and(is_mailbox_full)).count();
    AttemptEffect::Failed((full >= FULL_FROM).then_some(SuppressionReason::Bounce))
}

/// The outcome of a message that was not made: no provider was called, so it says nothing about addresses and providers.
pub(crate) fn not_made(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Never(failure, _) => Outcome::Withheld(failure),
        other => other,
    }
}

/// A reason that people other than the campaign's owner read, without the recipient's address, which a provider may have said back.
pub(crate) fn without_address(reason: &str, address: &str) -> String {
    let digits = address.trim_start_matches('+');
    match digits.len() {
        ..SHORTEST_ADDRESS => reason.to_owned(),
        _ => reason.replace(address, "…").replace(digits, "…"),
    }
}

fn told(what: &str, failure: &Failure) -> String {
    format!("{what}: {} {}", failure.code, failure.text).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
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
        assert_eq!(follow(Outcome::NotSent(failure())), (again.clone(), Consequence::Nothing));
        assert_eq!(
            follow(Outcome::Temporary(failure())),
            (again.clone(), Consequence::CountFailure)
        );
        let unknown = Outcome::Unknown(failure());
        assert_eq!(follow(unknown.clone()).0, AttemptEffect::Unknown);
        let idempotent = Attempted { is_idempotent: true, ..one };
        assert_eq!(idempotent.follow(&unknown).0, again, "the same key is sent again");
        let last = Attempted { attempts: 3, ..idempotent };
        let nobody_knows = (AttemptEffect::Unknown, Consequence::CountFailure);
        assert_eq!(last.follow(&unknown), nobody_knows, "it may have arrived");
        assert_eq!(
            follow(Outcome::Moved("-100200".to_owned(), failure())),
            (AttemptEffect::Moved("-100200".to_owned()), Consequence::Nothing)
        );
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
        assert_eq!(
            follow(Outcome::Bounced(failure(), bounce)),
            (AttemptEffect::Failed(bounce), Consequence::CountFailure)
        );
        assert_eq!(
            follow(Outcome::Withheld(failure())),
            (AttemptEffect::Withheld, Consequence::Nothing)
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
    fn the_breaker_learns_of_each_outcome_what_this_table_says() {
        let (second, sent) =
            (Duration::from_secs(1), Outcome::Sent { provider_id: None, moved_to: None });
        for (outcome, wanted) in [
            (sent, Health::Worked),
            (Outcome::NotSent(failure()), Health::Failed),
            (Outcome::Unknown(failure()), Health::Failed),
            (Outcome::Temporary(failure()), Health::Unclear),
            (Outcome::SlowDown(second, failure()), Health::Unclear),
            // Whoever refuses answers.
            (Outcome::WaitForRecipient(second, failure()), Health::Worked),
            (Outcome::Never(failure(), None), Health::Worked),
            (Outcome::Bounced(failure(), None), Health::Worked),
            (Outcome::Refused(failure()), Health::Worked),
            (Outcome::Withheld(failure()), Health::Worked),
            (Outcome::Content(failure()), Health::Worked),
            (Outcome::Account(failure()), Health::Worked),
        ] {
            assert_eq!(Attempted::health(&outcome), wanted, "{outcome:?}");
        }
    }

    #[test]
    fn a_message_that_was_not_made_says_nothing_about_its_address() {
        let void = || Failure::new("ticket_void", "the ticket is void");
        assert_eq!(not_made(Outcome::Never(void(), None)), Outcome::Withheld(void()));
        let template = Outcome::Content(Failure::new("template", "line 1"));
        assert_eq!(not_made(template.clone()), template, "all others would fail, too");
    }

    #[test]
    fn a_reason_is_told_without_the_address() {
        for (reason, address, wanted) in [
            ("550 <ann@example.com>: no", "ann@example.com", "550 <…>: no"),
            ("131031 491701234567 is locked", "+491701234567", "131031 … is locked"),
            ("400 to +491701234567", "+491701234567", "400 to …"),
            ("400 chat 41", "41", "400 chat 41"),
        ] {
            assert_eq!(without_address(reason, address), wanted, "{reason}");
        }
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

    #[test]
    fn a_pause_that_the_provider_asks_for_goes_before_the_usual_one() {
        let mail = attempted(Channel::Smtp, 1);
        let asked = |pause| mail.follow(&Outcome::Temporary(failure().after(pause))).0;
        let greylisted = Duration::from_secs(310);
        assert_eq!(asked(greylisted), AttemptEffect::Retry(mail.now + greylisted));
        assert_eq!(asked(Duration::MAX), AttemptEffect::Retry(mail.now + LONGEST_HOLD));
        let usual = mail.follow(&Outcome::Temporary(failure())).0;
        assert_eq!(usual, AttemptEffect::Retry(mail.now + Duration::from_secs(300)));
        let last =
            attempted(Channel::Smtp, 3).follow(&Outcome::Temporary(failure().after(greylisted)));
        assert_eq!(last.0, AttemptEffect::Failed(None));
    }

    #[test]
    fn a_mailbox_that_is_full_three_times_of_five_is_given_up() {
        let full = Outcome::Never(Failure::new("552 5.2.2", "over quota"), None);
        let mail = attempted(Channel::Smtp, 1);
        assert!(mail.finds_mailbox_full(&full));
        assert!(!mail.finds_mailbox_full(&Outcome::Never(failure(), None)));
        assert!(!attempted(Channel::Sms, 1).finds_mailbox_full(&full), "552 is a code of mail");
        let bounce = Some(SuppressionReason::Bounce);
        for (before, wanted) in [
            (vec![], None),
            (vec!["552"], None),
            (vec!["552", "550 5.2.2"], bounce),
            (vec!["", "552", "", "552"], bounce),
            (vec!["", "552", "451 4.7.1", ""], None),
            (vec!["", "", "", "552", "552"], None),
        ] {
            let codes = before.iter().map(|code| Some(*code).filter(|code| !code.is_empty()));
            assert_eq!(full_mailbox(codes), AttemptEffect::Failed(wanted), "{before:?}");
        }
    }
}
