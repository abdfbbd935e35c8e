//! Check-in: lists, gates and devices; scans and what they change; what scanners and organisers read.
//!
//! ```text
//!   CheckInSetup    lists, gates, devices
//!   Blocks          tickets that are refused until the organiser lifts the block
//!   Scans           a scan is decided and recorded, undone, read
//!   CheckInReports  everything a scanner needs without a network; figures for organisers
//! ```
//!
//! Every event has a counter. A change that scanners have to know takes the counter's next number in its own
//! transaction, with a lock until the commit: scans, undone scans, changed lists and gates here, and by triggers
//! void, reissued and deleted tickets and new and revoked keys. So the numbers are in the order of commits: who
//! has read number 7 has seen everything up to 7.
//!
//! All changes are synced: a guest was let in because of them.

mod blocks;
mod devices;
mod reports;
mod scans;

pub use blocks::Block;
pub use devices::{Device, NewDevice};
pub use reports::{AdmissionMark, Figures, GateFigures, Minute, Snapshot, TicketMark};
pub use scans::{
    NewScan, Offline, Recorded, Scan, ScanAnswer, ScanFilter, ScannedTicket, Scanner, Shown, Undo,
};

use async_trait::async_trait;
use stampede_model::{
    CheckInList, EventId, Gate, GateId, KeyHash, KeyId, ListId, ScanId, TicketId, Timestamp,
};

use crate::{Result, Versioned};

/// Lists, gates and devices of events.
#[async_trait]
pub trait CheckInSetup: Send + Sync {
    /// Reads the lists of an event, the built-in one first, then by age; none if there is no such event.
    async fn check_in_lists(&self, event: EventId) -> Result<Vec<CheckInList>>;

    /// Reads one list; the built-in list has its event's id.
    async fn check_in_list(&self, id: ListId) -> Result<Option<CheckInList>>;

    /// Writes a new list, or changes one if its `updated_at` is still `seen`; returns `false` if it has changed
    /// since, or if the event is gone. Synced.
    async fn put_check_in_list(&self, list: &CheckInList, seen: Option<Timestamp>) -> Result<bool>;

