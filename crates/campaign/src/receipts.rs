//! Receipts: requests of providers that tell what became of messages, verified and applied.
//!
//! ```text
//!   request ──▶ channel: signature verified, body read ──▶ receipts ──▶ one transaction, synced ──▶ answered 200
//!                                                      └─▶ wishes ────▶ another one, synced ────┘
//! ```
//! A process that dies before the answer gets the request again. A receipt that is applied twice changes nothing. Wishes could:
//! stop, start, and stop once more, hours later. So an update that its provider numbers is remembered with what it changes.

use std::collections::BTreeSet;

use stampede_channel::{Incoming, Notice, Refused, Status};
use stampede_model::CampaignId;
use stampede_model::campaign::{AccountId, Channel, SuppressionReason};
use stampede_store::{Account, Receipt, ReceiptEffect, ReceiptStatus, Suppression, Wishes};

use crate::{Campaigns, Error, now, snapshot, texts};

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
    /// The channel of the account has no such requests.
    NotFound,
}

/// The account that requests of a provider come to.
#[derive(Debug, Clone)]
pub struct Hook(Account);

impl Campaigns {
    /// The account that requests of this channel's provider come to; `None`: there is no such account with this channel.
    pub async fn hook(&self, id: &AccountId, channel: Channel) -> Result<Option<Hook>, Error> {
        let found = self.shared.store.account(id).await?;
        Ok(found.filter(|account| account.channel == channel).map(Hook))
    }

    /// Applies the receipts of one request. A request that comes again, or in another order, changes nothing twice.
    pub async fn receive(
        &self,
        Hook(account): &Hook,
        request: &Incoming<'_>,
    ) -> Result<Received, Error> {
        let store = &self.shared.store;
        let sender = snapshot::sender(store, account).await?;
        let received = match stampede_channel::receipts(&sender, request) {
            Ok(received) => received,
            Err(Refused::NotOffered) => return Ok(Received::NotFound),
            Err(Refused::Malformed(why)) => return Ok(Received::Unreadable(why)),
            Err(refused @ (Refused::NoSignature | Refused::WrongSignature)) => {
                return Ok(Received::Forged(refused.to_string()));
            }
        };
        let Sorted { receipts, addresses, mut wishes } = sorted(account, received);
        let effects = store.apply_receipts(&receipts, now()).await?;
        wishes.stops.extend(without_row(account, &receipts, &addresses, &effects));
        let applied = effects.iter().filter(|it| matches!(it, ReceiptEffect::Applied(_))).count();
        for campaign in failing(&receipts, &effects) {
            self.look_at_failures(campaign);
        }
        let suppressed = store.apply_wishes(&wishes, now()).await?;
        self.count_receipts(account, &receipts, &effects);
        self.count_stops(&wishes.stops, suppressed);
        let statuses = receipts.iter().map(|receipt| word(receipt.status)).collect();
        Ok(Received::Done { applied: applied as u64, suppressed, statuses })
    }

    /// Answers the question with which WhatsApp proves the address of a hook; `None`: the question is not the provider's.
    pub async fn answer_challenge(
        &self,
        Hook(account): &Hook,
        query: &str,
    ) -> Result<Option<String>, Error> {
        let sender = snapshot::sender(&self.shared.store, account).await?;
        Ok(stampede_channel::challenge(&sender, query))
    }
}

/// Campaigns of which recipients have failed.
fn failing(receipts: &[Receipt], effects: &[ReceiptEffect]) -> BTreeSet<CampaignId> {
    let failed = receipts.iter().zip(effects).filter(|(it, _)| it.status == ReceiptStatus::Failed);
    let of = |effect: &ReceiptEffect| match effect {
        ReceiptEffect::Applied(campaign) => Some(*campaign),
        ReceiptEffect::Stale | ReceiptEffect::NotFound => None,
    };
    failed.filter_map(|(_, effect)| of(effect)).collect()
}

/// An address as the ledger writes it. What is none there stays as it is: short numbers, say.
fn normal(account: &Account, address: String) -> String {
    let kind = account.channel.address_kind();
    texts::normalise(kind, None, &address).unwrap_or(address)
}

/// What a request tells.
struct Sorted {
    receipts: Vec<Receipt>,
    /// The addresses of each receipt, as its provider writes them.
    addresses: Vec<Vec<String>>,
    /// What people want.
    wishes: Wishes,
}

