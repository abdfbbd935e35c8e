//! Receipts: requests of providers that tell what became of messages, verified and applied.
//!
//! ```text
//!   request ──▶ channel: signature verified, body read ──▶ notices ──▶ one transaction, synced ──▶ answered 200
//! ```
//! A process that dies before the answer gets the request again: applying it twice changes nothing.

use stampede_channel::{Incoming, Notice, Refused, Status};
use stampede_model::campaign::AccountId;
use stampede_store::{Account, Receipt, ReceiptEffect, ReceiptStatus, Suppression};

use crate::{Campaigns, Error, now, snapshot};

/// The result of a request of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// It is genuine, and everything in it is committed.
    Done {
        /// Recipients that changed.
        applied: u64,
        /// Addresses that get nothing any more.
        suppressed: u64,
        /// The words of the receipts: `sent`, `delivered`, `read`, `failed`.
        statuses: Vec<&'static str>,
    },
    /// It is not the provider's, for this reason.
    Forged(String),
    /// It is genuine but cannot be read.
    Unreadable(String),
    /// There is no such account, or its channel has no such requests.
    NotFound,
}

impl Campaigns {
    /// Applies the receipts of one request. A request that comes again, or in another order, changes nothing twice.
    pub async fn receive(
        &self,
        account: &AccountId,
        request: &Incoming<'_>,
    ) -> Result<Received, Error> {
        let store = &self.shared.store;
        let Some(account) = store.account(account).await? else { return Ok(Received::NotFound) };
        let sender = snapshot::sender(store, &account).await?;
        let notices = match stampede_channel::receipts(&sender, request) {
            Ok(notices) => notices,
            Err(Refused::NotOffered) => return Ok(Received::NotFound),
            Err(Refused::Malformed(why)) => return Ok(Received::Unreadable(why)),
            Err(refused @ (Refused::NoSignature | Refused::WrongSignature)) => {
                return Ok(Received::Forged(refused.to_string()));
            }
        };
        let (receipts, stops, starts) = sorted(&account, notices);
        let effects = store.apply_receipts(&receipts, now()).await?;
        let applied = effects.iter().filter(|effect| **effect == ReceiptEffect::Applied).count();
        let suppressed = store.add_suppressions(&stops).await?;
        for suppression in starts {
            let Suppression { owner, account, address, .. } = suppression;
            store.remove_suppression(&owner, account.as_ref(), &address).await?;
        }
        let statuses = receipts.iter().map(|receipt| word(receipt.status)).collect();
        Ok(Received::Done { applied: applied as u64, suppressed, statuses })
    }

    /// Answers the question with which WhatsApp proves the address of a hook; `None`: the question is not the provider's.
    pub async fn answer_challenge(
        &self,
        account: &AccountId,
        query: &str,
    ) -> Result<Option<String>, Error> {
        let store = &self.shared.store;
        let Some(account) = store.account(account).await? else { return Ok(None) };
        let sender = snapshot::sender(store, &account).await?;
        Ok(stampede_channel::challenge(&sender, query))
    }
}

/// Receipts, addresses that want no more messages, and those that want some again.
fn sorted(
    account: &Account,
    notices: Vec<Notice>,
) -> (Vec<Receipt>, Vec<Suppression>, Vec<Suppression>) {
    let (mut receipts, mut stops, mut starts) = (Vec::new(), Vec::new(), Vec::new());
    let of = |address: String, reason| Suppression {
        // Everybody may use an account without an owner: its suppressions are its own.
        owner: account.owner.clone().unwrap_or_default(),
        account: Some(account.id.clone()),
        address,
        reason,
        since: now(),
        by: format!("{} receipt", account.channel.as_str()),
    };
    for notice in notices {
        match notice {
            Notice::Receipt { recipient, provider_id, status, code, detail, suppress, at } => {
                let (account, status) = (account.id.clone(), stored(status));
                receipts.push(Receipt {
                    account,
                    recipient,
                    provider_id,
                    status,
                    code,
                    detail,
                    suppress,
                    at,
                });
            }
            Notice::Stop { address, reason } => stops.push(of(address, reason)),
            Notice::Start { address } => {
                starts.push(of(address, stampede_model::campaign::SuppressionReason::Stop));
            }
        }
    }
    (receipts, stops, starts)
}

fn stored(status: Status) -> ReceiptStatus {
    match status {
        Status::Sent => ReceiptStatus::Sent,
        Status::Delivered => ReceiptStatus::Delivered,
        Status::Read => ReceiptStatus::Read,
        Status::Failed => ReceiptStatus::Failed,
    }
}

fn word(status: ReceiptStatus) -> &'static str {
    match status {
        ReceiptStatus::Sent => "sent",
        ReceiptStatus::Delivered => "delivered",
        ReceiptStatus::Read => "read",
        ReceiptStatus::Failed => "failed",
    }
}
