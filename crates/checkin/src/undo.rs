//! A scan is undone: somebody scanned the wrong ticket, or let nobody in after all.
//!
//! A device may undo its own scans for [`UNDO_PERIOD`]; who may change the event may undo any scan at any time.

use stampede_model::{Principal, Role, ScanId, UNDO_PERIOD};
use stampede_store::{Scan, Undo};
use stampede_wire::checkin::scans::Undone;

use crate::redeem::scanner;
use crate::{CheckIn, Error, answers, now};

/// Which scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichScan {
    /// The caller's own, by its nonce.
    Nonce(String),
    /// Any, by its id.
    Id(ScanId),
}

/// A request to undo a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoRequest {
    /// Which scan.
    pub which: WhichScan,
    /// Why, for people.
    pub reason: Option<String>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undoing {
    /// It is undone, now or before.
    Done(Box<Undone>),
    /// There is no such scan that the caller may see.
    NotFound,
    /// The scan is another device's.
    NotYours,
    /// A device may undo its scans only for a while.
    TooLate,
    /// The scan was refused: nobody passed.
    NothingToUndo,
    /// The guest has left since; the exit must be undone first.
    ExitFollows,
}

impl CheckIn {
    /// Undoes a scan.
    pub async fn undo(&self, caller: &Principal, request: &UndoRequest) -> Result<Undoing, Error> {
        let store = &self.shared.store;
        let found = match &request.which {
            WhichScan::Nonce(nonce) => store.scan_of_nonce(&scanner(caller).actor(), nonce).await?,
            WhichScan::Id(id) => store.scan(*id).await?,
        };
        let Some(scan) = found else { return Ok(Undoing::NotFound) };
        let Some(event) = store.event(scan.event_id).await? else { return Ok(Undoing::NotFound) };
        if !caller.may_admit(&event.owner, event.id) {
            return Ok(Undoing::NotFound);
        }
        if let Some(refused) = refused(caller, &scan) {
            return Ok(refused);
        }
        Ok(match store.undo_scan(scan.id, request.reason.as_deref(), now()).await? {
            Undo::Done(scan) => {
                Undoing::Done(Box::new(Undone { undone: true, scan: answers::scan(*scan) }))
            }
            Undo::NotFound => Undoing::NotFound,
            Undo::Refused => Undoing::NothingToUndo,
            Undo::ExitFollows => Undoing::ExitFollows,
        })
    }
}

/// Why a device may not undo a scan.
fn refused(caller: &Principal, scan: &Scan) -> Option<Undoing> {
    if caller.role != Role::Scanner {
        return None;
    }
    if scan.actor != scanner(caller).actor() {
        return Some(Undoing::NotYours);
    }
    let age = now().duration_since(scan.received_at);
    let is_old = std::time::Duration::try_from(age).is_ok_and(|age| age > UNDO_PERIOD);
    // Undoing what is undone is not refused: it changes nothing.
    (is_old && scan.undone_at.is_none()).then_some(Undoing::TooLate)
}
