//! The decisions about a group of scans, one by one, each on top of the ones before.

use stampede_model::{
    Admission, AdmissionRules, GateId, ListId, Occasion, Presented, ScanId, ScanKind, ScanResult,
    Ticket, TicketId, Timestamp, decide,
};

use super::group::{Group, State, nonce_key};
use crate::{NewScan, Recorded, Scan, ScanAnswer, ScannedTicket, Shown};

impl Group {
    /// Decides all scans, in order.
    pub(super) fn decide_all(&mut self, scans: &[NewScan], now: Timestamp) -> Vec<Recorded> {
        let mut answers: Vec<Recorded> =
            scans.iter().map(|scan| self.decide_one(scan, now)).collect();
        // A scan that a later one of the same group conflicts with.
        for answer in &mut answers {
            if let Recorded::Decided(answer) = answer
                && let Some(scan) = self.scans.get(&answer.scan.id)
            {
                answer.scan.conflict = scan.conflict;
                answer.scan.conflicts_with = scan.conflicts_with;
            }
        }
        answers
    }

    fn decide_one(&mut self, scan: &NewScan, now: Timestamp) -> Recorded {
        if !self.counters.contains_key(&scan.event_id) {
            return Recorded::NoSuchEvent;
        }
        // First: an answered scan gets its answer, also when its list or gate is gone since.
        let ticket = self.ticket_of(scan).cloned();
        if let Some(nonce) = &scan.nonce {
            let key = (scan.event_id, scan.scanner.actor(), nonce.clone());
            if let Some(id) = self.nonces.get(&key).copied() {
                return self.replay(id, scan, ticket.as_ref().map(|ticket| ticket.id));
            }
        }
        let (name, list, gate) = self.place_of(scan);
        let found = self.lists.get(&list).filter(|list| list.event_id == scan.event_id);
        // A guest whom a device let in is inside: a list that is gone is no reason to forget it.
        let main = || scan.offline.and_then(|_| self.lists.get(&ListId::main_of(scan.event_id)));
        let Some(list) = found.or_else(main).cloned() else { return Recorded::NoSuchList };
        let is_foreign = gate.is_some_and(|gate| {
            self.gates.get(&gate).is_none_or(|gate| gate.event_id != scan.event_id)
        });
        if is_foreign && scan.offline.is_none() {
            return Recorded::NoSuchGate;
        }
        let scan = self.decided(scan, ticket.as_ref(), &list.rules, now, |empty| Scan {
            list_id: list.id,
            gate_id: gate,
            device_name: name,
            ..empty
        });
        self.answer(scan, Answered::Now)
    }

    /// The scanner's name, the list and the gate of a scan.
    fn place_of(&self, scan: &NewScan) -> (String, ListId, Option<GateId>) {
        let device = scan.scanner.key.and_then(|key| self.devices.get(&key));
        let name = device.map(|device| device.name.clone()).filter(|name| !name.is_empty());
        let list = scan.list.or(device.and_then(|device| device.list));
        (
            name.unwrap_or_else(|| scan.scanner.user.clone()),
            list.unwrap_or_else(|| ListId::main_of(scan.event_id)),
            scan.gate.or(device.and_then(|device| device.gate)),
        )
    }

    /// The ticket of a scan, if it is one of the event.
    fn ticket_of(&self, scan: &NewScan) -> Option<&Ticket> {
        let id = match scan.shown {
            Shown::Token(claims) => *self.by_serial.get(&(claims.event, claims.serial))?,
            Shown::Ticket(id) => id,
            Shown::Refused(_) => return None,
        };
        self.tickets.get(&id).filter(|ticket| ticket.event_id == scan.event_id)
    }

    /// Decides a scan that is new, and applies it unless it is only a question.
    fn decided(
        &mut self,
        scan: &NewScan,
        ticket: Option<&Ticket>,
        rules: &AdmissionRules,
        now: Timestamp,
        placed: impl FnOnce(Scan) -> Scan,
    ) -> Scan {
        let mut new = placed(unplaced(scan, ticket, now));
        let key = ticket.map(|ticket| (new.list_id, ticket.id));
        let mut state = key.and_then(|key| self.states.get(&key).cloned()).unwrap_or_default();
        let found = self.found(scan, ticket, rules, state.admission);
        let let_in = match scan.offline {
            None => found == ScanResult::Ok,
            Some(offline) => offline.verdict == ScanResult::Ok,
        };
        // Of a guest whom the device sent away, the device's reason is what happened.
        let refused = scan.offline.map(|offline| offline.verdict);
        new.result = refused.filter(|_| !let_in).unwrap_or(found);
        new.counted = let_in && ticket.is_some();
        new.conflict = let_in && found != ScanResult::Ok;
        if new.result == ScanResult::AlreadyRedeemed {
            new.previous = state.last_scan;
        }
        if new.conflict && found == ScanResult::AlreadyRedeemed {
            new.conflicts_with = state.last_scan;
        }
        if new.counted {
            state.admission = state.admission.passed(scan.kind);
        }
        if ticket.is_some() {
            new.entries = Some(rules.used(state.admission));
            new.entries_allowed = Some(rules.entries);
            new.inside = Some(state.admission.is_inside());
        }
        if scan.nonce.is_some() {
            self.keep(&mut new, key, state, ticket);
        }
        new
    }