    /// Deletes a list with the state of its tickets; devices that used it use the built-in one. The
    /// built-in one itself stays, as if there were none. Synced.
    async fn delete_check_in_list_as_seen(
        &self,
        id: ListId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<()>>;

    /// Deletes any version of a list; `false` if there is none, or if it is the built-in one.
    async fn delete_check_in_list(&self, id: ListId) -> Result<bool> {
        Ok(self.delete_check_in_list_as_seen(id, None).await?.done().is_some())
    }

    /// Reads the gates of an event, by age.
    async fn gates(&self, event: EventId) -> Result<Vec<Gate>>;

    /// Reads one gate.
    async fn gate(&self, id: GateId) -> Result<Option<Gate>>;

    /// Writes a gate, new or renamed; returns `false` if its event is gone. Synced.
    async fn put_gate(&self, gate: &Gate) -> Result<bool>;

    /// Renames a gate. Its new version is [`rules::later`](crate::rules::later). Synced.
    async fn rename_gate_as_seen(
        &self,
        gate: &Gate,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<Gate>>;

    /// Deletes a gate; scans keep its id. Synced.
    async fn delete_gate_as_seen(
        &self,
        id: GateId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<()>>;

    /// Deletes any version of a gate; `false` if there is none.
    async fn delete_gate(&self, id: GateId) -> Result<bool> {
        Ok(self.delete_gate_as_seen(id, None).await?.done().is_some())
    }

    /// Writes a device with its key. Synced.
    async fn insert_device(&self, device: &NewDevice, now: Timestamp) -> Result<()>;

    /// Reads a device by its key's id.
    async fn device(&self, key: KeyId) -> Result<Option<Device>>;

    /// Reads the devices of an event, by age.
    async fn devices(&self, event: EventId) -> Result<Vec<Device>>;

    /// Revokes a device's key. Idempotent. Synced.
    async fn revoke_device_as_seen(
        &self,
        key: KeyId,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<()>>;

    /// Revokes the key of any version of a device; `false` if there is no such device.
    async fn revoke_device(&self, key: KeyId, now: Timestamp) -> Result<bool> {
        Ok(self.revoke_device_as_seen(key, None, now).await?.done().is_some())
    }

    /// Reads the device with this enrolment code; `None` if the code is wrong, used or too old.
    async fn device_of_code(&self, code: &KeyHash, now: Timestamp) -> Result<Option<Device>>;

    /// Gives the device with this enrolment code another key and uses the code up; `None` if the code is wrong,
    /// used or too old, or if the device was revoked. Synced.
    async fn enrol_device(
        &self,
        code: &KeyHash,
        key: &KeyHash,
        now: Timestamp,
    ) -> Result<Option<Device>>;

    /// Notes that a device was seen, and how many scans it has not sent yet.
    ///
    /// Relaxed: the device shows up again.
    async fn touch_device(&self, key: KeyId, unsent: Option<u32>, now: Timestamp) -> Result<()>;
}

/// Tickets that are blocked.
#[async_trait]
pub trait Blocks: Send + Sync {
    /// Blocks a ticket of an event, or changes the reason of its block. A ticket without a block is in no version that
    /// was seen. Synced.
    async fn block_ticket_as_seen(
        &self,
        event: EventId,
        ticket: TicketId,
        reason: Option<&str>,
        seen: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Versioned<Block>>;

    /// Blocks a ticket of an event, or changes any version of its block; `None` if the event has no such ticket.
    async fn block_ticket(
        &self,
        event: EventId,
        ticket: TicketId,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Block>> {
        Ok(self.block_ticket_as_seen(event, ticket, reason, None, now).await?.done())
    }

    /// Lifts the block of a ticket. Synced.
    async fn unblock_ticket_as_seen(
        &self,
        event: EventId,
        ticket: TicketId,
        seen: Option<Timestamp>,
    ) -> Result<Versioned<()>>;

    /// Lifts any version of a ticket's block; `false` if there is none.
    async fn unblock_ticket(&self, event: EventId, ticket: TicketId) -> Result<bool> {
        Ok(self.unblock_ticket_as_seen(event, ticket, None).await?.done().is_some())
    }

    /// Reads the block of a ticket.
    async fn block(&self, ticket: TicketId) -> Result<Option<Block>>;

    /// Reads the blocked tickets of an event, by number.
    async fn blocks(&self, event: EventId) -> Result<Vec<Block>>;

    /// Returns whether a ticket is blocked.
    async fn is_blocked(&self, ticket: TicketId) -> Result<bool>;
}

/// Scans and their log.
#[async_trait]
pub trait Scans: Send + Sync {
    /// Decides and records scans in one transaction, in the order given; one answer for each.
    ///
    /// A nonce that was used before gives the answer of that time. A scan that is refused is recorded too. An
    /// offline scan that let a guest in is counted, whatever is found; if it should not have let the guest in, it
    /// is in conflict. A scan without a nonce is decided and not recorded. Synced.
    async fn record_scans(&self, scans: &[NewScan], now: Timestamp) -> Result<Vec<Recorded>>;

    /// Undoes a scan that let a guest pass: the entry can be used again. Idempotent. Synced.
    async fn undo_scan(&self, id: ScanId, note: Option<&str>, now: Timestamp) -> Result<Undo>;

    /// Reads one scan.
    async fn scan(&self, id: ScanId) -> Result<Option<Scan>>;

    /// Reads the latest scan of a scanner with this nonce.
    async fn scan_of_nonce(&self, actor: &str, nonce: &str) -> Result<Option<Scan>>;

    /// Reads a page of an event's log, newest first; `before` is the `seq` of the last scan of the page before.
    async fn scans(
        &self,
        event: EventId,
        filter: &ScanFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Scan>>;

    /// Reads offline scans that let in a guest who should not have been let in, newest first, each with the scan
    /// that it conflicts with. Pairs of which one was undone are left out.
    async fn scan_conflicts(&self, event: EventId, limit: u32)
    -> Result<Vec<(Scan, Option<Scan>)>>;
}

/// What scanners and organisers read.
#[async_trait]
pub trait CheckInReports: Send + Sync {
    /// Reads everything that a scanner needs, or only tickets that changed after `since`; `None` if there is no such
    /// event. Everything up to the snapshot's `seq` is in it; a little more may be.
    async fn check_in_snapshot(
        &self,
        event: EventId,
        since: Option<u64>,
    ) -> Result<Option<Snapshot>>;

    /// Counts the scans of an event; minutes are counted from `minutes_since` on.
    async fn check_in_figures(&self, event: EventId, minutes_since: Timestamp) -> Result<Figures>;
}
