//! Opening and closing: many processes at once, again, and after closing.

use std::sync::Arc;

use stampede_store::Error;

use crate::backends::Database;
use crate::suite::samples::{event, ordered};

on_every_backend!(
    processes_that_migrate_at_once_all_succeed,
    records_outlive_the_handle,
    a_closed_store_is_unavailable,
);

async fn processes_that_migrate_at_once_all_succeed(db: Database) {
    let db = Arc::new(db);
    let starts: Vec<_> = (0..6)
        .map(|_| {
            let db = db.clone();
            tokio::spawn(async move {
                let store = db.handle().await;
                store.migrate().await.unwrap();
                store.migrate().await.unwrap();
                store.insert_event(&event("ann")).await.unwrap();
            })
        })
        .collect();
    for start in starts {
        start.await.unwrap();
    }
    let events = db.store().await.events(None, None, 10).await.unwrap();
    assert_eq!(events.len(), 6);
}

async fn records_outlive_the_handle(db: Database) {
    let store = db.store().await;
    let (event, _) = ordered(&store, 1).await;
    store.close().await;
    let store = db.handle().await;
    store.ping().await.unwrap();
    assert_eq!(store.event(event.id).await.unwrap(), Some(event));
}

async fn a_closed_store_is_unavailable(db: Database) {
    let store = db.store().await;
    store.close().await;
    assert!(matches!(store.ping().await, Err(Error::Unavailable(_))));
    assert!(matches!(store.insert_event(&event("ann")).await, Err(Error::Unavailable(_))));
}
