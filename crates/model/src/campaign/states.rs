//! The states of campaigns and recipients, and every change between them.
//!
//! ```text
//! campaign   draft ─▶ scheduled ─▶ running ⇄ paused      running ─▶ completed      any but completed ─▶ cancelled
//! recipient  pending ─▶ queued ─▶ sending ─▶ sent ─▶ delivered ─▶ read
//!               ▲          │         ├─▶ pending (again at nextAt)   ├─▶ failed        sending ─▶ unknown ─▶ sent … or pending, by people
//!               └──────────┘ pause   └─▶ unknown                     skipped (opted_out, duplicate, invalid, expired, cancelled)
//! ```
//!
//! `unknown` means: the message may have arrived. Nobody sends it again but a person who says so.
//!
//! The store says the same in SQL; its suite applies random changes to every backend and to these functions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares an enum with a word for each variant, the same on the wire and in the database.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[schemars(inline)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Their words, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word on the wire and in the database. It never changes.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Reads [`Self::as_str`] back.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }
    };
}
pub(crate) use words;

words!(
    /// The state of a campaign.
    CampaignState {
        /// It is being written: recipients and content can be changed.
        Draft = "draft",
        /// It starts by itself at its time.
        Scheduled = "scheduled",
        /// Its messages are sent.
        Running = "running",
        /// Nothing is sent until a person resumes it.
        Paused = "paused",
        /// No recipient is pending, queued or being sent to.
        Completed = "completed",
        /// It was ended before its time.
        Cancelled = "cancelled",
    }
);

impl CampaignState {
    /// Whether recipients can be added.
    pub fn takes_recipients(self) -> bool {
        matches!(self, Self::Draft | Self::Paused | Self::Scheduled)
    }
}

/// What happens to a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CampaignChange {
    /// A person starts it, for a later time.
    Schedule,
    /// A person starts or resumes it, or its time has come.
    Start,
    /// A person or a rule pauses it.
    Pause,
    /// No recipient is pending, queued or being sent to any more.
    Complete,
    /// A person ends it.
    Cancel,
    /// A completed campaign has recipients to send to again: failed ones are retried, or unknown ones sent again.
    Reopen,
}

impl CampaignChange {
    /// All changes.
    pub const ALL: [Self; 6] =
        [Self::Schedule, Self::Start, Self::Pause, Self::Complete, Self::Cancel, Self::Reopen];
}

/// The state after a change; `None`: the change is refused in this state. A change that changes nothing is no mistake: a
/// running campaign may be started, a paused one paused.
pub fn next_campaign_state(state: CampaignState, change: CampaignChange) -> Option<CampaignState> {
    use CampaignChange as C;
    use CampaignState as S;
    match (state, change) {
        (S::Draft | S::Scheduled, C::Schedule) => Some(S::Scheduled),
        (S::Draft | S::Scheduled | S::Running | S::Paused, C::Start) => Some(S::Running),
        // A campaign that waits for its time goes back to be changed.
        (S::Scheduled, C::Pause) => Some(S::Draft),
        (S::Running | S::Paused, C::Pause) => Some(S::Paused),
        (S::Running | S::Completed, C::Complete) => Some(S::Completed),
        (S::Draft | S::Scheduled | S::Running | S::Paused | S::Cancelled, C::Cancel) => {
            Some(S::Cancelled)
        }
        (S::Completed, C::Reopen) => Some(S::Paused),
        (S::Running | S::Paused, C::Reopen) => Some(state),
        _ => None,
    }
}

words!(
    /// The state of a recipient in the ledger.
    RecipientState {
        /// Nothing was sent, or it is to be tried again.
        Pending = "pending",
        /// Its job was added to the queue.
        Queued = "queued",
        /// A run has it: the next step is the call of the provider.
        Sending = "sending",
        /// The provider accepted the message.
        Sent = "sent",
        /// The provider says that it arrived.
        Delivered = "delivered",
        /// The provider says that it was read.
        Read = "read",
        /// It is not sent: the provider refused it, or no attempt is left.
        Failed = "failed",
        /// The message may have arrived. Only a receipt or a person settles it.
        Unknown = "unknown",
        /// It was never to be sent; the reason says why.
        Skipped = "skipped",
    }
);

impl RecipientState {
    /// Whether a campaign with such a recipient is not completed yet.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Queued | Self::Sending)
    }
}

words!(
    /// Why nothing is sent to a recipient.
    SkipReason {
        /// The address is suppressed.
        OptedOut = "opted_out",
        /// An earlier recipient of the campaign has the same address.
        Duplicate = "duplicate",
        /// The address is none.
        Invalid = "invalid",
        /// The end of the campaign's time came first.
        Expired = "expired",
        /// The campaign was cancelled first.
        Cancelled = "cancelled",
    }
);

