//! Reads campaigns, accounts, recipients, attempts, test messages and suppressions from rows.

use std::time::Duration;

use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;
use stampede_model::CampaignId;
use stampede_model::campaign::{
    CampaignState, Channel, RecipientState, SkipReason, SuppressionReason,
};

use crate::campaigns::{Held, HeldCampaign};
use crate::sql::rows::{damaged, number, optional_parsed, optional_time, parsed, time, value};
use crate::{
    Account, Attempt, Campaign, CampaignCounts, CampaignMinute, CampaignTotal, CodeCount,
    Recipient, Suppression, TestAttempt, TestEnd,
};

/// Stands for all accounts of an owner, in the column of a suppression's account. No account has this id.
pub(super) const ALL_ACCOUNTS: &str = "*";

/// The columns [`account`] reads.
pub(super) const ACCOUNT: &str = "id, owner, name, channel, settings, pacing, country, time_zone, blocked, \
     first_sent_at, created_at, updated_at";

/// The columns [`campaign`] reads.
pub(super) const CAMPAIGN: &str = "id, owner, name, account_id, state, reason, content, pacing, auto_pause, \
     max_attempts, time_zone, country, start_at, end_at, event_id, batch_id, created_at, updated_at, \
     started_at, ended_at, pending, queued, sending, sent, delivered, read, failed, unknown, skipped, \
     (SELECT continued_at FROM campaign_imports WHERE campaign_imports.campaign_id = campaigns.id) AS importing";

/// The tables of [`CAMPAIGN`].
pub(super) const CAMPAIGNS: &str =
    "campaigns JOIN campaign_counts ON campaign_counts.campaign_id = campaigns.id";

/// The columns [`recipient`] reads, of `campaign_recipients AS r`.
pub(super) const RECIPIENT: &str = "r.id AS id, r.campaign_id AS campaign_id, r.position AS position, \
     r.address AS address, r.fields AS fields, r.message AS message, r.time_zone AS time_zone, \
     r.ticket_id AS ticket_id, r.line AS line, r.state AS state, r.skip_reason AS skip_reason, r.code AS code, \
     r.detail AS detail, r.attempts AS attempts, r.next_at AS next_at, r.provider_id AS provider_id, \
     r.updated_at AS updated_at, r.sent_at AS sent_at, r.delivered_at AS delivered_at, r.read_at AS read_at";

/// Whether a suppression `s` holds for a campaign `c` with the account `a`.
pub(super) const HOLDS: &str =
    "s.owner IN (COALESCE(a.owner, c.owner), '') AND s.account_id IN ('*', c.account_id)";

/// Whether a suppression `s` is of the address of a recipient `r`. Suppressions have mail addresses in lower case, and so has the
/// beginning of the key of a recipient, but for recipients from before keys were in lower case. PostgreSQL's `LOWER` alone is not
/// enough: it changes more letters than `address_key`.
pub(super) const IS_ADDRESS: &str = "s.address IN (SUBSTR(r.dedupe_key, 1, LENGTH(r.address)), \
     CASE WHEN r.address LIKE '_%@_%' THEN LOWER(r.address) ELSE r.address END)";

/// The columns [`held`] reads besides [`RECIPIENT`], with the tables of all of them.
pub(super) fn held_columns() -> String {
    format!(
        "r.run_id AS run_id, r.logged AS logged, c.state AS campaign_state, \
         c.updated_at AS campaign_version, c.account_id AS account_id, COALESCE(a.owner, c.owner) AS sender, \
         a.channel AS channel, a.updated_at AS account_version, a.blocked AS account_blocked, \
         COALESCE(a.deleted, 1) AS account_deleted, c.end_at AS end_at, c.deleted AS deleted, \
         (SELECT COUNT(*) FROM campaign_suppressions AS s WHERE {HOLDS} AND {IS_ADDRESS}) AS suppressed \
         FROM campaign_recipients AS r JOIN campaigns AS c ON c.id = r.campaign_id \
         LEFT JOIN campaign_accounts AS a ON a.id = c.account_id"
    )
}

/// The columns [`attempt`] reads.
pub(super) const ATTEMPT: &str = "recipient_id AS id, number, at, took_ms, outcome, code, answer";

/// The columns [`test`] reads.
pub(super) const TEST: &str =
    "id, campaign_id, address, position, at, took_ms, outcome, code, answer, provider_id";

