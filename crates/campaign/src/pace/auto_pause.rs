//! Whether a campaign pauses by itself. It never resumes by itself.
//!
//! The caller gives the outcomes of the last attempts, newest first, as the words of [`Outcome::as_str`]. Attempts are sorted:
//!
//! | outcome | counts as |
//! |---|---|
//! | `sent` | success |
//! | `temporary`, `unknown`, `never` | failure |
//! | `bounced` | failure, hard bounce |
//! | `refused` | failure, twice |
//! | `failed_later`, `bounced_later` | a receipt: an attempt that counted as a success is a failure, or a failure and a hard bounce |
//! | `withheld` | nothing: the message could not be made, and no provider was called |
//! | `not_sent`, `moved`, `slow_down`, `wait_for_recipient` | nothing: the breaker and the limits answer these, and work waits |
//! | `content`, `account`, all other words | nothing: they pause at once |
//!
//! [`Outcome::as_str`]: stampede_model::campaign::Outcome::as_str

use std::fmt;

use stampede_model::campaign::AutoPause;
use stampede_store::{BOUNCED_LATER, FAILED_LATER};

/// How many of the last outcomes [`decide`] looks at: [`BOUNCES_OF`] attempts, each with a receipt at most.
pub const LOOKED_AT: u32 = 1_000;
/// Attempts whose share of failures counts.
const SHARE_OF: usize = 100;
/// Fewest attempts that have a share of failures.
const SHARE_FROM: usize = 20;
/// Attempts whose share of hard bounces counts.
const BOUNCES_OF: usize = 500;
/// Fewest attempts that have a share of hard bounces.
const BOUNCES_FROM: usize = 50;

/// Why a campaign pauses by itself; it displays as a sentence for its `statusReason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseReason {
    /// So many temporary failures came in a row.
    InARow(u32),
    /// Too large a share of the last attempts failed.
    Failed {
        /// Failures; refused messages count twice.
        failed: usize,
        /// The attempts that were looked at.
        of: usize,
    },
    /// Too large a share of the last attempts were hard bounces.
    Bounced {
        /// Hard bounces.
        bounced: usize,
        /// The attempts that were looked at.
        of: usize,
    },
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InARow(count) => write!(f, "{count} temporary failures in a row"),
            Self::Failed { failed, of } => write!(
                f,
                "{failed} failures among the last {of} attempts (refused messages count twice)"
            ),
            Self::Bounced { bounced, of } => {
                write!(f, "{bounced} addresses that do not exist among the last {of} attempts")
            }
        }
    }
}

/// Decides by the outcomes of the last attempts, newest first; `None`: the campaign goes on.
pub fn decide<W: AsRef<str>>(
    newest_first: impl IntoIterator<Item = W>,
    rules: &AutoPause,
) -> Option<PauseReason> {
    let mut seen = Seen { is_unbroken: true, ..Seen::default() };
    for word in newest_first {
        seen.add(word.as_ref());
        if seen.attempts == BOUNCES_OF {
            break;
        }
    }
    let is_above =
        |part: usize, of: usize, percent: u32| percent < 100 && part * 100 > percent as usize * of;
    let recent = seen.attempts.min(SHARE_OF);
    if rules.in_a_row > 0 && seen.in_a_row >= rules.in_a_row {
        Some(PauseReason::InARow(seen.in_a_row))
    } else if recent >= SHARE_FROM && is_above(seen.failed, recent, rules.failed_percent) {
        Some(PauseReason::Failed { failed: seen.failed, of: recent })
    } else if seen.attempts >= BOUNCES_FROM
        && is_above(seen.bounced, seen.attempts, rules.bounced_percent)
    {
        Some(PauseReason::Bounced { bounced: seen.bounced, of: seen.attempts })
    } else {
        None
    }
}

/// What the last attempts add up to.
#[derive(Default)]
struct Seen {
    attempts: usize,
    /// Failures among the last [`SHARE_OF`].
    failed: usize,
    bounced: usize,
    in_a_row: u32,
    /// Every attempt so far was a temporary failure.
    is_unbroken: bool,
}

