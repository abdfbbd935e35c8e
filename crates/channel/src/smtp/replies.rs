//! Which outcome follows from what a mail server said, or did not say: pure.

use std::time::Duration;

use stampede_model::campaign::{Failure, Outcome, SuppressionReason};

use super::session::{Step, Trouble, What};
use crate::answers::{self, LONGEST_PAUSE, PAUSE};

/// Added to a pause that a server names: its clock and ours differ.
const MORE: Duration = Duration::from_secs(10);

/// The outcome of a step that failed.
pub(super) fn outcome(trouble: &Trouble) -> Outcome {
    let step = trouble.step;
    match &trouble.what {
        What::NotConnected(error) => answers::unanswered(error),
        What::Reply { code, text } => reply(step, *code, text),
        What::Broken(reason) if step == Step::Dot => {
            Outcome::Unknown(Failure::new("no_answer", &format!("after the final dot: {reason}")))
        }
        What::Broken(reason) => Outcome::NotSent(Failure::new("connection", reason)),
        What::Impossible(reason) => Outcome::Account(Failure::new("settings", reason)),
        What::Unfit(reason) => Outcome::Never(Failure::new("invalid_address", reason), None),
    }
}

/// What a reply means. Replies before `RCPT` are about the account, later ones about the recipient or the mail.
fn reply(step: Step, code: u16, text: &str) -> Outcome {
    let enhanced = enhanced(text);
    let told = match &enhanced {
        Some(enhanced) => format!("{code} {enhanced}"),
        None => code.to_string(),
    };
    let failure = Failure::new(told, text);
    let enhanced = enhanced.unwrap_or_default();
    let is = |wanted: &str| enhanced == wanted;
    let within = |subject: &str| enhanced.starts_with(subject);
    match code {
        // A reply that fits no step, such as 250 to DATA: it may belong to another command.
        ..400 if step == Step::Dot => Outcome::Unknown(failure),
        ..400 => Outcome::NotSent(failure),
        421 => Outcome::SlowDown(pause(text).unwrap_or(PAUSE), failure),
        400..500 if step < Step::Sender && within("4.7.") => {
            Outcome::SlowDown(pause(text).unwrap_or(PAUSE), failure)
        }
        400..500 => Outcome::Temporary(match pause(text) {
            Some(pause) => failure.after(pause),
            None => failure,
        }),
        530 | 534 | 535 => Outcome::Account(failure),
        _ if is("5.7.26") || step <= Step::Sender => Outcome::Account(failure),
        550 | 551 | 553 if within("5.1.") || is("5.2.1") => {
            Outcome::Bounced(failure, Some(SuppressionReason::Bounce))
        }
        // The mailbox is full: whether the address is given up depends on its last messages.
        552 => Outcome::Never(failure, None),
        _ if is("5.2.2") => Outcome::Never(failure, None),
        554 => Outcome::Refused(failure),
        _ if within("5.7.") => Outcome::Refused(failure),
        _ => Outcome::Never(failure, None),
    }
}

/// Whether the code of a failure means that a mailbox is full. Three of the last five: the address bounces.
pub fn is_mailbox_full(code: &str) -> bool {
    code.split(' ').any(|part| part == "552" || part == "5.2.2")
}

