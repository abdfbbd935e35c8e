//! The codes of the Cloud API, and what follows from each.

use std::time::{Duration, Instant};

use stampede_model::RecipientId;
use stampede_model::campaign::{Failure, Outcome, SuppressionReason};

use crate::holds::{Holds, Waits};
use crate::message::Message;

/// The code of a recipient who cannot get marketing now: only a day later it may be tried again.
const NOT_NOW: &str = "not_now";

/// The pauses that an account and its recipients were asked for.
#[derive(Debug, Default)]
pub(crate) struct State {
    seconds: Holds,
    minutes: Holds,
    waits: Waits,
}

impl State {
    pub(super) fn worked(&self, recipient: RecipientId, now: Instant) {
        self.seconds.worked(now);
        self.minutes.worked(now);
        self.waits.forget(recipient);
    }
}

/// What follows from a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Means {
    /// 1 s × 2ⁿ for all.
    SlowDownSeconds,
    /// 1 min × 2ⁿ for all, at most an hour.
    SlowDownMinutes,
    /// A minute for all.
    SlowDownMinute,
    /// 4ⁿ s for this recipient.
    Wait,
    Temporary,
    Never,
    /// The number is not on WhatsApp, or cannot be reached there.
    Bounced,
    Stop,
    NotNow,
    Content,
    Account,
    /// Not in the table.
    Other,
}

/// The table.
pub(super) fn means(status: u16, code: i64) -> Means {
    match code {
        130_429 => Means::SlowDownSeconds,
        4 | 80_007 => Means::SlowDownMinutes,
        131_057 => Means::SlowDownMinute,
        131_056 => Means::Wait,
        1 | 2 if status >= 500 => Means::Temporary,
        131_000 | 131_016 | 135_000 => Means::Temporary,
        131_026 => Means::Bounced,
        131_021 | 131_030 | 130_472 | 131_047 | 131_053 | 130_497 => Means::Never,
        131_050 => Means::Stop,
        131_049 => Means::NotNow,
        33 | 100 | 131_008 | 131_009 | 131_051 | 131_063 | 132_000 | 132_001 | 132_005
        | 132_007 | 132_008 | 132_012 | 132_015 | 132_016 | 132_068 | 132_069 => Means::Content,
        0
        | 3
        | 10
        | 190
        | 200..=299
        | 368
        | 131_005
        | 131_031
        | 131_042
        | 131_045
        | 131_048
        | 131_064
        | 133_010 => Means::Account,
        _ => Means::Other,
    }
}

/// The outcome of an error.
pub(super) fn outcome(
    status: u16,
    code: i64,
    failure: Failure,
    message: &Message,
    state: &State,
    now: Instant,
) -> Outcome {
    let (second, minute, hour) =
        (Duration::from_secs(1), Duration::from_secs(60), Duration::from_secs(3_600));
    match means(status, code) {
        Means::SlowDownSeconds => Outcome::SlowDown(state.seconds.next(second, hour, now), failure),
        Means::SlowDownMinutes => Outcome::SlowDown(state.minutes.next(minute, hour, now), failure),
        Means::SlowDownMinute => Outcome::SlowDown(minute, failure),
        Means::Wait => Outcome::WaitForRecipient(state.waits.next(message.recipient), failure),
        Means::Temporary => Outcome::Temporary(failure),
        Means::Never | Means::Other => Outcome::Never(failure, None),
        Means::Bounced => Outcome::Bounced(failure, None),
        Means::Stop => Outcome::Never(failure, Some(SuppressionReason::Stop)),
        Means::NotNow => Outcome::Never(not_now(failure), None),
        Means::Content => Outcome::Content(failure),
        Means::Account => Outcome::Account(failure),
    }
}

/// The failure of a recipient who cannot get marketing now.
pub(super) fn not_now(failure: Failure) -> Failure {
    Failure::new(NOT_NOW, &format!("{}: {}", failure.code, failure.text))
}