impl Seen {
    fn add(&mut self, word: &str) {
        let failures = match word {
            "sent" => 0,
            "temporary" | "unknown" | "never" | "bounced" | FAILED_LATER | BOUNCED_LATER => 1,
            "refused" => 2,
            _ => return,
        };
        if self.attempts < SHARE_OF {
            self.failed += failures;
        }
        self.bounced += usize::from(matches!(word, "bounced" | BOUNCED_LATER));
        if matches!(word, FAILED_LATER | BOUNCED_LATER) {
            // Its attempt is among the others.
            return;
        }
        self.attempts += 1;
        self.is_unbroken &= word == "temporary";
        self.in_a_row += u32::from(self.is_unbroken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The outcomes of runs such as `3 temporary, 5 sent`, newest first.
    fn outcomes(text: &str) -> Vec<String> {
        let run = |run: &str| {
            let (count, word) = run.trim().split_once(' ').unwrap();
            vec![word.to_owned(); count.parse().unwrap()]
        };
        text.split(',').flat_map(run).collect()
    }

    fn reason(text: &str) -> Option<PauseReason> {
        decide(outcomes(text), &AutoPause::default())
    }

    #[test]
    fn ten_temporary_failures_in_a_row_pause() {
        assert_eq!(reason("9 temporary"), None);
        assert_eq!(reason("10 temporary"), Some(PauseReason::InARow(10)));
        assert_eq!(reason("10 temporary, 1000 sent"), Some(PauseReason::InARow(10)));
        assert_eq!(reason("1 sent, 9 temporary, 90 sent"), None);
        assert_eq!(reason("9 temporary, 1 sent, 9 temporary"), None);
        assert_eq!(reason("5 temporary, 3 not_sent, 5 temporary"), Some(PauseReason::InARow(10)));
        assert_eq!(reason("5 temporary, 1 never, 5 temporary"), None, "fewer than 20 attempts");
    }

    #[test]
    fn more_than_a_tenth_of_the_last_hundred_pauses_from_twenty_attempts_on() {
        assert_eq!(reason("9 unknown, 10 sent"), None);
        assert_eq!(reason("2 unknown, 18 sent"), None, "exactly a tenth");
        let failed = |failed, of| Some(PauseReason::Failed { failed, of });
        assert_eq!(reason("3 unknown, 17 sent"), failed(3, 20));
        assert_eq!(reason("10 unknown, 500 sent"), None);
        assert_eq!(reason("11 unknown, 500 sent"), failed(11, 100));
        assert_eq!(reason("100 sent, 400 unknown"), None, "older ones are forgotten");
    }

    #[test]
    fn refused_messages_count_twice() {
        let failed = |failed, of| Some(PauseReason::Failed { failed, of });
        assert_eq!(reason("5 refused, 95 sent"), None);
        assert_eq!(reason("6 refused, 94 sent"), failed(12, 100));
        assert_eq!(reason("100 refused"), failed(200, 100));
    }

    #[test]
    fn hard_bounces_above_a_twentieth_of_the_last_five_hundred_pause() {
        let bounced = |bounced, of| Some(PauseReason::Bounced { bounced, of });
        assert_eq!(reason("2 bounced, 47 sent"), None);
        assert_eq!(reason("3 bounced, 46 sent"), None, "fewer than 50");
        assert_eq!(reason("3 bounced, 47 sent"), bounced(3, 50));
        assert_eq!(reason("100 sent, 25 bounced, 375 sent"), None, "exactly a twentieth");
        assert_eq!(reason("100 sent, 26 bounced, 374 sent"), bounced(26, 500));
        assert_eq!(reason("500 sent, 400 bounced"), None);
    }

    #[test]
    fn only_addresses_that_do_not_exist_are_hard_bounces() {
        let failed = |failed, of| Some(PauseReason::Failed { failed, of });
        assert_eq!(reason("100 sent, 400 never"), None, "blocked, full, not now: no bounces");
        assert_eq!(reason("11 never, 89 sent"), failed(11, 100), "but failures");
        assert_eq!(reason("11 bounced, 89 sent"), failed(11, 100));
    }

    #[test]
    fn messages_that_were_not_made_count_as_nothing() {
        assert_eq!(reason("500 withheld"), None);
        assert_eq!(reason("2 unknown, 50 withheld, 17 sent"), None, "19 attempts");
        assert_eq!(
            reason("2 bounced, 400 withheld, 47 sent, 1 bounced"),
            Some(PauseReason::Bounced { bounced: 3, of: 50 })
        );
        assert_eq!(reason("5 temporary, 3 withheld, 5 temporary"), Some(PauseReason::InARow(10)));
    }

    #[test]
    fn receipts_make_failures_and_bounces_of_attempts_that_were_successes() {
        let failed = |failed, of| Some(PauseReason::Failed { failed, of });
        let bounced = |bounced, of| Some(PauseReason::Bounced { bounced, of });
        assert_eq!(reason("10 failed_later, 100 sent"), None, "exactly a tenth");
        assert_eq!(reason("11 failed_later, 100 sent"), failed(11, 100));
        assert_eq!(reason("2 bounced_later, 50 sent"), None);
        assert_eq!(reason("3 bounced_later, 50 sent"), bounced(3, 50));
        assert_eq!(reason("3 bounced_later, 49 sent"), None, "receipts are no attempts");
        assert_eq!(reason("1 bounced_later, 1 bounced, 49 sent, 1 bounced_later"), bounced(3, 50));
        assert_eq!(reason("100 sent, 26 bounced_later, 400 sent"), bounced(26, 500));
        assert_eq!(
            reason("9 temporary, 1 failed_later, 1 temporary"),
            Some(PauseReason::InARow(10))
        );
    }

    #[test]
    fn what_the_breaker_and_the_limits_answer_pauses_nothing() {
        assert_eq!(reason("500 not_sent"), None);
        assert_eq!(reason("300 slow_down, 200 wait_for_recipient"), None);
        assert_eq!(decide(Vec::<String>::new(), &AutoPause::default()), None);
    }

    #[test]
    fn every_rule_can_be_turned_off_and_set() {
        let off = AutoPause { in_a_row: 0, failed_percent: 100, bounced_percent: 100 };
        for all in ["500 temporary", "500 refused", "500 bounced", "500 bounced_later"] {
            assert_eq!(decide(outcomes(all), &off), None, "{all}");
        }
        let strict = AutoPause { in_a_row: 1, failed_percent: 0, bounced_percent: 0 };
        assert_eq!(decide(["temporary"], &strict), Some(PauseReason::InARow(1)));
        let one = decide(outcomes("1 sent, 1 unknown, 18 sent"), &strict);
        assert_eq!(one, Some(PauseReason::Failed { failed: 1, of: 20 }));
        let told = PauseReason::Failed { failed: 12, of: 100 }.to_string();
        assert!(told.starts_with("12 failures among the last 100 attempts"), "{told}");
    }
}