/// An address gets nothing any more from an account.
fn stop(account: &Account, address: String, reason: SuppressionReason) -> Suppression {
    Suppression {
        owner: account.owner.as_deref().unwrap_or(Suppression::EVERYBODY).to_owned(),
        account: Some(account.id.clone()),
        address,
        reason,
        since: now(),
        by: format!("{} receipt", account.channel.as_str()),
    }
}

/// The suppressions that receipts without a recipient ask for: the campaign may be deleted. Of a recipient that is found, the store
/// suppresses the address of its row.
fn without_row(
    account: &Account,
    receipts: &[Receipt],
    addresses: &[Vec<String>],
    effects: &[ReceiptEffect],
) -> Vec<Suppression> {
    let told = receipts.iter().zip(addresses).zip(effects);
    let lost = told.filter(|(_, effect)| **effect == ReceiptEffect::NotFound);
    lost.filter_map(|((receipt, addresses), _)| Some((receipt.suppress?, addresses)))
        .flat_map(|(reason, addresses)| addresses.iter().map(move |address| (reason, address)))
        .map(|(reason, address)| stop(account, normal(account, address.clone()), reason))
        .collect()
}

/// Receipts, and what people want. The last wish of an address counts.
fn sorted(account: &Account, received: stampede_channel::Received) -> Sorted {
    let (mut receipts, mut all_addresses) = (Vec::new(), Vec::new());
    let (stops, starts) = (Vec::new(), Vec::new());
    let mut wishes = Wishes { account: account.id.clone(), update: received.update, stops, starts };
    for notice in received.notices {
        match notice {
            Notice::Receipt {
                recipient,
                provider_id,
                status,
                code,
                detail,
                is_bounce,
                suppress,
                addresses,
                at,
            } => {
                all_addresses.push(addresses);
                let (account, status) = (account.id.clone(), stored(status));
                receipts.push(Receipt {
                    account,
                    recipient,
                    provider_id,
                    status,
                    code,
                    detail,
                    is_bounce,
                    suppress,
                    at,
                });
            }
            Notice::Stop { address, reason } => {
                let address = normal(account, address);
                wishes.starts.retain(|other| *other != address);
                wishes.stops.retain(|other| other.address != address);
                wishes.stops.push(stop(account, address, reason));
            }
            Notice::Start { address } => {
                let address = normal(account, address);
                wishes.stops.retain(|stop| stop.address != address);
                wishes.starts.retain(|other| *other != address);
                wishes.starts.push(address);
            }
        }
    }
    Sorted { receipts, addresses: all_addresses, wishes }
}

fn stored(status: Status) -> ReceiptStatus {
    match status {
        Status::Sent => ReceiptStatus::Sent,
        Status::Delivered => ReceiptStatus::Delivered,
        Status::Read => ReceiptStatus::Read,
        Status::Failed => ReceiptStatus::Failed,
    }
}

