//! A server that stops answering: every call ends in time, and the next one works.

use std::time::{Duration, Instant};

use sqlx::{AnyPool, Row};
use stampede_model::EventId;
use stampede_store::{Config, Error, Store};
use stampede_testkit::{Postgres, eventually};
use tokio::time::timeout;

use crate::backends::secret;
use crate::sql::proxy::Proxy;
use crate::suite::samples::event;

const READ: Duration = Duration::from_secs(1);
const WRITE: Duration = Duration::from_secs(3);

/// A server, a way to it that can freeze, and a store that takes it.
struct Line {
    server: Postgres,
    proxy: Proxy,
    store: Store,
}

impl Line {
    async fn new(max_connections: u32) -> Self {
        Self::with_limit(max_connections, READ).await
    }

    async fn with_limit(max_connections: u32, read: Duration) -> Self {
        let server = Postgres::start().await;
        let proxy = Proxy::to(server.port()).await;
        let url = server.url().replace(&server.port().to_string(), &proxy.port().to_string());
        let config = Config { url, max_connections, statement_timeout: read, ..Config::default() };
        let store = Store::connect(&config).await.unwrap().with_ticket_secret(&secret());
        store.migrate().await.unwrap();
        Self { server, proxy, store }
    }

    /// Makes all calls wait inside the server until the transaction ends.
    async fn blocked(&self) -> (AnyPool, sqlx::Transaction<'static, sqlx::Any>) {
        let direct = AnyPool::connect(&self.server.url()).await.unwrap();
        let mut lock = direct.begin().await.unwrap();
        sqlx::query("LOCK TABLE events").execute(&mut *lock).await.unwrap();
        (direct, lock)
    }
}

async fn waiting(direct: &AnyPool, expected: i64) {
    let question = "SELECT COUNT(*) FROM pg_locks WHERE NOT granted";
    eventually(Duration::from_secs(10), || async {
        let row = sqlx::query(question).fetch_one(direct).await.map_err(|e| e.to_string())?;
        let found: i64 = row.get(0);
        if found == expected { Ok(()) } else { Err(format!("{found} are waiting")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_get_no_answer_end_in_time_and_the_next_ones_work() {
    let line = Line::new(2).await;
    let (direct, lock) = line.blocked().await;
    let (reader, writer) = (line.store.clone(), line.store.clone());
    let start = Instant::now();
    let read = tokio::spawn(async move { reader.event(EventId::generate()).await.map(drop) });
    let write = tokio::spawn(async move { writer.insert_event(&event("ann")).await });
    waiting(&direct, 2).await;
    line.proxy.freeze().await;
    lock.rollback().await.unwrap();

    let error = read.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(start.elapsed() >= READ && start.elapsed() < WRITE, "{:?}", start.elapsed());
    let error = write.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(start.elapsed() >= WRITE && start.elapsed() < WRITE * 2, "{:?}", start.elapsed());

    let event = event("ann");
    line.store.insert_event(&event).await.unwrap();
    assert_eq!(line.store.event(event.id).await.unwrap(), Some(event));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_hangs_up_does_not_leave_a_silent_connection_behind() {
    let line = Line::new(1).await;
    let (direct, lock) = line.blocked().await;
    let call = timeout(READ / 2, line.store.events(None, None, 1));
    let (gave_up, ()) = tokio::join!(call, async {
        waiting(&direct, 1).await;
        line.proxy.freeze().await;
    });
    assert!(gave_up.is_err());
    lock.rollback().await.unwrap();
    assert_eq!(line.store.events(None, None, 1).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_that_went_silent_are_replaced_without_an_error() {
    // Three connections are found silent, a fifth of the limit each; the rest is for a new one, on a busy machine too.
    let line = Line::with_limit(3, 3 * READ).await;
    let store = &line.store;
    tokio::try_join!(store.ping(), store.ping(), store.ping()).unwrap();
    line.proxy.freeze().await;
    for _ in 0..4 {
        assert_eq!(store.events(None, None, 1).await.unwrap(), []);
    }
}
