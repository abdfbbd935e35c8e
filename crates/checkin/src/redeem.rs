//! One scan, with the server's decision.

use stampede_model::{EventId, GateId, ListId, Principal, ScanId, ScanKind, Timestamp};
use stampede_store::{NewScan, Offline, Recorded, Scanner};
use stampede_wire::checkin::scans::Redeemed;

use crate::answers;
use crate::present::{Door, Presented};
use crate::test_hooks::hang_at;
use crate::{CheckIn, Error, ShownTicket, now};

/// A scan that the server decides.
#[derive(Debug, Clone)]
pub struct ScanRequest {
    /// What was shown.
    pub shown: ShownTicket,
    /// The event; `None`: the key's, or else the ticket's.
    pub target: Option<EventId>,
    /// The list; `None`: the device's, or else the built-in one.
    pub list: Option<ListId>,
    /// The gate; `None`: the device's.
    pub gate: Option<GateId>,
    /// The client's name of the scan; `None`: only a question.
    pub nonce: Option<String>,
    /// The direction.
    pub kind: ScanKind,
    /// The moment by the device's clock.
    pub device_at: Option<Timestamp>,
}

/// Why a scan was not decided: a mistake of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The caller may not let guests in at the event.
    Forbidden,
    /// There is no such event.
    NoSuchEvent,
    /// The event has no such list.
    NoSuchList,
    /// The event has no such gate.
    NoSuchGate,
    /// The nonce was used for another ticket.
    NonceUsed,
}

/// When a scan happened, and who decided it.
pub(crate) struct Happened {
    pub(crate) at: Timestamp,
    pub(crate) offline: Option<Offline>,
}

/// A scan on its way.
pub(crate) enum OnItsWay {
    /// To be recorded; with the event's name.
    Scan(Box<NewScan>, String),
    /// Answered without a record.
    Answered(Box<Redeemed>),
}

impl CheckIn {
    /// Decides a scan and records it.
    pub async fn redeem(
        &self,
        caller: &Principal,
        request: ScanRequest,
    ) -> Result<Result<Redeemed, Refused>, Error> {
        let target = match self.door(caller, request.target).await? {
            None => None,
            Some(Door::At(event)) => Some(event.id),
            Some(Door::Forbidden) => return Ok(Err(Refused::Forbidden)),
            Some(Door::NotFound) => return Ok(Err(Refused::NoSuchEvent)),
        };
        let happened = Happened { at: now(), offline: None };
        let (scan, name) = match self.on_its_way(caller, target, &request, happened).await? {
            OnItsWay::Scan(scan, name) => (scan, name),
            OnItsWay::Answered(redeemed) => return Ok(Ok(*redeemed)),
        };
        let mut answers =
            self.shared.commits.commit(vec![*scan]).await.map_err(|e| Error::from(&*e))?;
        hang_at("scan-committed").await;
        match answers.pop() {
            Some(recorded) => Ok(answered(recorded, &name)),
            None => Err(Error::Internal("a scan got no answer".to_owned())),
        }
    }

    /// A scan as the store records it.
    pub(crate) async fn on_its_way(
        &self,
        caller: &Principal,
        target: Option<EventId>,
        request: &ScanRequest,
        happened: Happened,
    ) -> Result<OnItsWay, Error> {
        match self.present(caller, target, &request.shown).await? {
            Presented::Nowhere(result) => {
                let simulated = request.nonce.is_none();
                let redeemed = answers::unrecorded(result, request.kind, happened.at, simulated);
                Ok(OnItsWay::Answered(Box::new(redeemed)))
            }
            Presented::At(door, shown) => {
                let scan = NewScan {
                    id: ScanId::generate(),
                    event_id: door.event.id,
                    list: request.list,
                    gate: request.gate,
                    scanner: scanner(caller),
                    nonce: request.nonce.clone(),
                    shown,
                    asked: request.shown.fingerprint(),
                    kind: request.kind,
                    at: happened.at,
                    device_at: request.device_at,
                    offline: happened.offline,
                };
                Ok(OnItsWay::Scan(Box::new(scan), door.event.details.name.clone()))
            }
        }
    }
}

/// Who scans.
pub(crate) fn scanner(caller: &Principal) -> Scanner {
    Scanner { key: caller.key, user: caller.user.clone() }
}

/// The answer for a scan that was recorded, or why it was not.
pub(crate) fn answered(recorded: Recorded, event: &str) -> Result<Redeemed, Refused> {
    match recorded {
        Recorded::Decided(answer) => Ok(answers::redeemed(*answer, event)),
        Recorded::NoSuchEvent => Err(Refused::NoSuchEvent),
        Recorded::NoSuchList => Err(Refused::NoSuchList),
        Recorded::NoSuchGate => Err(Refused::NoSuchGate),
        Recorded::NonceUsed => Err(Refused::NonceUsed),
    }
}
