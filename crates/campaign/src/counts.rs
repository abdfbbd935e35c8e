//! What is counted of messages and receipts, for metrics.

use stampede_store::{Account, AttemptEffect, Claimed, Receipt, ReceiptEffect, Suppression};
use stampede_telemetry::Attempt;

use crate::Campaigns;
use crate::receipts::word;
use crate::snapshot::Snapshot;

impl Campaigns {
    /// Counts an attempt by what becomes of its recipient.
    pub(crate) fn count_attempt(&self, snapshot: &Snapshot, effect: &AttemptEffect) {
        let attempt = match effect {
            AttemptEffect::Sent { .. } => Attempt::Sent,
            AttemptEffect::Retry(_) | AttemptEffect::Postpone(_) | AttemptEffect::Moved(_) => {
                Attempt::Retried
            }
            AttemptEffect::Failed(_) | AttemptEffect::Withheld => Attempt::Failed,
            AttemptEffect::Unknown => Attempt::Unknown,
            AttemptEffect::Released => return,
        };
        let metrics = &self.shared.metrics;
        metrics.message(snapshot.account.channel.as_str(), attempt);
        if let AttemptEffect::Failed(Some(reason)) = effect {
            metrics.suppressed(reason.as_str(), 1);
        }
    }

    /// Counts a recipient that is not to be sent to, or whose former run was lost.
    pub(crate) fn count_unsent(&self, snapshot: &Snapshot, claimed: Option<&Claimed>) {
        let attempt = match claimed {
            Some(Claimed::OptedOut | Claimed::Expired) => Attempt::Skipped,
            Some(Claimed::Unknown) => Attempt::Unknown,
            _ => return,
        };
        self.shared.metrics.message(snapshot.account.channel.as_str(), attempt);
    }

    /// Counts what a provider told, and the addresses that are suppressed because of it.
    pub(crate) fn count_receipts(
        &self,
        account: &Account,
        receipts: &[Receipt],
        effects: &[ReceiptEffect],
    ) {
        let metrics = &self.shared.metrics;
        for (receipt, effect) in receipts.iter().zip(effects) {
            metrics.receipt(account.channel.as_str(), word(receipt.status));
            if let (Some(reason), ReceiptEffect::Applied(_)) = (receipt.suppress, effect) {
                metrics.suppressed(reason.as_str(), 1);
            }
        }
    }

    /// Counts people who said stop. So many of them are new: the others were suppressed before.
    pub(crate) fn count_stops(&self, stops: &[Suppression], new: u64) {
        let new = usize::try_from(new).unwrap_or(usize::MAX);
        for stop in stops.iter().take(new) {
            self.shared.metrics.suppressed(stop.reason.as_str(), 1);
        }
    }
}
