//! Campaigns, their recipients, accounts, suppressed addresses.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use serde::Serialize;
use serde_json::Value;
use stampede_model::campaign::{AccountId, AutoPause, Channel, Content, Pacing, SuppressionReason};
use stampede_model::{CampaignId, RecipientId, Timestamp};
use stampede_wire::campaigns::{
    Account, AccountCheck, AccountPage, Contract, ContractPage, CreatedContract, ImportReport,
    PausedContract, Preview, RecipientLog, RecipientPage, Report, SettledRecipients,
    SuppressionPage, SuppressionsAdded, TestMessage, Validation,
};

use crate::{Client, Pieces, Result, segment, with_query};

/// Longest time for a large file, either way.
const LARGE: Duration = Duration::from_secs(3_600);

/// The body of `POST /api/contracts`; what is absent has its usual value.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewContract {
    /// The account that sends; the console if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<AccountId>,
    /// Its name, for people.
    pub name: String,
    /// What is sent; the recipients' own messages if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
    /// How fast it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// When it pauses by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_pause: Option<AutoPause>,
    /// Most attempts for one recipient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// The country of telephone numbers without a country's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// The time zone of its quiet hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// When it starts by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// After this moment nothing more is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Timestamp>,
}

/// The body of `POST /api/accounts`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewAccount {
    /// Its id; the server makes one if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<AccountId>,
    /// Its name, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its channel.
    pub channel: Channel,
    /// The settings of its channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Value>,
    /// Its credentials, which are never shown again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Value>,
    /// How fast it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// The country of telephone numbers without a country's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// The time zone of its days and quiet hours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
}

/// A file of recipients.
#[derive(Debug, Clone)]
pub struct RecipientFile {
    /// Its media type, with a charset if it needs one.
    pub kind: String,
    /// How it is read; parameters without a value are left out.
    pub query: Vec<(&'static str, Option<String>)>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Recipients to list.
#[derive(Debug, Clone, Default)]
pub struct RecipientQuery {
    /// Only those in this state.
    pub state: Option<String>,
    /// Only those with this code.
    pub code: Option<String>,
    /// Only those behind this position.
    pub after: Option<u64>,
    /// How many at most.
    pub limit: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    #[serde(skip_serializing_if = "Option::is_none")]
    start_at: Option<Timestamp>,
}

#[derive(Serialize)]
struct Which {
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
}

#[derive(Serialize)]
struct Test<'a> {
    addresses: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
}

/// Recipients that a person settles: these, or all.
#[derive(Serialize)]
#[serde(untagged)]
enum Settled<'a> {
    These {
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<&'a str>,
        ids: &'a [RecipientId],
    },
    All {
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<&'a str>,
        all: bool,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Suppress<'a> {
    addresses: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<&'a AccountId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<SuppressionReason>,
}

/// An empty body.
#[derive(Serialize)]
struct Nothing {}

impl Client {
    /// Makes a campaign.
    pub async fn create_contract(&self, contract: &NewContract) -> Result<CreatedContract> {
        self.post("/api/contracts", contract).await
    }

    /// A page of campaigns, newest first.
    pub async fn contracts(
        &self,
        state: Option<&str>,
        after: Option<CampaignId>,
    ) -> Result<ContractPage> {
        let after = after.map(|id| id.to_string());
        let query = [("state", state), ("after", after.as_deref())];
        self.get(&with_query("/api/contracts", &query)).await
    }

    /// A campaign.
    pub async fn contract(&self, id: CampaignId) -> Result<Contract> {
        self.get(&format!("/api/contracts/{id}")).await
    }

    /// Deletes a campaign that is not running, with its recipients.
    pub async fn delete_contract(&self, id: CampaignId) -> Result<()> {
        self.delete::<Value>(&format!("/api/contracts/{id}")).await.map(drop)
    }

    /// Starts or resumes a campaign, or lets it start at a later time.
    pub async fn start_contract(&self, id: CampaignId, at: Option<Timestamp>) -> Result<Contract> {
        self.post(&format!("/api/contracts/{id}/start"), &Start { start_at: at }).await
    }

    /// Pauses a campaign.
    pub async fn pause_contract(&self, id: CampaignId) -> Result<PausedContract> {
        self.post(&format!("/api/contracts/{id}/pause"), &Nothing {}).await
    }

    /// Resumes a paused campaign.
    pub async fn resume_contract(&self, id: CampaignId) -> Result<Contract> {
        self.post(&format!("/api/contracts/{id}/resume"), &Nothing {}).await
    }

    /// Ends a campaign before its time: what was not sent is skipped.
    pub async fn cancel_contract(&self, id: CampaignId) -> Result<Contract> {
        self.post(&format!("/api/contracts/{id}/cancel"), &Nothing {}).await
    }

    /// Tells what a campaign would do.
    pub async fn validate_contract(&self, id: CampaignId) -> Result<Validation> {
        self.post(&format!("/api/contracts/{id}/validate"), &Nothing {}).await
    }

    /// The message of the recipient at a position, as it would be sent.
    pub async fn preview_contract(&self, id: CampaignId, position: Option<u64>) -> Result<Preview> {
        self.post(&format!("/api/contracts/{id}/preview"), &Which { position }).await
    }

