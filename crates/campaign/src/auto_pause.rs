//! The rules by which a campaign pauses by itself: pure.
//!
//! Attempts that were not sent do not count: they open the breaker of the account, and an open breaker is no reason to pause.
//! Nor do attempts that the provider has only put off.

use stampede_model::campaign::AutoPause;

/// Attempts that the share of failures is taken of, and the least.
const FAILED: (usize, usize) = (100, 20);
/// Attempts that the share of bounces is taken of, and the least.
const BOUNCED: (usize, usize) = (500, 50);
/// The most attempts that the rules look at.
pub(crate) const LOOKED_AT: u32 = BOUNCED.0 as u32;

/// Why the campaign is to pause, by the words of its last attempts, newest first; `None`: it goes on.
pub(crate) fn reason_to_pause(rules: &AutoPause, newest_first: &[&str]) -> Option<String> {
    let counted: Vec<&str> = newest_first.iter().copied().filter(|word| weight(word).is_some()).collect();
    let in_a_row = counted.iter().take_while(|word| **word == "temporary").count();
    if rules.in_a_row > 0 && in_a_row >= rules.in_a_row as usize {
        return Some(format!("paused by itself: {in_a_row} temporary failures in a row"));
    }
    let last = &counted[..counted.len().min(FAILED.0)];
    let failed: usize = last.iter().filter_map(|word| weight(word)).sum();
    if rules.failed_percent < 100
        && last.len() >= FAILED.1
        && failed * 100 > rules.failed_percent as usize * last.len()
    {
        let of = last.len();
        return Some(format!("paused by itself: {failed} of the last {of} attempts failed"));
    }
    let last = &counted[..counted.len().min(BOUNCED.0)];
    let bounced = last.iter().filter(|word| **word == "never").count();
    if rules.bounced_percent < 100
        && last.len() >= BOUNCED.1
        && bounced * 100 > rules.bounced_percent as usize * last.len()
    {
        let of = last.len();
        return Some(format!("paused by itself: {bounced} of the last {of} messages came back"));
    }
    None
}

/// How many failures an attempt counts as; `None`: it does not count at all.
fn weight(word: &str) -> Option<usize> {
    match word {
        "sent" => Some(0),
        "temporary" | "never" | "unknown" => Some(1),
        "refused" => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn many<'a>(parts: &[(usize, &'a str)]) -> Vec<&'a str> {
        parts.iter().flat_map(|(count, word)| std::iter::repeat_n(*word, *count)).collect()
    }

    fn paused(parts: &[(usize, &str)]) -> bool {
        reason_to_pause(&AutoPause::default(), &many(parts)).is_some()
    }

    #[test]
    fn ten_temporary_failures_in_a_row_pause_and_nine_do_not() {
        assert!(paused(&[(10, "temporary"), (300, "sent")]));
        assert!(!paused(&[(9, "temporary"), (300, "sent")]));
        assert!(!paused(&[(9, "temporary"), (1, "sent"), (1, "temporary"), (300, "sent")]));
        assert!(paused(&[(5, "temporary"), (7, "not_sent"), (5, "temporary"), (300, "sent")]));
        assert!(!paused(&[(50, "not_sent"), (20, "slow_down")]), "the breaker's business");
    }

    #[test]
    fn more_than_a_tenth_of_the_last_hundred_pauses() {
        assert!(!paused(&[(5, "sent"), (10, "unknown"), (85, "sent")]));
        assert!(paused(&[(5, "sent"), (11, "unknown"), (84, "sent")]));
        assert!(!paused(&[(3, "sent"), (16, "unknown")]), "nineteen are too few");
        assert!(paused(&[(5, "sent"), (6, "refused"), (89, "sent")]), "refusals count twice");
        assert!(!paused(&[(100, "sent"), (100, "unknown")]), "older ones do not count");
    }

    #[test]
    fn more_than_a_twentieth_that_comes_back_pauses() {
        // A tenth of the last hundred at most, more than a twentieth of five hundred.
        let spread = many(&[(15, "sent"), (1, "never")]).repeat(31);
        assert!(reason_to_pause(&AutoPause::default(), &spread).is_some());
        let rarer = many(&[(20, "sent"), (1, "never")]).repeat(20);
        assert!(reason_to_pause(&AutoPause::default(), &rarer).is_none());
    }

    #[test]
    fn every_rule_can_be_switched_off() {
        let off = AutoPause { in_a_row: 0, failed_percent: 100, bounced_percent: 100 };
        for word in ["temporary", "never", "refused"] {
            assert_eq!(reason_to_pause(&off, &many(&[(500, word)])), None, "{word}");
        }
    }
}