/// What happens to a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipientChange {
    /// The feeder adds a job.
    Queue,
    /// The job is taken back: the campaign is paused, or the job is gone.
    Unqueue,
    /// A run is about to call the provider.
    Claim,
    /// The run that claimed it did not call the provider after all.
    Release,
    /// The provider accepted it.
    Accept,
    /// It is to be tried again.
    Retry,
    /// It is refused, or no attempt is left.
    Fail,
    /// The call was written and not answered; or a later run finds it claimed by an earlier one.
    Lose,
    /// A receipt: it arrived.
    Deliver,
    /// A receipt: it was read.
    Read,
    /// A receipt: it did not arrive.
    Bounce,
    /// It is not to be sent.
    Skip,
    /// A person sends it again.
    Resend,
    /// A person says that it arrived.
    SettleSent,
    /// A person says that it did not arrive.
    SettleFailed,
}

impl RecipientChange {
    /// All changes.
    pub const ALL: [Self; 15] = [
        Self::Queue,
        Self::Unqueue,
        Self::Claim,
        Self::Release,
        Self::Accept,
        Self::Retry,
        Self::Fail,
        Self::Lose,
        Self::Deliver,
        Self::Read,
        Self::Bounce,
        Self::Skip,
        Self::Resend,
        Self::SettleSent,
        Self::SettleFailed,
    ];
}