    /// Sends the message to other addresses, to try it out, with the fields of the recipient at a position.
    pub async fn test_contract(
        &self,
        id: CampaignId,
        addresses: &[String],
        position: Option<u64>,
    ) -> Result<Vec<TestMessage>> {
        self.post(&format!("/api/contracts/{id}/test"), &Test { addresses, position }).await
    }

    /// Tries failed recipients again: these, or all.
    pub async fn retry_failed_recipients(
        &self,
        id: CampaignId,
        ids: Option<&[RecipientId]>,
    ) -> Result<SettledRecipients> {
        self.settle(&format!("/api/contracts/{id}/retry-failed"), None, ids).await
    }

    /// Settles recipients of whom nobody knows whether the message arrived: `resend`, `sent` or `failed`; these, or all.
    pub async fn settle_unknown_recipients(
        &self,
        id: CampaignId,
        action: &str,
        ids: Option<&[RecipientId]>,
    ) -> Result<SettledRecipients> {
        self.settle(&format!("/api/contracts/{id}/unknown"), Some(action), ids).await
    }

    async fn settle(
        &self,
        path: &str,
        action: Option<&str>,
        ids: Option<&[RecipientId]>,
    ) -> Result<SettledRecipients> {
        let settled = match ids {
            Some(ids) => Settled::These { action, ids },
            None => Settled::All { action, all: true },
        };
        self.post(path, &settled).await
    }

    /// Adds the recipients of a file; with `dry_run`, tells only what would be added.
    pub async fn upload_recipients(
        &self,
        id: CampaignId,
        file: RecipientFile,
        dry_run: bool,
    ) -> Result<ImportReport> {
        let given = file.query.iter().map(|(name, value)| (*name, value.as_deref()));
        let query: Vec<_> = given.chain([("dryRun", dry_run.then_some("1"))]).collect();
        let path = with_query(&format!("/api/contracts/{id}/recipients"), &query);
        let request = self.http.post(format!("{}{path}", self.base)).bearer_auth(&self.key);
        let request = request.timeout(LARGE).header(CONTENT_TYPE, file.kind).body(file.bytes);
        let response = request.send().await.map_err(|source| self.no_answer(source))?;
        self.read(&path, Self::accepted(&path, response).await?).await
    }

    /// A page of recipients, by position.
    pub async fn recipients(
        &self,
        id: CampaignId,
        query: &RecipientQuery,
    ) -> Result<RecipientPage> {
        let after = query.after.map(|position| position.to_string());
        let limit = query.limit.map(|limit| limit.to_string());
        let parameters = [
            ("state", query.state.as_deref()),
            ("code", query.code.as_deref()),
            ("after", after.as_deref()),
            ("limit", limit.as_deref()),
        ];
        self.get(&with_query(&format!("/api/contracts/{id}/recipients"), &parameters)).await
    }

    /// A recipient with every attempt.
    pub async fn recipient(&self, id: CampaignId, recipient: RecipientId) -> Result<RecipientLog> {
        self.get(&format!("/api/contracts/{id}/recipients/{recipient}")).await
    }

    /// What has become of a campaign.
    pub async fn contract_report(&self, id: CampaignId) -> Result<Report> {
        self.get(&format!("/api/contracts/{id}/report")).await
    }

    /// The same as CSV, a row a recipient.
    pub async fn contract_report_csv(&self, id: CampaignId) -> Result<Pieces> {
        self.pieces(&format!("/api/contracts/{id}/report.csv")).await
    }

    /// Makes an account.
    pub async fn create_account(&self, account: &NewAccount) -> Result<Account> {
        self.post("/api/accounts", account).await
    }

    /// A page of accounts, sorted by id.
    pub async fn accounts(&self, after: Option<&AccountId>) -> Result<AccountPage> {
        let after = after.map(AccountId::as_str);
        self.get(&with_query("/api/accounts", &[("after", after)])).await
    }

    /// An account.
    pub async fn account(&self, id: &AccountId) -> Result<Account> {
        self.get(&format!("/api/accounts/{}", segment(id.as_str()))).await
    }

    /// Asks the account's provider whether its credentials are right.
    pub async fn check_account(&self, id: &AccountId) -> Result<AccountCheck> {
        self.post(&format!("/api/accounts/{}/check", segment(id.as_str())), &Nothing {}).await
    }

    /// Deletes an account.
    pub async fn delete_account(&self, id: &AccountId) -> Result<()> {
        let path = format!("/api/accounts/{}", segment(id.as_str()));
        self.delete::<Value>(&path).await.map(drop)
    }

    /// A page of suppressed addresses.
    pub async fn suppressions(
        &self,
        account: Option<&AccountId>,
        after: Option<&str>,
    ) -> Result<SuppressionPage> {
        let query = [("account", account.map(AccountId::as_str)), ("after", after)];
        self.get(&with_query("/api/suppressions", &query)).await
    }

    /// Suppresses addresses, for one account or for all of the caller.
    pub async fn suppress(
        &self,
        addresses: &[String],
        account_id: Option<&AccountId>,
        reason: Option<SuppressionReason>,
    ) -> Result<SuppressionsAdded> {
        self.post("/api/suppressions", &Suppress { addresses, account_id, reason }).await
    }

    /// Lets an address get messages again.
    pub async fn unsuppress(&self, address: &str, account: Option<&AccountId>) -> Result<()> {
        let query = [("address", Some(address)), ("account", account.map(AccountId::as_str))];
        self.delete::<Value>(&with_query("/api/suppressions", &query)).await.map(drop)
    }
}
