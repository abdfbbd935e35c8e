//! Lists and gates.

use stampede_model::{
    AdmissionRules, BatchId, CheckInList, EventId, Gate, GateId, ListId, Timestamp,
};
use stampede_store::Versioned;
use stampede_wire::checkin::setup::{Gate as ShownGate, Gates, List, Lists};

use crate::{CheckIn, Error, now};

/// How often a change is tried while others change the same list.
const TRIES: u32 = 5;

/// Fields of a list to be changed; `None`: stays as it is.
#[derive(Debug, Clone, Default)]
pub struct ListChange {
    /// The name.
    pub name: Option<String>,
    /// From when it admits.
    pub opens_at: Option<Option<Timestamp>>,
    /// Until when it admits.
    pub closes_at: Option<Option<Timestamp>>,
    /// How often a ticket may enter.
    pub entries: Option<u32>,
    /// Whether an exit gives the entry back.
    pub reentry: Option<bool>,
    /// Only tickets of these orders.
    pub batches: Option<Option<Vec<BatchId>>>,
    /// Only tickets whose seat matches.
    pub seats: Option<Option<Vec<String>>>,
}

impl ListChange {
    fn apply(self, rules: AdmissionRules) -> AdmissionRules {
        AdmissionRules {
            name: self.name.unwrap_or(rules.name),
            opens_at: self.opens_at.unwrap_or(rules.opens_at),
            closes_at: self.closes_at.unwrap_or(rules.closes_at),
            entries: self.entries.unwrap_or(rules.entries),
            reentry: self.reentry.unwrap_or(rules.reentry),
            batches: self.batches.unwrap_or(rules.batches),
            seats: self.seats.unwrap_or(rules.seats),
        }
    }
}

/// The result of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written<T> {
    /// It is written.
    Done(T),
    /// There is no such record.
    NotFound,
    /// A list would close before it opens.
    ClosesBeforeItOpens,
    /// Others keep changing it.
    Busy,
    /// It has another version than the one that was seen.
    ChangedMeanwhile,
}

impl<T> Written<T> {
    /// The result of a change in the store.
    pub(crate) fn of<V: Into<T>>(change: Versioned<V>) -> Self {
        match change {
            Versioned::Done(value) => Self::Done(value.into()),
            Versioned::NotFound => Self::NotFound,
            Versioned::ChangedMeanwhile => Self::ChangedMeanwhile,
        }
    }
}

impl CheckIn {
    /// The lists of an event, the built-in one first.
    pub async fn lists(&self, event: EventId) -> Result<Lists, Error> {
        let lists = self.shared.store.check_in_lists(event).await?;
        Ok(Lists { lists: lists.into_iter().map(List::from).collect() })
    }

    /// One list.
    pub async fn list(&self, id: ListId) -> Result<Option<List>, Error> {
        Ok(self.shared.store.check_in_list(id).await?.map(List::from))
    }

    /// The event of a list.
    pub async fn event_of_list(&self, list: ListId) -> Result<Option<EventId>, Error> {
        Ok(self.shared.store.check_in_list(list).await?.map(|list| list.event_id))
    }

    /// Makes a list.
    pub async fn create_list(
        &self,
        event: EventId,
        change: ListChange,
    ) -> Result<Written<List>, Error> {
        let now = now();
        let rules = change.apply(AdmissionRules { name: String::new(), ..AdmissionRules::main() });
        if !is_in_order(&rules) {
            return Ok(Written::ClosesBeforeItOpens);
        }
        let list = CheckInList {
            id: ListId::generate(),
            event_id: event,
            rules,
            created_at: now,
            updated_at: now,
        };
        Ok(match self.shared.store.put_check_in_list(&list, None).await? {
            true => Written::Done(list.into()),
            false => Written::NotFound,
        })
    }

    /// Changes a list; with `wanted`, only that version of it.
    pub async fn change_list(
        &self,
        id: ListId,
        change: &ListChange,
        wanted: Option<Timestamp>,
    ) -> Result<Written<List>, Error> {
        let store = &self.shared.store;
        for _ in 0..TRIES {
            let Some(list) = store.check_in_list(id).await? else { return Ok(Written::NotFound) };
            if wanted.is_some_and(|wanted| wanted != list.updated_at) {
                return Ok(Written::ChangedMeanwhile);
            }
            let rules = change.clone().apply(list.rules);
            if !is_in_order(&rules) {
                return Ok(Written::ClosesBeforeItOpens);
            }
            let seen = list.updated_at;
            let changed = CheckInList { rules, updated_at: now(), ..list };
            if store.put_check_in_list(&changed, Some(seen)).await? {
                let list = store.check_in_list(id).await?;
                return Ok(list.map_or(Written::NotFound, |list| Written::Done(list.into())));
            }
        }
        Ok(Written::Busy)
    }

    /// Deletes a list, but not the built-in one, which stays; with `seen`, only that version of it.
    pub async fn delete_list(
        &self,
        id: ListId,
        seen: Option<Timestamp>,
    ) -> Result<Written<()>, Error> {
        Ok(Written::of(self.shared.store.delete_check_in_list_as_seen(id, seen).await?))
    }

    /// The gates of an event.
    pub async fn gates(&self, event: EventId) -> Result<Gates, Error> {
        let gates = self.shared.store.gates(event).await?;
        Ok(Gates { gates: gates.into_iter().map(ShownGate::from).collect() })
    }

    /// One gate.
    pub async fn gate(&self, id: GateId) -> Result<Option<ShownGate>, Error> {
        Ok(self.shared.store.gate(id).await?.map(ShownGate::from))
    }

    /// The event of a gate.
    pub async fn event_of_gate(&self, gate: GateId) -> Result<Option<EventId>, Error> {
        Ok(self.shared.store.gate(gate).await?.map(|gate| gate.event_id))
    }

    /// Makes a gate; `None` if the event is gone.
    pub async fn create_gate(
        &self,
        event: EventId,
        name: String,
    ) -> Result<Option<ShownGate>, Error> {
        let now = now();
        let id = GateId::generate();
        let gate = Gate { id, event_id: event, name, created_at: now, updated_at: now };
        let written = self.shared.store.put_gate(&gate).await?;
        Ok(written.then(|| gate.into()))
    }

    /// Renames a gate; with `seen`, only that version of it.
    pub async fn rename_gate(
        &self,
        id: GateId,
        name: String,
        seen: Option<Timestamp>,
    ) -> Result<Written<ShownGate>, Error> {
        let store = &self.shared.store;
        let Some(gate) = store.gate(id).await? else { return Ok(Written::NotFound) };
        let gate = Gate { name, updated_at: now(), ..gate };
        Ok(Written::of(store.rename_gate_as_seen(&gate, seen).await?))
    }

    /// Deletes a gate; scans keep its id. With `seen`, only that version of it.
    pub async fn delete_gate(
        &self,
        id: GateId,
        seen: Option<Timestamp>,
    ) -> Result<Written<()>, Error> {
        Ok(Written::of(self.shared.store.delete_gate_as_seen(id, seen).await?))
    }
}

fn is_in_order(rules: &AdmissionRules) -> bool {
    rules.opens_at.zip(rules.closes_at).is_none_or(|(opens, closes)| opens < closes)
}
