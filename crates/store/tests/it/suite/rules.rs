//! Random changes: every backend does what the pure rules say, record by record.

use std::collections::BTreeMap;
use std::time::Duration;

use stampede_model::{Batch, BatchId, EventId, Pdf, Ticket, TicketId, Timestamp};
use stampede_store::rules::{self, Counters};
use stampede_store::{Completion, Edited, Failure, MadeTickets, Rotated, Store, TicketEdit};

use crate::backends::Database;
use crate::suite::samples::{
    Dice, assert_no_drift, at, completion, failure, number, order, ordered,
};

on_every_backend!(random_changes_do_what_the_rules_say);

/// Changes made in one run.
const STEPS: u64 = 250;

/// The records as the rules say they are.
struct Model {
    event: EventId,
    newest_key: u32,
    tickets: BTreeMap<TicketId, Ticket>,
    batches: BTreeMap<BatchId, Batch>,
}

impl Model {
    /// Applies a change that the rules allow to a ticket; returns whether there was one.
    fn change(&mut self, id: TicketId, rule: impl FnOnce(&Ticket) -> Option<Ticket>) -> bool {
        let Some(after) = self.tickets.get(&id).and_then(rule) else { return false };
        self.tickets.insert(id, after);
        true
    }

    /// Applies a change that the rules allow to all tickets of a batch; returns how many changed.
    fn change_all(&mut self, batch: BatchId, rule: impl Fn(&Ticket) -> Option<Ticket>) -> u64 {
        let of_batch = self.tickets.values().filter(|ticket| ticket.batch_id == batch);
        let ids: Vec<TicketId> = of_batch.map(|ticket| ticket.id).collect();
        ids.into_iter().filter(|id| self.change(*id, &rule)).count() as u64
    }

    fn counters(&self, batch: BatchId) -> Counters {
        let tickets = self.tickets.values().filter(|ticket| ticket.batch_id == batch);
        Counters::of(tickets.map(|ticket| ticket.status))
    }

    /// Compares a batch of the store with the model and with the batch before the change.
    fn check_batch(&mut self, after: &Batch) {
        let before = &self.batches[&after.id];
        let counters = Counters::from(after);
        assert_eq!(counters, self.counters(after.id));
        let is_moved = counters != Counters::from(before);
        assert_eq!(after.revision > before.revision, is_moved, "{before:?} {after:?}");
        assert!(after.revision >= before.revision && after.updated_at >= before.updated_at);
        self.batches.insert(after.id, after.clone());
    }

    async fn check_all(&mut self, store: &Store) {
        let ids: Vec<BatchId> = self.batches.keys().copied().collect();
        for id in ids {
            let batch = store.batch(id).await.unwrap().unwrap();
            self.check_batch(&batch);
            let found = store.batch_ticket_ids(id).await.unwrap();
            let tickets = self.tickets.values().filter(|ticket| ticket.batch_id == id);
            let mut expected: Vec<&Ticket> = tickets.collect();
            expected.sort_by_key(|ticket| ticket.index);
            assert_eq!(found, expected.iter().map(|ticket| ticket.id).collect::<Vec<_>>());
            for ticket in expected {
                assert_eq!(store.ticket(ticket.id).await.unwrap().as_ref(), Some(ticket));
            }
        }
    }
}

async fn random_changes_do_what_the_rules_say(db: Database) {
    let store = db.store().await;
    let (event, one) = ordered(&store, 12).await;
    let mut two = order(&event, 8);
    store.place_order(&two).await.unwrap();
    number(&mut two, 13);
    let mut model = Model {
        event: event.id,
        newest_key: 1,
        tickets: BTreeMap::new(),
        batches: BTreeMap::new(),
    };
    for placed in [&one, &two] {
        let batch = store.batch(placed.batch_id).await.unwrap().unwrap();
        model.batches.insert(batch.id, batch);
        model.tickets.extend(placed.tickets.iter().map(|ticket| (ticket.id, ticket.clone())));
    }
    let mut ids: Vec<TicketId> = model.tickets.keys().copied().collect();
    ids.push(TicketId::generate());

    let mut dice = Dice(12);
    for step in 0..STEPS {
        // Clocks differ: some changes come with a time before the last one.
        let now = at(20 + step) - Duration::from_secs(dice.below(15) as u64);
        let id = ids[dice.below(ids.len())];
        match dice.below(22) {
            0..6 => complete(&store, &mut model, &mut dice, &ids, now).await,
            6..9 => fail(&store, &mut model, &mut dice, &ids, now).await,
            9..13 => edit(&store, &mut model, &mut dice, id, now).await,
            13..15 => reissue(&store, &mut model, id, now).await,
            15..17 => mark_stale(&store, &mut model, id, now).await,
            17 => void(&store, &mut model, id, now).await,
            18 => delete(&store, &mut model, id, now).await,
            19 => rotate(&store, &mut model, now).await,
            20 => retry(&store, &mut model, one.batch_id, now).await,
            _ => cancel(&store, &mut model, &mut dice, two.batch_id, now).await,
        }
        if step % 25 == 0 {
            model.check_all(&store).await;
        }
    }
    model.check_all(&store).await;
    assert_no_drift(&store).await;
}