/// The state after a change; `None`: the change does nothing in this state.
///
/// Receipts come in any order and only move a recipient up: sent < failed < delivered < read. A receipt that proves that an earlier
/// attempt arrived ends the wait for the next attempt.
pub fn next_recipient_state(
    state: RecipientState,
    change: RecipientChange,
) -> Option<RecipientState> {
    use RecipientChange as C;
    use RecipientState as S;
    match (state, change) {
        (S::Pending, C::Queue) => Some(S::Queued),
        (S::Queued, C::Unqueue) => Some(S::Pending),
        (S::Queued, C::Claim) => Some(S::Sending),
        (S::Sending, C::Release) => Some(S::Pending),
        // The run that claimed it may still learn how it ended after another took it for lost.
        (S::Sending | S::Unknown, C::Accept) => Some(S::Sent),
        (S::Sending | S::Unknown, C::Fail) => Some(S::Failed),
        (S::Sending | S::Unknown, C::Retry) => Some(S::Pending),
        (S::Sending, C::Lose) => Some(S::Unknown),
        // A receipt about an earlier attempt: the message has arrived, and is not sent again. The store applies it only to recipients
        // with an earlier attempt.
        (S::Pending | S::Queued, C::Accept) => Some(S::Sent),
        (S::Pending | S::Queued, C::Deliver) => Some(S::Delivered),
        (S::Pending | S::Queued, C::Read) => Some(S::Read),
        // A receipt may be faster than the record of the answer.
        (S::Sending | S::Unknown | S::Sent | S::Failed, C::Deliver) => Some(S::Delivered),
        (S::Sending | S::Unknown | S::Sent | S::Failed | S::Delivered, C::Read) => Some(S::Read),
        (S::Sending | S::Unknown | S::Sent, C::Bounce) => Some(S::Failed),
        (S::Pending | S::Queued, C::Skip) => Some(S::Skipped),
        (S::Unknown | S::Failed, C::Resend) => Some(S::Pending),
        (S::Unknown, C::SettleSent) => Some(S::Sent),
        (S::Unknown, C::SettleFailed) => Some(S::Failed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back() {
        for state in RecipientState::ALL {
            assert_eq!(RecipientState::from_word(state.as_str()), Some(*state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        for state in CampaignState::ALL {
            assert_eq!(CampaignState::from_word(state.as_str()), Some(*state));
        }
        assert_eq!(SkipReason::from_word("bogus"), None);
    }

    /// Letters of [`RecipientState::ALL`], in its order: pending, queued, sending, sent, delivered, read, failed, unknown, skipped.
    const RECIPIENT: &str = "pqxsdrfuk";

    #[test]
    fn every_change_of_a_recipient_leads_where_this_table_says() {
        use RecipientChange as C;
        // A column for each state in the order of `RECIPIENT`: the state after the change, `.` if it does nothing.
        let table: [(C, &str); 15] = [
            (C::Queue, "q........"),
            (C::Unqueue, ".p......."),
            (C::Claim, ".x......."),
            (C::Release, "..p......"),
            (C::Accept, "sss....s."),
            (C::Retry, "..p....p."),
            (C::Fail, "..f....f."),
            (C::Lose, "..u......"),
            (C::Deliver, "dddd..dd."),
            (C::Read, "rrrrr.rr."),
            (C::Bounce, "..ff...f."),
            (C::Skip, "kk......."),
            (C::Resend, "......pp."),
            (C::SettleSent, ".......s."),
            (C::SettleFailed, ".......f."),
        ];
        assert_eq!(table.map(|(change, _)| change), C::ALL);
        let letter = |state: RecipientState| {
            let place = RecipientState::ALL.iter().position(|one| *one == state).unwrap();
            RECIPIENT.chars().nth(place).unwrap()
        };
        assert_eq!(RecipientState::ALL.len(), RECIPIENT.len());
        for (change, wanted) in table {
            let next = |state: &RecipientState| next_recipient_state(*state, change);
            let found: String =
                RecipientState::ALL.iter().map(|state| next(state).map_or('.', letter)).collect();
            assert_eq!(found, wanted, "{change:?}");
        }
    }

    #[test]
    fn every_change_of_a_campaign_leads_where_this_table_says() {
        use CampaignChange as C;
        use CampaignState as S;
        // A column for each state: draft, scheduled, running, paused, completed, cancelled.
        let (d, s, r, p, c, x) = (
            Some(S::Draft),
            Some(S::Scheduled),
            Some(S::Running),
            Some(S::Paused),
            Some(S::Completed),
            Some(S::Cancelled),
        );
        let no = None;
        let table: [(C, [Option<S>; 6]); 6] = [
            (C::Schedule, [s, s, no, no, no, no]),
            (C::Start, [r, r, r, r, no, no]),
            (C::Pause, [no, d, p, p, no, no]),
            (C::Complete, [no, no, c, no, c, no]),
            (C::Cancel, [x, x, x, x, no, x]),
            (C::Reopen, [no, no, r, p, p, no]),
        ];
        assert_eq!(table.map(|(change, _)| change), C::ALL);
        assert_eq!(S::ALL, [d, s, r, p, c, x].map(Option::unwrap));
        for (change, wanted) in table {
            let found: Vec<_> =
                S::ALL.iter().map(|state| next_campaign_state(*state, change)).collect();
            assert_eq!(found, wanted, "{change:?}");
        }
    }

    #[test]
    fn a_recipient_is_sent_to_again_only_after_an_answer_or_a_persons_word() {
        use RecipientChange as C;
        use RecipientState as S;
        for state in [S::Sent, S::Delivered, S::Read, S::Skipped] {
            for change in [C::Queue, C::Claim, C::Retry, C::Resend, C::Unqueue, C::Release] {
                assert_eq!(next_recipient_state(state, change), None, "{state:?} {change:?}");
            }
        }
        // From `unknown`, only a person, or the answer itself, leads back to `pending`.
        let leads_back: Vec<C> = C::ALL
            .into_iter()
            .filter(|change| next_recipient_state(S::Unknown, *change) == Some(S::Pending))
            .collect();
        assert_eq!(leads_back, [C::Retry, C::Resend]);
    }

    #[test]
    fn receipts_only_move_a_recipient_up() {
        use RecipientChange as C;
        use RecipientState as S;
        let rank = |state: S| match state {
            S::Sent => 1,
            S::Failed => 2,
            S::Delivered => 3,
            S::Read => 4,
            _ => 0,
        };
        for state in S::ALL {
            for receipt in [C::Deliver, C::Read, C::Bounce] {
                if let Some(next) = next_recipient_state(*state, receipt) {
                    assert!(rank(next) > rank(*state), "{state:?} {receipt:?} {next:?}");
                }
            }
        }
    }

    #[test]
    fn proof_of_delivery_ends_the_wait_for_another_attempt() {
        use RecipientChange as C;
        use RecipientState as S;
        for state in [S::Pending, S::Queued] {
            assert_eq!(next_recipient_state(state, C::Accept), Some(S::Sent));
            assert_eq!(next_recipient_state(state, C::Deliver), Some(S::Delivered));
            assert_eq!(next_recipient_state(state, C::Read), Some(S::Read));
            assert_eq!(next_recipient_state(state, C::Bounce), None, "the next attempt may arrive");
        }
    }

    #[test]
    fn a_completed_campaign_sends_again_only_when_a_person_resumes_it() {
        use CampaignChange as C;
        use CampaignState as S;
        assert_eq!(next_campaign_state(S::Completed, C::Start), None);
        assert_eq!(next_campaign_state(S::Completed, C::Reopen), Some(S::Paused));
        assert_eq!(next_campaign_state(S::Cancelled, C::Start), None);
        assert_eq!(next_campaign_state(S::Scheduled, C::Pause), Some(S::Draft));
        for change in C::ALL {
            let next = next_campaign_state(S::Cancelled, change);
            assert!(next.is_none() || next == Some(S::Cancelled), "{change:?}");
        }
    }
}