pub(crate) fn word(status: ReceiptStatus) -> &'static str {
    match status {
        ReceiptStatus::Sent => "sent",
        ReceiptStatus::Delivered => "delivered",
        ReceiptStatus::Read => "read",
        ReceiptStatus::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use stampede_model::campaign::{Channel, Pacing, SuppressionReason};

    use super::*;

    fn account(owner: Option<&str>) -> Account {
        account_of(Channel::Telegram, owner)
    }

    fn account_of(channel: Channel, owner: Option<&str>) -> Account {
        Account {
            id: "bot".parse().unwrap(),
            owner: owner.map(str::to_owned),
            name: "Bot".to_owned(),
            channel,
            settings: "{}".to_owned(),
            pacing: Pacing::default(),
            country: None,
            time_zone: None,
            blocked: None,
            first_sent_at: None,
            created_at: now(),
            updated_at: now(),
        }
    }

    #[test]
    fn the_last_wish_of_an_address_counts() {
        let stop = |address: &str| Notice::Stop {
            address: address.to_owned(),
            reason: SuppressionReason::Stop,
        };
        let start = |address: &str| Notice::Start { address: address.to_owned() };
        let notices = vec![stop("1"), start("1"), start("2"), stop("2"), stop("3")];
        let received = stampede_channel::Received { notices, update: Some(7) };
        let Sorted { receipts, wishes, .. } = sorted(&account(Some("ann")), received);
        assert_eq!((receipts, wishes.update), (Vec::new(), Some(7)));
        let stopped: Vec<&str> = wishes.stops.iter().map(|stop| stop.address.as_str()).collect();
        assert_eq!(stopped, ["2", "3"]);
        assert_eq!(wishes.starts, ["1"]);
    }

    #[test]
    fn addresses_are_suppressed_as_the_ledger_writes_them() {
        for (channel, told, wanted) in [
            (Channel::Smtp, " Zoë@MÜNCHEN.de ", "Zoë@xn--mnchen-3ya.de"),
            (Channel::Smtp, "зоя@почта.рф", "зоя@xn--80a1acny.xn--p1ai"),
            (Channel::Whatsapp, "+491701234567", "+491701234567"),
            (Channel::Whatsapp, "+525512345678", "+525512345678"),
            (Channel::Sms, "+4930901820", "+4930901820"),
            (Channel::Sms, "72345", "72345"),
            (Channel::Telegram, "-100123", "-100123"),
        ] {
            let address = told.to_owned();
            let stop = Notice::Stop { address, reason: SuppressionReason::Stop };
            let wishes = sorted(&account_of(channel, Some("ann")), vec![stop].into()).wishes;
            let stopped: Vec<&str> = wishes.stops.iter().map(|it| it.address.as_str()).collect();
            assert_eq!(stopped, [wanted], "{told}");
        }
    }

    #[test]
    fn campaigns_are_looked_at_when_receipts_make_recipients_fail() {
        let receipt = |status| Receipt {
            account: "bot".parse().unwrap(),
            recipient: None,
            provider_id: Some("1".to_owned()),
            status,
            code: None,
            detail: None,
            is_bounce: false,
            suppress: None,
            at: now(),
        };
        let receipts =
            [ReceiptStatus::Failed, ReceiptStatus::Failed, ReceiptStatus::Read].map(receipt);
        let (one, two) = (CampaignId::generate(), CampaignId::generate());
        let of = |ids: [ReceiptEffect; 3]| Vec::from_iter(failing(&receipts, &ids));
        let (first, second) = (ReceiptEffect::Applied(one), ReceiptEffect::Applied(two));
        assert_eq!(of([first, first, second]), [one]);
        assert_eq!(of([ReceiptEffect::Stale, first, second]), [one]);
        assert_eq!(of([ReceiptEffect::Stale, ReceiptEffect::NotFound, first]), []);
    }

    #[test]
    fn a_receipt_without_a_row_still_suppresses_the_address_that_its_provider_names() {
        let account = account_of(Channel::Whatsapp, Some("ann"));
        let receipt = |address: &str, suppress| Notice::Receipt {
            recipient: None,
            provider_id: Some("wamid.1".to_owned()),
            status: Status::Failed,
            code: None,
            detail: None,
            is_bounce: false,
            suppress,
            addresses: vec![address.to_owned()],
            at: now(),
        };
        let said_stop = Some(SuppressionReason::Stop);
        let notices = vec![
            receipt("+491701234567", said_stop),
            receipt("+491701234568", None),
            receipt("+491701234569", said_stop),
        ];
        let Sorted { receipts, addresses, .. } = sorted(&account, notices.into());
        let stale = ReceiptEffect::Stale;
        let effects = [ReceiptEffect::NotFound, ReceiptEffect::NotFound, stale];
        let stops = without_row(&account, &receipts, &addresses, &effects);
        let [stopped] = stops.as_slice() else { panic!("{stops:?}") };
        assert_eq!((stopped.address.as_str(), stopped.owner.as_str()), ("+491701234567", "ann"));
        assert_eq!(stopped.reason, SuppressionReason::Stop);
    }

    #[test]
    fn who_stops_a_shared_account_stops_it_for_everybody() {
        let stop = || Notice::Stop { address: "1".to_owned(), reason: SuppressionReason::Blocked };
        for (owner, wanted) in [(Some("ann"), "ann"), (None, Suppression::EVERYBODY)] {
            let wishes = sorted(&account(owner), vec![stop()].into()).wishes;
            let [stopped] = wishes.stops.as_slice() else { panic!("{wishes:?}") };
            assert_eq!(stopped.owner, wanted);
            assert_eq!(stopped.account.as_ref().map(AccountId::as_str), Some("bot"));
        }
    }
}
