//! The counters of a batch equal a count of its tickets, after any changes by any number of processes.

use stampede_model::{Pdf, TicketId, TicketStatus};
use stampede_store::{Completion, TicketEdit, TicketFilter};

use crate::backends::Database;
use crate::suite::samples::{
    Dice, assert_no_drift, at, completion_of_current, counts, failure, order, ordered,
};

on_every_backend!(counters_never_drift_whatever_happens);

async fn counters_never_drift_whatever_happens(db: Database) {
    let store = db.store().await;
    let (event, one) = ordered(&store, 25).await;
    let two = order(&event, 25);
    store.place_order(&two).await.unwrap();
    let tickets: Vec<TicketId> =
        one.tickets.iter().chain(&two.tickets).map(|ticket| ticket.id).collect();

    let players: Vec<_> = (1..=4)
        .map(|seed| {
            let url = db.url.clone();
            let tickets = tickets.clone();
            tokio::spawn(async move { play(&url, seed, &tickets).await })
        })
        .collect();
    for player in players {
        player.await.unwrap();
    }

    assert_no_drift(&store).await;
    for batch in [one.batch_id, two.batch_id] {
        let filter = TicketFilter { batch: Some(batch), ..TicketFilter::default() };
        let left = store.tickets(&filter, None, 1_000).await.unwrap();
        let with = |status| left.iter().filter(|ticket| ticket.status == status).count() as u64;
        let recount = [
            left.len() as u64,
            with(TicketStatus::Completed),
            with(TicketStatus::Failed),
            with(TicketStatus::Void),
        ];
        assert_eq!(counts(&store, batch).await, recount);
    }
}

/// Makes a hundred random changes, over a handle of its own.
async fn play(url: &str, seed: u64, tickets: &[TicketId]) {
    let store = stampede_store::Store::connect(&stampede_store::Config {
        url: url.to_owned(),
        max_connections: 2,
        ..stampede_store::Config::default()
    })
    .await
    .unwrap();
    let mut dice = Dice(seed);
    for step in 0..100 {
        let now = at(100 + step);
        let one = tickets[dice.below(tickets.len())];
        match dice.below(20) {
            0..8 => {
                let pdf = Pdf::of(format!("f{}", dice.below(3)), b"%PDF");
                let mut group = Vec::new();
                for id in dice.some(tickets) {
                    let current = completion_of_current(&store, id).await;
                    group.push(Completion { pdf: pdf.clone(), ..current });
                }
                store.complete_tickets(&group).await.unwrap();
            }
            8..12 => {
                let group: Vec<_> = dice.some(tickets).into_iter().map(failure).collect();
                store.fail_tickets(&group).await.unwrap();
            }
            12..15 => {
                if let Some(ticket) = store.ticket(one).await.unwrap() {
                    let edit = TicketEdit { holder: ticket.holder, price: None };
                    store.edit_ticket(one, &edit, ticket.updated_at, now).await.unwrap();
                }
            }
            15..18 => {
                store.mark_stale(one, now).await.unwrap();
            }
            18 => {
                store.void_ticket(one, now).await.unwrap();
            }
            _ => {
                store.delete_ticket(one, now).await.unwrap();
            }
        }
    }
}