/// The enhanced code at the beginning of a reply's text (RFC 2034).
fn enhanced(text: &str) -> Option<String> {
    let first = text.split_whitespace().next()?;
    let parts: Vec<&str> = first.split('.').collect();
    let is_number = |part: &&str| {
        (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    (parts.len() == 3 && matches!(parts[0], "4" | "5") && parts.iter().all(is_number))
        .then(|| first.to_owned())
}

/// The pause that a reply names: "try again in 300 seconds", "in 5 minutes".
fn pause(text: &str) -> Option<Duration> {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .collect();
    words.windows(3).find_map(|three| {
        let [before, number, unit] = three else { return None };
        if before != "in" {
            return None;
        }
        let number: u64 = number.parse().ok()?;
        let seconds = match unit.as_str() {
            "s" | "sec" | "secs" | "second" | "seconds" => number,
            "m" | "min" | "mins" | "minute" | "minutes" => number.saturating_mul(60),
            "h" | "hour" | "hours" => number.saturating_mul(3_600),
            _ => return None,
        };
        Some((Duration::from_secs(seconds).saturating_add(MORE)).min(LONGEST_PAUSE))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(step: Step, code: u16, text: &str) -> String {
        let trouble = Trouble { step, what: What::Reply { code, text: text.to_owned() } };
        match outcome(&trouble) {
            Outcome::Bounced(_, Some(reason)) => format!("bounced {}", reason.as_str()),
            Outcome::SlowDown(pause, _) => format!("slow_down {}", pause.as_secs()),
            Outcome::Temporary(Failure { after: Some(pause), .. }) => {
                format!("temporary {}", pause.as_secs())
            }
            outcome => outcome.as_str().to_owned(),
        }
    }

    #[test]
    fn every_reply_has_its_outcome() {
        use Step::{Data, Dot, Greeting, Login, Recipient, Sender};
        for (step, code, text, wanted) in [
            (Greeting, 421, "too busy", "slow_down 60"),
            (Greeting, 421, "4.3.2 try again in 5 minutes", "slow_down 310"),
            (Recipient, 421, "4.7.0 closing", "slow_down 60"),
            (Greeting, 450, "4.7.1 too many connections", "slow_down 60"),
            (Login, 454, "4.7.0 Temporary authentication failure", "slow_down 60"),
            (Greeting, 450, "try later", "temporary"),
            (Recipient, 450, "4.7.1 Greylisted", "temporary"),
            (Recipient, 451, "Greylisted, please try again in 300 seconds", "temporary 310"),
            (Dot, 452, "4.2.2 Over quota", "temporary"),
            (Recipient, 450, "4.2.0 try again in 5 minutes.", "temporary 310"),
            (Recipient, 450, "in 10 apples", "temporary"),
            (Recipient, 450, "in 99999999999999999999 minutes", "temporary"),
            (Recipient, 450, "in 9999999 hours", "temporary 86400"),
            (Recipient, 550, "5.1.1 No such user", "bounced bounce"),
            (Recipient, 551, "5.1.6 moved", "bounced bounce"),
            (Recipient, 553, "5.1.2 no such domain", "bounced bounce"),
            (Dot, 550, "5.2.1 disabled", "bounced bounce"),
            (Data, 550, "5.1.10 null MX", "bounced bounce"),
            (Recipient, 550, "No such user", "never"),
            (Recipient, 501, "5.1.3 syntax", "never"),
            (Recipient, 552, "mailbox full", "never"),
            (Dot, 550, "5.2.2 over quota", "never"),
            (Dot, 554, "5.7.1 spam", "refused"),
            (Dot, 554, "Transaction failed", "refused"),
            (Recipient, 550, "5.7.1 policy", "refused"),
            (Dot, 550, "5.7.26 unauthenticated mail", "account"),
            (Recipient, 530, "5.7.0 Must issue STARTTLS", "account"),
            (Login, 534, "5.7.9 mechanism too weak", "account"),
            (Login, 535, "5.7.8 wrong password", "account"),
            (Sender, 550, "5.1.8 sender rejected", "account"),
            (Sender, 553, "5.7.1 not owned by user", "account"),
            (Greeting, 554, "5.7.1 your address is blocked", "account"),
            (Recipient, 354, "out of step", "not_sent"),
            (Data, 250, "out of step", "not_sent"),
            (Dot, 354, "out of step", "unknown"),
        ] {
            assert_eq!(word(step, code, text), wanted, "{step:?} {code} {text}");
        }
    }

    #[test]
    fn a_connection_that_breaks_is_not_sent_before_the_dot_and_unknown_after_it() {
        use Step::{Connect, Content, Data, Dot, Greeting, Login, Recipient, Sender};
        for step in [Connect, Greeting, Login, Sender, Recipient, Data, Content] {
            let trouble = Trouble { step, what: What::Broken("reset".to_owned()) };
            assert_eq!(outcome(&trouble).as_str(), "not_sent", "{step:?}");
            assert!(!trouble.leaves_connection());
        }
        let trouble = Trouble { step: Dot, what: What::Broken("reset".to_owned()) };
        assert_eq!(outcome(&trouble).as_str(), "unknown");
        let impossible = Trouble { step: Login, what: What::Impossible("no AUTH".to_owned()) };
        assert_eq!(outcome(&impossible).as_str(), "account");
    }

    #[test]
    fn a_connection_is_used_again_only_after_a_refusal() {
        for (code, is_used) in [(250, false), (354, false), (421, false), (450, true), (550, true)]
        {
            let what = What::Reply { code, text: String::new() };
            assert_eq!(Trouble { step: Step::Dot, what }.leaves_connection(), is_used, "{code}");
        }
    }

    #[test]
    fn a_code_is_told_with_its_enhanced_code() {
        let code = |text: &str| {
            let what = What::Reply { code: 550, text: text.to_owned() };
            outcome(&Trouble { step: Step::Recipient, what }).failure().unwrap().code.clone()
        };
        assert_eq!(
            (code("5.1.1 no"), code("no"), code("1.2.3.4 no"), code("5.1 no")),
            ("550 5.1.1".to_owned(), "550".to_owned(), "550".to_owned(), "550".to_owned())
        );
        assert!(is_mailbox_full("552") && is_mailbox_full("550 5.2.2"));
        assert!(!is_mailbox_full("550 5.1.1") && !is_mailbox_full("5522"));
    }
}