async fn complete(
    store: &Store,
    model: &mut Model,
    dice: &mut Dice,
    ids: &[TicketId],
    at: Timestamp,
) {
    let mut group = Vec::new();
    for ticket_id in dice.some(ids) {
        let current = model.tickets.get(&ticket_id).map_or(at, |ticket| ticket.updated_at);
        // Some workers read the ticket before its last change.
        let late = Duration::from_millis(u64::from(dice.below(4) == 0));
        let pdf = Pdf::of(format!("f{}", dice.below(3)), b"%PDF");
        group.push(Completion { seen: current - late, pdf, at, ..completion(ticket_id) });
    }
    let done = store.complete_tickets(&group).await.unwrap();
    let last: BTreeMap<TicketId, &Completion> =
        group.iter().map(|completion| (completion.ticket_id, completion)).collect();
    let changed: Vec<TicketId> = last
        .into_iter()
        .filter(|(id, completion)| model.change(*id, |it| rules::completed(it, completion)))
        .map(|(id, _)| id)
        .collect();
    assert_eq!(done.changed, changed);
    done.batches.iter().for_each(|batch| model.check_batch(batch));
}

async fn fail(store: &Store, model: &mut Model, dice: &mut Dice, ids: &[TicketId], at: Timestamp) {
    let group: Vec<Failure> =
        dice.some(ids).into_iter().map(|id| Failure { at, ..failure(id) }).collect();
    let done = store.fail_tickets(&group).await.unwrap();
    let last: BTreeMap<TicketId, &Failure> =
        group.iter().map(|failure| (failure.ticket_id, failure)).collect();
    let changed: Vec<TicketId> = last
        .into_iter()
        .filter(|(id, failure)| model.change(*id, |it| rules::failed(it, failure)))
        .map(|(id, _)| id)
        .collect();
    assert_eq!(done.changed, changed);
    done.batches.iter().for_each(|batch| model.check_batch(batch));
}

async fn edit(store: &Store, model: &mut Model, dice: &mut Dice, id: TicketId, now: Timestamp) {
    let known = model.tickets.get(&id).cloned();
    let template = known.as_ref().or(model.tickets.values().next()).cloned().unwrap();
    let mut edit = TicketEdit { holder: template.holder, price: template.price };
    match dice.below(4) {
        0 => edit.holder.name += "!",
        1 => edit.holder.seat = Some(format!("B-{}", dice.below(3))),
        2 => edit.holder.email = None,
        _ => edit.price = None,
    }
    let late = Duration::from_millis(u64::from(dice.below(4) == 0));
    let seen = template.updated_at - late;
    let key = Some(model.newest_key);
    let is_changed = model.change(id, |it| rules::edited(it, &edit, seen, key, now));
    match store.edit_ticket(id, &edit, seen, now).await.unwrap() {
        Edited::Changed(ticket, batch) => {
            assert!(is_changed);
            assert_eq!(*ticket, model.tickets[&id]);
            model.check_batch(&batch);
        }
        Edited::NotFound => assert_eq!(known, None),
        Edited::Void => assert_eq!(known.unwrap().status.as_str(), "void"),
        Edited::ChangedMeanwhile => assert!(!is_changed && known.is_some()),
    }
}

async fn reissue(store: &Store, model: &mut Model, id: TicketId, now: Timestamp) {
    let key = Some(model.newest_key);
    model.change(id, |it| rules::reissued(it, key, now));
    check_changed(model, id, store.reissue_ticket(id, now).await.unwrap());
}

async fn void(store: &Store, model: &mut Model, id: TicketId, now: Timestamp) {
    model.change(id, |it| rules::voided(it, now));
    check_changed(model, id, store.void_ticket(id, now).await.unwrap());
}

async fn retry(store: &Store, model: &mut Model, batch: BatchId, now: Timestamp) {
    let (after, count) = store.retry_batch(batch, now).await.unwrap().unwrap();
    assert_eq!(count, model.change_all(batch, |it| rules::retried(it, now)));
    model.check_batch(&after);
}

async fn cancel(store: &Store, model: &mut Model, dice: &mut Dice, batch: BatchId, now: Timestamp) {
    let made = if dice.below(4) == 0 { MadeTickets::Void } else { MadeTickets::Keep };
    let done = store.cancel_batch(batch, made, now).await.unwrap().unwrap();
    let changed = model.change_all(batch, |it| rules::cancelled(it, made, now));
    assert_eq!(done.unmade + done.made, changed);
    model.check_batch(&done.batch);
}

fn check_changed(model: &mut Model, id: TicketId, found: Option<(Ticket, Batch)>) {
    assert_eq!(found.as_ref().map(|(ticket, _)| ticket), model.tickets.get(&id));
    if let Some((_, batch)) = found {
        model.check_batch(&batch);
    }
}

async fn mark_stale(store: &Store, model: &mut Model, id: TicketId, now: Timestamp) {
    let is_changed = model.change(id, |it| rules::stale(it, now));
    let batch = store.mark_stale(id, now).await.unwrap();
    assert_eq!(batch.is_some(), is_changed);
    if let Some(batch) = batch {
        model.check_batch(&batch);
    }
}

async fn delete(store: &Store, model: &mut Model, id: TicketId, now: Timestamp) {
    let is_deleted = model.tickets.remove(&id).is_some();
    let batch = store.delete_ticket(id, now).await.unwrap();
    assert_eq!(batch.is_some(), is_deleted);
    if let Some(batch) = batch {
        model.check_batch(&batch);
    }
}

async fn rotate(store: &Store, model: &mut Model, now: Timestamp) {
    let rotated = store.rotate_ticket_key(model.event, now).await.unwrap();
    let Rotated::New(key) = rotated else { panic!("{rotated:?}") };
    model.newest_key += 1;
    assert_eq!(key.number, model.newest_key);
}
