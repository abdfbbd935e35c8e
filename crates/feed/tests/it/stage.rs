//! A store, a Redis, and events to relay.

use std::time::Duration;

use stampede_broker::{Broker, Config};
use stampede_feed::{Heard, Hub, Reader, Relay, RelayConfig, Seen};
use stampede_model::{Branding, Currency, Event, EventDetails, EventId, Timestamp};
use stampede_store::{Store, TicketSecret};
use stampede_testkit::{Redis, temp_dir};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longer than any of these tests should wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Stage {
    pub(crate) redis: Redis,
    pub(crate) store: Store,
    pub(crate) broker: Broker,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) async fn start() -> Self {
        Self::start_with(Redis::start().await).await
    }

    pub(crate) async fn start_with(redis: Redis) -> Self {
        let folder = temp_dir();
        let url = format!("sqlite:{}/stampede.db", folder.path().display());
        let config = stampede_store::Config { url, ..stampede_store::Config::default() };
        let store = Store::connect(&config).await.unwrap();
        let store = store.with_ticket_secret(&TicketSecret::new("the secret of this test"));
        store.migrate().await.unwrap();
        let broker = Broker::connect(&Config::new(redis.url())).await.unwrap();
        Self { redis, store, broker, _folder: folder }
    }

    /// Starts a relay that ends when the guard is dropped or cancelled.
    pub(crate) fn relay(&self, node: &str) -> Running {
        let config = RelayConfig { node: node.to_owned() };
        let relay = Relay::new(&config, self.store.clone(), self.broker.clone());
        let stop = CancellationToken::new();
        Running { task: Some(tokio::spawn(relay.run(stop.clone()))), stop }
    }

    /// Starts a hub that ends when the guard is dropped or cancelled.
    pub(crate) fn hub(&self) -> (Hub, Running) {
        let stop = CancellationToken::new();
        let hub = Hub::new(&self.broker, stop.clone());
        let task = Some(tokio::spawn(hub.clone().run()));
        (hub, Running { task, stop })
    }

    /// Creates so many events, one after the other; returns their ids.
    pub(crate) async fn happen(&self, count: usize) -> Vec<EventId> {
        let mut ids = Vec::new();
        for _ in 0..count {
            let event = event();
            self.store.insert_event(&event).await.unwrap();
            ids.push(event.id);
        }
        ids
    }

    pub(crate) fn length(&self) -> usize {
        self.redis.cli(&["XLEN", "stampede:{feed}"]).trim().parse().unwrap()
    }
}

pub(crate) struct Running {
    pub(crate) task: Option<JoinHandle<()>>,
    pub(crate) stop: CancellationToken,
}

impl Running {
    /// Ends it as a process that dies would: at once.
    pub(crate) fn kill(mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    /// Ends it in good order.
    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The next events of a reader.
pub(crate) async fn hear(reader: &mut Reader, count: usize) -> Vec<std::sync::Arc<Seen>> {
    let mut heard = Vec::new();
    while heard.len() < count {
        match tokio::time::timeout(PATIENCE, reader.next()).await.unwrap() {
            Heard::Event(event) => heard.push(event),
            Heard::CaughtUp => {}
            other => panic!("{other:?}"),
        }
    }
    heard
}

pub(crate) fn event() -> Event {
    let now = Timestamp::from_millisecond(1_700_000_000_000).unwrap();
    Event {
        id: EventId::generate(),
        owner: "ann".into(),
        details: EventDetails {
            name: "Gala".into(),
            location: "Hall".into(),
            starts_at: None,
            time_zone: "UTC".into(),
            currency: Currency::USD,
            branding: Branding::default(),
            lang: None,
            template: None,
        },
        created_at: now,
        updated_at: now,
    }
}
