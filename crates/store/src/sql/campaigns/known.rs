//! What decides about recipients before they come, in SQL: the keys that a campaign has already, and suppressed addresses.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use sqlx::{AnyConnection, AssertSqlSafe};
use stampede_model::CampaignId;
use stampede_model::campaign::address_key;

use super::rows::HOLDS;
use crate::sql::Sql;
use crate::sql::page::to_json;
use crate::sql::rows::{number, value};
use crate::{Known, NewRecipient};

impl Sql {
    /// What decides about recipients before the first of them is added.
    pub(super) async fn known_among(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        recipients: &[NewRecipient],
    ) -> sqlx::Result<Known> {
        let keys = self.lines_of_keys(&mut *db, campaign, recipients).await?;
        let suppressed = self.suppressed_among(db, campaign, recipients).await?;
        Ok(Known { keys, suppressed })
    }

    /// Which of their keys a campaign has already, with the lines of its recipients.
    async fn lines_of_keys(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        recipients: &[NewRecipient],
    ) -> sqlx::Result<HashMap<String, Option<u64>>> {
        let sql = format!(
            "SELECT id, dedupe_key, line FROM campaign_recipients WHERE campaign_id = $2 \
             AND dedupe_key IS NOT NULL AND dedupe_key IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        let keys: Vec<String> = recipients.iter().filter_map(NewRecipient::key).collect();
        let query = sqlx::query(AssertSqlSafe(sql)).bind(to_json(&keys)).bind(campaign.to_string());
        let mut lines = HashMap::new();
        for row in query.fetch_all(db).await? {
            let line = match value::<Option<i64>>(&row, "line")? {
                Some(_) => Some(number(&row, "line")?),
                None => None,
            };
            lines.insert(value(&row, "dedupe_key")?, line);
        }
        Ok(lines)
    }

    /// Which addresses of recipients are suppressed for the account of a campaign.
    async fn suppressed_among(
        &self,
        db: &mut AnyConnection,
        campaign: CampaignId,
        recipients: &[NewRecipient],
    ) -> sqlx::Result<HashSet<String>> {
        let sql = format!(
            "SELECT s.address AS address FROM campaigns AS c \
             LEFT JOIN campaign_accounts AS a ON a.id = c.account_id \
             JOIN campaign_suppressions AS s ON {HOLDS} \
             WHERE c.id = $2 AND s.address IN (SELECT value FROM {})",
            self.dialect.each_text("$1")
        );
        let addresses: Vec<Cow<'_, str>> =
            recipients.iter().map(|recipient| address_key(&recipient.address)).collect();
        let query = sqlx::query(AssertSqlSafe(sql));
        let query = query.bind(to_json(&addresses)).bind(campaign.to_string());
        query.fetch_all(db).await?.iter().map(|row| value(row, "address")).collect()
    }
}