/// The columns [`suppression`] reads.
pub(super) const SUPPRESSION: &str =
    "address AS id, owner, account_id, address, reason, since, added_by";

/// Reads the columns [`ACCOUNT`].
pub(super) fn account(row: &AnyRow) -> sqlx::Result<Account> {
    Ok(Account {
        id: parsed(row, "id")?,
        owner: value(row, "owner")?,
        name: value(row, "name")?,
        channel: word(row, "channel", Channel::from_word)?,
        settings: value(row, "settings")?,
        pacing: json(row, "pacing")?,
        country: value(row, "country")?,
        time_zone: value(row, "time_zone")?,
        blocked: value(row, "blocked")?,
        first_sent_at: optional_time(row, "first_sent_at")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}

/// Reads the columns [`CAMPAIGN`].
pub(super) fn campaign(row: &AnyRow) -> sqlx::Result<Campaign> {
    Ok(Campaign {
        id: parsed(row, "id")?,
        owner: value(row, "owner")?,
        name: value(row, "name")?,
        account: parsed(row, "account_id")?,
        state: word(row, "state", CampaignState::from_word)?,
        reason: value(row, "reason")?,
        content: json(row, "content")?,
        pacing: json(row, "pacing")?,
        auto_pause: json(row, "auto_pause")?,
        max_attempts: number(row, "max_attempts")?,
        time_zone: value(row, "time_zone")?,
        country: value(row, "country")?,
        start_at: optional_time(row, "start_at")?,
        end_at: optional_time(row, "end_at")?,
        event: optional_parsed(row, "event_id")?,
        batch: optional_parsed(row, "batch_id")?,
        counts: counts(row)?,
        importing: optional_time(row, "importing")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        started_at: optional_time(row, "started_at")?,
        ended_at: optional_time(row, "ended_at")?,
    })
}

/// Reads the counts of a campaign.
pub(super) fn counts(row: &AnyRow) -> sqlx::Result<CampaignCounts> {
    Ok(CampaignCounts {
        pending: number(row, "pending")?,
        queued: number(row, "queued")?,
        sending: number(row, "sending")?,
        sent: number(row, "sent")?,
        delivered: number(row, "delivered")?,
        read: number(row, "read")?,
        failed: number(row, "failed")?,
        unknown: number(row, "unknown")?,
        skipped: number(row, "skipped")?,
    })
}

/// Reads a campaign's id and counts.
pub(super) fn counted(row: &AnyRow) -> sqlx::Result<(CampaignId, CampaignCounts)> {
    Ok((parsed(row, "id")?, counts(row)?))
}

/// Reads the columns [`RECIPIENT`].
pub(super) fn recipient(row: &AnyRow) -> sqlx::Result<Recipient> {
    Ok(Recipient {
        id: parsed(row, "id")?,
        campaign: parsed(row, "campaign_id")?,
        position: number(row, "position")?,
        address: value(row, "address")?,
        fields: json(row, "fields")?,
        message: value(row, "message")?,
        time_zone: value(row, "time_zone")?,
        ticket: optional_parsed(row, "ticket_id")?,
        line: match value::<Option<i64>>(row, "line")? {
            Some(_) => Some(number(row, "line")?),
            None => None,
        },
        state: word(row, "state", RecipientState::from_word)?,
        skipped: optional_word(row, "skip_reason", SkipReason::from_word)?,
        code: value(row, "code")?,
        detail: value(row, "detail")?,
        attempts: number(row, "attempts")?,
        next_at: optional_time(row, "next_at")?,
        provider_id: value(row, "provider_id")?,
        updated_at: time(row, "updated_at")?,
        sent_at: optional_time(row, "sent_at")?,
        delivered_at: optional_time(row, "delivered_at")?,
        read_at: optional_time(row, "read_at")?,
    })
}

/// Reads the columns [`RECIPIENT`] and [`held_columns`].
pub(super) fn held(row: &AnyRow) -> sqlx::Result<Held> {
    Ok(Held {
        recipient: recipient(row)?,
        run: optional_parsed(row, "run_id")?,
        logged: number(row, "logged")?,
        is_suppressed: number::<u64>(row, "suppressed")? > 0,
        is_changed: false,
        is_moved: false,
        campaign: HeldCampaign {
            state: word(row, "campaign_state", CampaignState::from_word)?,
            version: time(row, "campaign_version")?,
            account: parsed(row, "account_id")?,
            account_version: optional_time(row, "account_version")?,
            may_account_send: number::<u8>(row, "account_deleted")? == 0
                && value::<Option<String>>(row, "account_blocked")?.is_none(),
            sender: value(row, "sender")?,
            channel: optional_word(row, "channel", Channel::from_word)?,
            end_at: optional_time(row, "end_at")?,
            is_deleted: number::<u8>(row, "deleted")? != 0,
        },
    })
}

/// Reads the columns [`ATTEMPT`].
pub(super) fn attempt(row: &AnyRow) -> sqlx::Result<Attempt> {
    Ok(Attempt {
        number: number(row, "number")?,
        at: time(row, "at")?,
        took: Duration::from_millis(number(row, "took_ms")?),
        outcome: value(row, "outcome")?,
        code: value(row, "code")?,
        answer: value(row, "answer")?,
    })
}

/// Reads the columns [`TEST`].
pub(super) fn test(row: &AnyRow) -> sqlx::Result<TestAttempt> {
    let end = match value::<Option<String>>(row, "outcome")? {
        None => None,
        Some(outcome) => Some(TestEnd {
            took: Duration::from_millis(number(row, "took_ms")?),
            outcome,
            code: value(row, "code")?,
            answer: value(row, "answer")?,
            provider_id: value(row, "provider_id")?,
        }),
    };
    Ok(TestAttempt {
        id: parsed(row, "id")?,
        campaign: parsed(row, "campaign_id")?,
        address: value(row, "address")?,
        position: number(row, "position")?,
        at: time(row, "at")?,
        end,
    })
}

/// Reads the columns [`SUPPRESSION`].
pub(super) fn suppression(row: &AnyRow) -> sqlx::Result<Suppression> {
    let account: String = value(row, "account_id")?;
    Ok(Suppression {
        owner: value(row, "owner")?,
        account: match account.as_str() {
            ALL_ACCOUNTS => None,
            _ => Some(parsed(row, "account_id")?),
        },
        address: value(row, "address")?,
        reason: word(row, "reason", SuppressionReason::from_word)?,
        since: time(row, "since")?,
        by: value(row, "added_by")?,
    })
}

/// Reads the columns `state`, `code`, `example` and `recipients`.
pub(super) fn code_count(row: &AnyRow) -> sqlx::Result<CodeCount> {
    Ok(CodeCount {
        state: word(row, "state", RecipientState::from_word)?,
        code: value(row, "code")?,
        example: value(row, "example")?,
        recipients: number(row, "recipients")?,
    })
}

/// Reads the columns `state`, `campaigns` and `unknown`.
pub(super) fn campaign_total(row: &AnyRow) -> sqlx::Result<CampaignTotal> {
    Ok(CampaignTotal {
        state: word(row, "state", CampaignState::from_word)?,
        campaigns: number(row, "campaigns")?,
        unknown: number(row, "unknown")?,
    })
}

/// Reads the columns `at`, `sent`, `failed` and `unknown`.
pub(super) fn minute(row: &AnyRow) -> sqlx::Result<CampaignMinute> {
    Ok(CampaignMinute {
        at: time(row, "at")?,
        sent: number(row, "sent")?,
        failed_attempts: number(row, "failed")?,
        unknown: number(row, "unknown")?,
    })
}

/// Reads a word of a closed set.
pub(super) fn word<T>(
    row: &AnyRow,
    column: &str,
    read: impl Fn(&str) -> Option<T>,
) -> sqlx::Result<T> {
    let word: String = value(row, column)?;
    read(&word).ok_or_else(|| damaged(row, column, format!("{word:?} is not known")))
}

fn optional_word<T>(
    row: &AnyRow,
    column: &str,
    read: impl Fn(&str) -> Option<T>,
) -> sqlx::Result<Option<T>> {
    match value::<Option<String>>(row, column)? {
        Some(_) => self::word(row, column, read).map(Some),
        None => Ok(None),
    }
}

/// Reads a value that is kept as JSON.
fn json<T: DeserializeOwned>(row: &AnyRow, column: &str) -> sqlx::Result<T> {
    let text: String = value(row, column)?;
    serde_json::from_str(&text).map_err(|error| damaged(row, column, error))
}
