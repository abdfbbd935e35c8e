//! Claims, results of runs and receipts in SQL: groups of recipients, each group in one transaction.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::campaign::AccountId;
use stampede_model::{RecipientId, RunId, Timestamp};

use super::held::{Before, NewAttempt};
use crate::Durability::Synced;
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::rows::{number, optional_parsed, parsed, value};
use crate::sql::transaction::in_transaction;
use crate::{
    AttemptEffect, Claim, Claimed, Receipt, ReceiptEffect, Result, RunResult, Suppression,
};

/// Attempts of one recipient that are kept: the last ones.
const KEPT: u32 = 50;
/// Receipts that are applied in one transaction.
const RECEIPTS: usize = 1_000;
/// Messages with the same provider's id that are looked at, the newest first.
const NAMESAKES: u32 = 1_000;

impl Sql {
    pub(super) async fn claim_group(
        &self,
        claims: &[Claim],
        now: Timestamp,
    ) -> Result<Vec<Claimed>> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<RecipientId> = claims.iter().map(|claim| claim.recipient).collect();
        in_transaction!(self, Synced, async |db| {
            let mut group = self.hold(&mut *db, &ids, Before::Accounts).await?;
            let mut in_flight: BTreeMap<AccountId, u64> =
                group.values().map(|held| (held.campaign.account.clone(), 0)).collect();
            self.count_in_flight(&mut *db, &mut in_flight).await?;
            let mut answers = Vec::with_capacity(claims.len());
            for claim in claims {
                answers.push(match group.get_mut(&claim.recipient) {
                    Some(held) => match in_flight.get_mut(&held.campaign.account) {
                        Some(in_flight) => held.claim(claim, in_flight, now),
                        None => Claimed::Nothing,
                    },
                    None => Claimed::Nothing,
                });
            }
            self.write_changed(db, &group).await?;
            Ok(answers)
        })
    }

    /// Counts the recipients of accounts that are being sent to. The accounts are locked.
    async fn count_in_flight(
        &self,
        db: &mut AnyConnection,
        accounts: &mut BTreeMap<AccountId, u64>,
    ) -> sqlx::Result<()> {
        // Of campaigns in other states, no recipient is being sent to.
        let count = format!(
            "SELECT account_id AS id, CAST(SUM(sending) AS BIGINT) AS sending \
             FROM campaigns JOIN campaign_counts ON campaign_counts.campaign_id = campaigns.id \
             WHERE account_id IN (SELECT value FROM {}) AND state IN ('running', 'paused', 'cancelled') \
             GROUP BY account_id",
            self.dialect.each_text("$1")
        );
        let names: Vec<&AccountId> = accounts.keys().collect();
        let counted = sqlx::query(AssertSqlSafe(count)).bind(to_json(&names)).fetch_all(db).await?;
        for row in &counted {
            accounts.insert(parsed(row, "id")?, number(row, "sending")?);
        }
        Ok(())
    }

    pub(super) async fn record_group(
        &self,
        results: &[RunResult],
        now: Timestamp,
    ) -> Result<Vec<bool>> {
        if results.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<RecipientId> = results.iter().map(|result| result.recipient).collect();
        in_transaction!(self, Synced, async |db| {
            self.note_first_sent(&mut *db, results).await?;
            let mut group = self.hold(&mut *db, &ids, Before::Campaigns).await?;
            let (mut attempts, mut suppressions) = (Vec::new(), Vec::new());
            let mut answers = Vec::with_capacity(results.len());
            for result in results {
                let held = group.get_mut(&result.recipient);
                let Some((held, recorded)) =
                    held.and_then(|held| held.record(result, now).map(|done| (held, done)))
                else {
                    answers.push(false);
                    continue;
                };
                let (recipient, campaign) = (held.recipient.id, held.recipient.campaign);
                attempts.extend(recorded.attempt.map(|(attempt, counts)| NewAttempt {
                    recipient,
                    campaign,
                    run: result.run,
                    attempt,
                    counts,
                }));
                suppressions.extend(recorded.suppression);
                answers.push(true);
            }
            self.answer_repeated(&mut *db, results, &mut answers).await?;
            self.write_keys_of_moved(&mut *db, &mut group, now).await?;
            self.write_changed(&mut *db, &group).await?;
            self.log_attempts(&mut *db, &attempts).await?;
            self.forget_attempts(&mut *db, &attempts).await?;
            self.suppress(db, &suppressions).await?;
            Ok(answers)
        })
    }

    /// Notes when the first message of an account was sent.
    async fn note_first_sent(
        &self,
        db: &mut AnyConnection,
        results: &[RunResult],
    ) -> sqlx::Result<()> {
        let sent = results.iter().filter(|it| matches!(it.effect, AttemptEffect::Sent { .. }));
        let Some(first) = sent.clone().map(|result| result.attempt.at).min() else { return Ok(()) };
        let ids: Vec<RecipientId> = sent.map(|result| result.recipient).collect();
        let of_recipients = format!(
            "SELECT account_id FROM campaigns WHERE id IN (SELECT campaign_id FROM campaign_recipients \
             WHERE id IN (SELECT value FROM {}))",
            self.dialect.each_text("$1")
        );
        // Hardly ever is there one; so nothing is locked by looking.
        let find = format!(
            "SELECT id FROM campaign_accounts WHERE first_sent_at IS NULL AND id IN ({of_recipients}) ORDER BY id"
        );
        let ids = to_json(&ids);
        let found = sqlx::query(AssertSqlSafe(find)).bind(ids).fetch_all(&mut *db).await?;
        for row in &found {
            sqlx::query(
                "UPDATE campaign_accounts SET first_sent_at = $2 WHERE id = $1 AND first_sent_at IS NULL",
            )
            .bind(value::<String>(row, "id")?)
            .bind(first.as_millisecond())
            .execute(&mut *db)
            .await?;
        }
        Ok(())
    }

    /// A result that was recorded before, and whose answer was lost, is recorded.
    async fn answer_repeated(
        &self,
        db: &mut AnyConnection,
        results: &[RunResult],
        answers: &mut [bool],
    ) -> sqlx::Result<()> {
        let refused = results.iter().zip(&*answers).filter(|(_, answer)| !**answer);
        let runs: Vec<(RecipientId, RunId)> =
            refused.map(|(result, _)| (result.recipient, result.run)).collect();
        if runs.is_empty() {
            return Ok(());
        }
        let find = format!(
            "SELECT recipient_id AS id, run_id FROM campaign_attempts WHERE recipient_id IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        let ids: Vec<RecipientId> = runs.iter().map(|(recipient, _)| *recipient).collect();
        let logged = sqlx::query(AssertSqlSafe(find)).bind(to_json(&ids)).fetch_all(db).await?;
        let mut logged: HashSet<(RecipientId, RunId)> = logged
            .iter()
            .map(|row| Ok((parsed(row, "id")?, parsed(row, "run_id")?)))
            .collect::<sqlx::Result<_>>()?;
        // The same call may have it twice.
        let recorded = results.iter().zip(&*answers).filter(|(_, answer)| **answer);
        logged.extend(recorded.map(|(result, _)| (result.recipient, result.run)));
        for (result, answer) in results.iter().zip(answers) {
            *answer |= logged.contains(&(result.recipient, result.run));
        }
        Ok(())
    }

    /// Removes the oldest attempts of recipients that have very many: postponed ones.
    async fn forget_attempts(
        &self,
        db: &mut AnyConnection,
        attempts: &[NewAttempt],
    ) -> sqlx::Result<()> {
        for new in attempts.iter().filter(|new| new.attempt.number > KEPT) {
            sqlx::query("DELETE FROM campaign_attempts WHERE recipient_id = $1 AND number <= $2")
                .bind(new.recipient.to_string())
                .bind(i64::from(new.attempt.number - KEPT))
                .execute(&mut *db)
                .await?;
        }
        Ok(())
    }

    pub(super) async fn receive_all(
        &self,
        receipts: &[Receipt],
        now: Timestamp,
    ) -> Result<Vec<ReceiptEffect>> {
        let mut effects = Vec::with_capacity(receipts.len());
        for portion in receipts.chunks(RECEIPTS) {
            effects.extend(self.receive_group(portion, now).await?);
        }
        Ok(effects)
    }

    async fn receive_group(
        &self,
        receipts: &[Receipt],
        now: Timestamp,
    ) -> Result<Vec<ReceiptEffect>> {
        in_transaction!(self, Synced, async |db| {
            let by_provider_id = self.find_by_provider_ids(&mut *db, receipts).await?;
            let find = |receipt: &Receipt| -> Option<RecipientId> {
                let provider_id = || receipt.provider_id.as_deref();
                let named = || by_provider_id.get(&(&receipt.account, provider_id()?)).copied();
                receipt.recipient.or_else(named)
            };
            let mut ids: Vec<RecipientId> = receipts.iter().filter_map(find).collect();
            ids.sort_unstable();
            ids.dedup();
            let mut group = self.hold(&mut *db, &ids, Before::Nothing).await?;
            let mut suppressions: Vec<Suppression> = Vec::new();
            let mut attempts = Vec::new();
            let mut answers = Vec::with_capacity(receipts.len());
            for receipt in receipts {
                let held = find(receipt).and_then(|id| group.get_mut(&id));
                let held = held.filter(|held| held.campaign.account == receipt.account);
                let Some(held) = held else {
                    answers.push(ReceiptEffect::NotFound);
                    continue;
                };
                if held.campaign.is_deleted {
                    suppressions.extend(held.suppressed_by(receipt));
                    answers.push(ReceiptEffect::NotFound);
                    continue;
                }
                let (effect, recorded) = held.receive(receipt, now);
                let (recipient, campaign) = (held.recipient.id, held.recipient.campaign);
                attempts.extend(recorded.attempt.map(|(attempt, counts)| NewAttempt {
                    recipient,
                    campaign,
                    // No run: it is the word of the provider.
                    run: RunId::generate(),
                    attempt,
                    counts,
                }));
                suppressions.extend(recorded.suppression);
                answers.push(effect);
            }
            self.write_changed(&mut *db, &group).await?;
            self.log_attempts(&mut *db, &attempts).await?;
            self.forget_attempts(&mut *db, &attempts).await?;
            self.suppress(db, &suppressions).await?;
            Ok(answers)
        })
    }

    /// Finds the recipients of receipts that name none by the providers' ids of their messages: the newest of each account and id.
    async fn find_by_provider_ids<'r>(
        &self,
        db: &mut AnyConnection,
        receipts: &'r [Receipt],
    ) -> sqlx::Result<HashMap<(&'r AccountId, &'r str), RecipientId>> {
        let mut wanted: BTreeMap<&AccountId, BTreeSet<&str>> = BTreeMap::new();
        for receipt in receipts.iter().filter(|receipt| receipt.recipient.is_none()) {
            if let Some(id) = &receipt.provider_id {
                wanted.entry(&receipt.account).or_default().insert(id);
            }
        }
        // Providers choose these ids: one that gives the same id to all of its messages must not make each receipt slow.
        let find = format!(
            "SELECT value AS provider_id, (SELECT r.id FROM (SELECT id, campaign_id FROM campaign_recipients \
             WHERE provider_id = value ORDER BY id DESC LIMIT {NAMESAKES}) AS r \
             JOIN campaigns AS c ON c.id = r.campaign_id \
             WHERE c.account_id = $2 AND c.deleted = 0 ORDER BY r.id DESC LIMIT 1) AS id FROM {}",
            self.dialect.each_text("$1")
        );
        let mut found = HashMap::new();
        for (account, ids) in wanted {
            let query = sqlx::query(AssertSqlSafe(find.as_str()));
            let query = query.bind(to_json(&ids)).bind(account.as_str());
            for row in query.fetch_all(&mut *db).await? {
                let provider_id: String = value(&row, "provider_id")?;
                let name = ids.get(provider_id.as_str()).copied();
                if let (Some(name), Some(id)) = (name, optional_parsed(&row, "id")?) {
                    found.insert((account, name), id);
                }
            }
        }
        Ok(found)
    }
}