    fn found(
        &self,
        scan: &NewScan,
        ticket: Option<&Ticket>,
        rules: &AdmissionRules,
        state: Admission,
    ) -> ScanResult {
        let claims = match scan.shown {
            Shown::Refused(reason) => return reason,
            Shown::Token(claims) => Some(claims),
            Shown::Ticket(_) => None,
        };
        let presented = ticket.map(|ticket| Presented {
            status: ticket.status,
            generation: ticket.generation,
            shown_generation: claims.map(|claims| claims.generation),
            key_is_revoked: claims
                .is_some_and(|claims| self.revoked_keys.contains(&(claims.event, claims.key))),
            is_blocked: self.blocked.contains(&ticket.id),
            batch: ticket.batch_id,
            seat: ticket.holder.seat.as_deref(),
        });
        decide(presented, rules, state, Occasion { kind: scan.kind, at: scan.at })
    }

    /// Gives a new scan its number and notes what it changes.
    fn keep(
        &mut self,
        new: &mut Scan,
        key: Option<(ListId, TicketId)>,
        mut state: State,
        ticket: Option<&Ticket>,
    ) {
        let seq = self.counters.entry(new.event_id).or_default();
        *seq += 1;
        new.seq = *seq;
        if let (true, Some(key), Some(ticket)) = (new.counted, key, ticket) {
            if new.kind == ScanKind::Entry {
                state.last_scan = Some(new.id);
            }
            state.changed = Some((new.event_id, ticket.serial, new.seq));
            self.states.insert(key, state);
        }
        self.note_conflict(new);
        self.nonces.insert(nonce_key(new), new.id);
        self.scans.insert(new.id, new.clone());
        self.new.push(new.id);
    }

    /// The scan that another one conflicts with points back.
    fn note_conflict(&mut self, scan: &Scan) {
        if let Some(other) = scan.conflicts_with {
            self.conflicts.push((other, scan.id));
            if let Some(other) = self.scans.get_mut(&other) {
                other.conflict = true;
                other.conflicts_with.get_or_insert(scan.id);
            }
        }
    }

    /// The answer that a nonce got before.
    fn replay(&mut self, id: ScanId, scan: &NewScan, ticket: Option<TicketId>) -> Recorded {
        let Some(stored) = self.scans.get(&id).cloned() else { return Recorded::NonceUsed };
        let same_ticket = stored.asked == scan.asked
            || (ticket.is_some() && stored.ticket.as_ref().map(|ticket| ticket.id) == ticket);
        if !same_ticket || stored.kind != scan.kind {
            return Recorded::NonceUsed;
        }
        let let_in = scan.offline.is_some_and(|offline| offline.verdict == ScanResult::Ok);
        let has_ticket = stored.ticket.as_ref().is_some_and(|it| self.tickets.contains_key(&it.id));
        if let_in && !stored.counted && has_ticket && self.lists.contains_key(&stored.list_id) {
            let amended = self.amend(stored, scan);
            return self.answer(amended, Answered::Before);
        }
        self.answer(stored, Answered::Before)
    }

    /// The server had refused a scan, but its answer did not arrive, and the device let the guest in.
    fn amend(&mut self, mut scan: Scan, sent: &NewScan) -> Scan {
        scan.counted = true;
        scan.conflict = scan.result != ScanResult::Ok;
        scan.offline = true;
        if let Some(ticket) = &scan.ticket {
            let state = self.states.entry((scan.list_id, ticket.id)).or_default();
            if scan.result == ScanResult::AlreadyRedeemed {
                scan.conflicts_with = state.last_scan;
            }
            let seq = self.counters.entry(scan.event_id).or_default();
            *seq += 1;
            state.admission = state.admission.passed(sent.kind);
            state.changed = Some((scan.event_id, ticket.serial, *seq));
            if sent.kind == ScanKind::Entry {
                state.last_scan = Some(scan.id);
            }
        }
        self.note_conflict(&scan);
        self.scans.insert(scan.id, scan.clone());
        self.amended.push(scan.id);
        scan
    }

    fn answer(&self, scan: Scan, answered: Answered) -> Recorded {
        let gate = |id: Option<GateId>| id.and_then(|id| self.gates.get(&id)).cloned();
        let previous = scan.previous.and_then(|id| self.scans.get(&id)).cloned();
        Recorded::Decided(Box::new(ScanAnswer {
            list: self.lists.get(&scan.list_id).cloned(),
            gate: gate(scan.gate_id),
            previous: previous.map(|previous| {
                let at = gate(previous.gate_id);
                (previous, at)
            }),
            replayed: answered == Answered::Before,
            simulated: scan.nonce.is_empty(),
            scan,
        }))
    }

    /// A scan of this group, to be written.
    pub(super) fn scan(&self, id: &ScanId) -> Option<&Scan> {
        self.scans.get(id)
    }
}

/// When a scan was decided.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answered {
    Now,
    Before,
}

/// A scan without its place and without a decision.
fn unplaced(scan: &NewScan, ticket: Option<&Ticket>, now: Timestamp) -> Scan {
    Scan {
        id: scan.id,
        seq: 0,
        event_id: scan.event_id,
        list_id: ListId::main_of(scan.event_id),
        gate_id: None,
        key_id: scan.scanner.key,
        actor: scan.scanner.actor(),
        device_name: String::new(),
        nonce: scan.nonce.clone().unwrap_or_default(),
        asked: scan.asked.clone(),
        ticket: ticket.map(|ticket| ScannedTicket {
            id: ticket.id,
            batch_id: ticket.batch_id,
            serial: ticket.serial,
            name: ticket.holder.name.clone(),
            seat: ticket.holder.seat.clone(),
        }),
        kind: scan.kind,
        result: ScanResult::Unknown,
        at: scan.at,
        received_at: now,
        device_at: scan.device_at,
        offline: scan.offline.is_some(),
        counted: false,
        conflict: false,
        conflicts_with: None,
        previous: None,
        entries: None,
        entries_allowed: None,
        inside: None,
        undone_at: None,
        note: None,
    }
}
