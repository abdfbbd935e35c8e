//! Records as the API tells them.

use stampede_model::campaign::CampaignState;
use stampede_store as store;
use stampede_wire::campaigns::{
    Account, Attempt, CodeCount, Contract, ContractCounts, Minute, Recipient, Suppression,
    TestAttempt,
};

use crate::speed::Speed;
use crate::{hours, now};

pub(crate) fn account(account: store::Account) -> Account {
    Account {
        id: account.id,
        owner: account.owner,
        name: account.name,
        channel: account.channel,
        settings: serde_json::from_str(&account.settings).unwrap_or_default(),
        pacing: account.pacing,
        country: account.country,
        time_zone: account.time_zone,
        blocked_reason: account.blocked,
        first_sent_at: account.first_sent_at,
        created_at: account.created_at,
        updated_at: account.updated_at,
    }
}

pub(crate) fn counts(counts: &store::CampaignCounts) -> ContractCounts {
    ContractCounts {
        total: counts.total(),
        pending: counts.pending,
        queued: counts.queued,
        sending: counts.sending,
        sent: counts.sent,
        delivered: counts.delivered,
        read: counts.read,
        failed: counts.failed,
        unknown: counts.unknown,
        skipped: counts.skipped,
    }
}

/// How many percent of the recipients are done. A campaign that is not done never shows 100.
pub(crate) fn progress(counts: &store::CampaignCounts) -> u32 {
    let (total, open) = (counts.total(), counts.open());
    ((total - open) * 100).checked_div(total).unwrap_or_default() as u32
}

/// A campaign with its account, if there still is one.
pub(crate) fn contract(
    campaign: store::Campaign,
    account: Option<&store::Account>,
    speed: Speed,
) -> Contract {
    let eta_at = account.and_then(|account| eta(&campaign, account, speed));
    Contract {
        id: campaign.id,
        counts: counts(&campaign.counts),
        progress: progress(&campaign.counts),
        owner: campaign.owner,
        account_id: campaign.account,
        channel: account.map(|account| account.channel),
        name: campaign.name,
        status: campaign.state,
        status_reason: campaign.reason,
        content: campaign.content,
        pacing: campaign.pacing,
        auto_pause: campaign.auto_pause,
        max_attempts: campaign.max_attempts,
        time_zone: campaign.time_zone,
        country: campaign.country,
        start_at: campaign.start_at,
        end_at: campaign.end_at,
        event_id: campaign.event,
        batch_id: campaign.batch,
        importing: campaign.importing.is_some(),
        eta_at,
        created_at: campaign.created_at,
        updated_at: campaign.updated_at,
        started_at: campaign.started_at,
        ended_at: campaign.ended_at,
    }
}

/// When the last message leaves if the campaign goes on, or starts, now or at its time.
pub(crate) fn eta(
    campaign: &store::Campaign,
    account: &store::Account,
    speed: Speed,
) -> Option<stampede_model::Timestamp> {
    let left = campaign.counts.open();
    let has_ended = matches!(campaign.state, CampaignState::Completed | CampaignState::Cancelled);
    if left == 0 || has_ended {
        return None;
    }
    let start = campaign.start_at.unwrap_or_else(now).max(now());
    hours::done_at(campaign, account, speed, left, start)
}

pub(crate) fn recipient(recipient: store::Recipient) -> Recipient {
    Recipient {
        id: recipient.id,
        contract_id: recipient.campaign,
        position: recipient.position,
        address: recipient.address,
        fields: recipient.fields,
        message: recipient.message,
        time_zone: recipient.time_zone,
        ticket_id: recipient.ticket,
        line: recipient.line,
        status: recipient.state,
        skip_reason: recipient.skipped,
        code: recipient.code,
        detail: recipient.detail,
        attempts: recipient.attempts,
        next_at: recipient.next_at,
        provider_id: recipient.provider_id,
        updated_at: recipient.updated_at,
        sent_at: recipient.sent_at,
        delivered_at: recipient.delivered_at,
        read_at: recipient.read_at,
    }
}

pub(crate) fn attempt(attempt: store::Attempt) -> Attempt {
    Attempt {
        number: attempt.number,
        at: attempt.at,
        took_ms: attempt.took.as_millis() as u64,
        outcome: attempt.outcome,
        code: attempt.code,
        answer: attempt.answer,
    }
}

pub(crate) fn test(test: store::TestAttempt) -> TestAttempt {
    let store::TestAttempt { address, position, at, end, .. } = test;
    match end {
        Some(end) => TestAttempt {
            address,
            position,
            at,
            took_ms: Some(end.took.as_millis() as u64),
            outcome: end.outcome,
            code: end.code,
            answer: end.answer,
            provider_id: end.provider_id,
        },
        // Nobody knows how it ended.
        None => TestAttempt {
            address,
            position,
            at,
            took_ms: None,
            outcome: "sending".to_owned(),
            code: None,
            answer: None,
            provider_id: None,
        },
    }
}

pub(crate) fn suppression(suppression: store::Suppression) -> Suppression {
    Suppression {
        owner: Some(suppression.owner).filter(|owner| owner != store::Suppression::EVERYBODY),
        account_id: suppression.account,
        address: suppression.address,
        reason: suppression.reason,
        since: suppression.since,
        by: suppression.by,
    }
}

pub(crate) fn code(count: store::CodeCount) -> CodeCount {
    CodeCount {
        status: count.state,
        code: count.code,
        example: count.example,
        recipients: count.recipients,
    }
}

pub(crate) fn minute(minute: store::CampaignMinute) -> Minute {
    let store::CampaignMinute { at, sent, failed_attempts, unknown } = minute;
    Minute { at, sent, failed_attempts, unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_campaign_shows_100_percent_only_when_nothing_is_left() {
        let counts = |sent, pending| store::CampaignCounts { sent, pending, ..Default::default() };
        assert_eq!(progress(&counts(0, 0)), 0);
        assert_eq!(progress(&counts(999, 1)), 99);
        assert_eq!(progress(&counts(1_000, 0)), 100);
        assert_eq!(progress(&counts(1, 1)), 50);
    }
}
