//! What the tests share: a store, a Redis, files and ticketing on top; a worker if a test wants one.

use std::sync::Arc;
use std::time::Duration;

use stampede_broker::{Broker, Consumer, ConsumerConfig, JobList, Work};
use stampede_files::Files;
use stampede_model::{
    Batch, BatchId, Event, EventId, Holder, Idempotency, Template, TemplateChoice, TemplateFiles,
    TemplateId, Ticket, TicketId, TicketStatus, Timestamp,
};
use stampede_press::{Press, sample};
use stampede_store::{Config, NewRevision, Store, TicketSecret};
use stampede_telemetry::Metrics;
use stampede_testkit::{Redis, TempDir, eventually, temp_dir};
use stampede_ticketing::{
    GenerateTicket, Limits, OrderLine, OrderRequest, Parts, Placement, Strictness, Ticketing,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::compiler::{TEMPLATE, Typst};

/// Patience on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Everything that ticketing needs, and ticketing.
pub(crate) struct Stage {
    pub(crate) ticketing: Ticketing,
    pub(crate) store: Store,
    pub(crate) broker: Broker,
    pub(crate) files: Files,
    pub(crate) compiler: Arc<Typst>,
    pub(crate) event: Event,
    pub(crate) redis: Redis,
    pub(crate) folder: TempDir,
    worker: Option<(CancellationToken, JoinHandle<()>)>,
}

impl Stage {
    /// Without a worker: jobs wait.
    pub(crate) async fn quiet() -> Self {
        Self::start(usize::MAX >> 4).await
    }

    /// With a worker.
    pub(crate) async fn working() -> Self {
        let mut stage = Self::quiet().await;
        stage.work().await;
        stage
    }

    /// With a worker whose tickets wait until the test lets them pass.
    pub(crate) async fn gated() -> Self {
        let mut stage = Self::start(0).await;
        stage.work().await;
        stage
    }

    async fn start(pass: usize) -> Self {
        let folder = temp_dir();
        let redis = Redis::start().await;
        let url = format!("sqlite:{}/stampede.db", folder.path().display());
        let store = Store::connect(&Config { url, ..Config::default() }).await.unwrap();
        store.migrate().await.unwrap();
        let store = store.with_ticket_secret(&TicketSecret::new("the secret of this test"));
        let broker = Broker::connect(&stampede_broker::Config::new(redis.url())).await.unwrap();
        let root = folder.path().join("public");
        let durability = stampede_files::Durability::Relaxed;
        let files = Files::open(&stampede_files::Config { root, durability }).await.unwrap();
        let compiler = Arc::new(Typst::new(pass));
        let template = [("template.typ".to_owned(), TEMPLATE.as_bytes().to_vec())].into();
        let template = TemplateFiles::new(template).unwrap();
        let press = Press::new(store.clone(), compiler.clone(), template);
        let ticketing = Ticketing::start(Parts {
            worker: "worker-1".to_owned(),
            store: store.clone(),
            broker: broker.clone(),
            files: files.clone(),
            press,
            limits: Limits { quantity: 1_000, downloads: 1, slots: 4 },
            metrics: Metrics::default(),
        })
        .await
        .unwrap();
        let event = Event {
            id: EventId::generate(),
            owner: "ann".to_owned(),
            created_at: now(),
            updated_at: now(),
            ..sample::event()
        };
        store.insert_event(&event).await.unwrap();
        let worker = None;
        Self { ticketing, store, broker, files, compiler, event, redis, folder, worker }
    }

    /// Starts a worker.
    pub(crate) async fn work(&mut self) {
        let jobs = JobList::default().with::<GenerateTicket>(self.ticketing.clone());
        // A connection that just broke is repaired in the background.
        let queue = eventually(PATIENCE, || self.broker.queue(GenerateTicket::QUEUE)).await;
        let config = ConsumerConfig::new("worker-1", 4);
        let consumer = Consumer::new(config, queue, jobs.handler(GenerateTicket::QUEUE));
        let stop = CancellationToken::new();
        self.worker = Some((stop.clone(), tokio::spawn(consumer.run(stop))));
    }

    /// Ends the worker and ticketing, in this order.
    pub(crate) async fn stop(&mut self) {
        if let Some((stop, working)) = self.worker.take() {
            stop.cancel();
            working.await.unwrap();
        }
        self.ticketing.stop().await;
    }

    /// An event of this owner with a template of its own.
    pub(crate) async fn own_event(&self, owner: &str, source: &str) -> Event {
        let files = [("template.typ".to_owned(), source.as_bytes().to_vec())].into();
        let files = TemplateFiles::new(files).unwrap();
        let revision = NewRevision { files, author: owner.to_owned(), note: String::new() };
        let template = Template {
            id: TemplateId::generate(),
            owner: owner.to_owned(),
            name: "Own".to_owned(),
            revision: 1,
            created_at: now(),
            updated_at: now(),
        };
        self.store.insert_template(&template, &revision).await.unwrap();
        let (id, owner) = (EventId::generate(), owner.to_owned());
        let mut event = Event { id, owner, ..self.event.clone() };
        event.details.template = Some(TemplateChoice::Own { id: template.id, revision: None });
        self.store.insert_event(&event).await.unwrap();
        event
    }

    /// An order of one ticket for each name.
    pub(crate) fn order(&self, names: &[&str]) -> OrderRequest {
        self.order_for(&self.event, names)
    }

    /// An order for this event, of one ticket for each name.
    pub(crate) fn order_for(&self, event: &Event, names: &[&str]) -> OrderRequest {
        let line = |name: &&str| OrderLine { holder: holder(name, None), price: None };
        OrderRequest {
            event: event.clone(),
            lines: names.iter().map(line).collect(),
            idempotency: None,
            strictness: Strictness::Lenient,
        }
    }

    /// Places an order of one ticket for each name.
    pub(crate) async fn place(&self, names: &[&str]) -> (BatchId, Vec<TicketId>) {
        accepted(self.ticketing.place(self.order(names)).await.unwrap())
    }

    pub(crate) async fn ticket(&self, id: TicketId) -> Ticket {
        self.ticketing.ticket(id).await.unwrap().unwrap()
    }

    pub(crate) async fn batch(&self, id: BatchId) -> Batch {
        self.ticketing.batch(id).await.unwrap().unwrap()
    }

    /// Waits until no ticket of the batch is pending.
    pub(crate) async fn ended(&self, id: BatchId) -> Batch {
        eventually(PATIENCE, || async {
            let batch = self.batch(id).await;
            if batch.pending() == 0 { Ok(batch) } else { Err(format!("{batch:?}")) }
        })
        .await
    }

    /// Waits until the ticket is in this state.
    pub(crate) async fn until(&self, id: TicketId, status: TicketStatus) -> Ticket {
        eventually(PATIENCE, || async {
            let ticket = self.ticket(id).await;
            if ticket.status == status { Ok(ticket) } else { Err(format!("{ticket:?}")) }
        })
        .await
    }

    /// Waits until so many tickets have come to the gate.
    pub(crate) async fn at_the_gate(&self, tickets: usize) {
        eventually(PATIENCE, || async {
            let arrived = self.compiler.arrived();
            if arrived >= tickets { Ok(()) } else { Err(format!("{arrived} arrived")) }
        })
        .await;
    }

    /// The jobs that Redis has for these tickets.
    pub(crate) fn has_job(&self, ticket: TicketId) -> bool {
        self.redis.cli(&["EXISTS", &format!("bull:tickets:{ticket}")]).trim() == "1"
    }

    /// What readers outside see of a batch.
    pub(crate) fn mirrored(&self, batch: BatchId) -> serde_json::Value {
        let text = self.redis.cli(&["GET", &format!("batch:{batch}")]);
        serde_json::from_str(&text).unwrap_or_default()
    }
}

pub(crate) fn holder(name: &str, seat: Option<&str>) -> Holder {
    Holder { name: name.to_owned(), seat: seat.map(str::to_owned), ..Holder::default() }
}

pub(crate) fn accepted(placement: Placement) -> (BatchId, Vec<TicketId>) {
    match placement {
        Placement::Accepted { batch_id, tickets, .. } => (batch_id, tickets),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn marked(key: &str, request: &str) -> Option<Idempotency> {
    Some(Idempotency { key: key.to_owned(), request: request.to_owned() })
}

/// The present in milliseconds, as the store keeps it.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap()
}
