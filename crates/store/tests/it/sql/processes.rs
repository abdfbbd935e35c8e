//! Several processes write one SQLite file, as the workers of a node do.
//!
//! The test binary starts itself again: the other processes run only [`be_a_worker`].

use std::process::Command;

use stampede_model::TicketId;
use stampede_store::{Config, TicketFilter};

use crate::backends::{Database, Sqlite};
use crate::suite::samples::{assert_no_drift, completion, counts, ordered};

/// Set for the worker processes: the address of the database.
const DATABASE: &str = "STAMPEDE_STORE_TEST_DATABASE";

#[tokio::test]
async fn be_a_worker() {
    let Ok(url) = std::env::var(DATABASE) else { return };
    let config = Config { url, ..Config::default() };
    let store = stampede_store::Store::connect(&config).await.unwrap();
    let tickets = store.tickets(&TicketFilter::default(), None, 10_000).await.unwrap();
    let ids: Vec<TicketId> = tickets.iter().map(|ticket| ticket.id).collect();
    for group in ids.chunks(10) {
        let group: Vec<_> = group.iter().copied().map(completion).collect();
        store.complete_tickets(&group).await.unwrap();
    }
}

#[tokio::test]
async fn processes_that_write_one_file_all_get_their_turn() {
    let db = Database::fresh::<Sqlite>().await;
    let store = db.store().await;
    let (_, order) = ordered(&store, 500).await;
    let workers: Vec<_> = (0..4)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "sql::processes::be_a_worker"])
                .env(DATABASE, &db.url)
                .spawn()
                .unwrap()
        })
        .collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    assert_eq!(counts(&store, order.batch_id).await, [500, 500, 0, 0]);
    assert_no_drift(&store).await;
}
