//! What the tests share: a store, a Redis, a receiver of messages, campaigns on top, and workers that can be killed.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use stampede_broker::{Broker, Consumer, ConsumerConfig, JobList, Work};
use stampede_campaign::{
    AccountMade, Campaigns, Created, FeedCampaign, Moved, NewAccount, NewCampaign, Parts,
    RecipientRow, SendMessage,
};
use stampede_channel::Channels;
use stampede_files::Files;
use stampede_model::campaign::{
    AccountId, AutoPause, CampaignState, Channel, Content, Pacing, Rate,
};
use stampede_model::{CampaignId, TemplateFiles, Timestamp};
use stampede_press::Press;
use stampede_store::{Config, Recipient, RecipientFilter, Store, TicketSecret};
use stampede_telemetry::Metrics;
use stampede_testkit::{Receiver, Redis, TempDir, eventually, temp_dir};
use stampede_ticketing::{Limits, Ticketing};
use stampede_wire::campaigns::Contract;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::compiler::NoCompiler;

/// Patience on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Everything that campaigns need, and campaigns.
pub(crate) struct Stage {
    pub(crate) campaigns: Campaigns,
    pub(crate) store: Store,
    pub(crate) broker: Broker,
    pub(crate) receiver: Receiver,
    pub(crate) redis: Redis,
    folder: TempDir,
}

/// A worker on threads of its own, as a process is.
pub(crate) struct Worker {
    runtime: Option<Runtime>,
    stop: CancellationToken,
    ended: std::sync::mpsc::Receiver<()>,
}

impl Stage {
    pub(crate) async fn start() -> Self {
        let folder = temp_dir();
        let redis = Redis::start().await;
        let receiver = Receiver::start().await;
        let (campaigns, store, broker) =
            open(folder.path(), &redis.url(), &receiver.url("/")).await;
        Self { campaigns, store, broker, receiver, redis, folder }
    }

    /// Runs a statement in the database, as a stranger.
    pub(crate) fn sql(&self, statement: &str) {
        let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=30).executescript(sys.argv[2])";
        let database = self.folder.path().join("stampede.db");
        let mut python = Command::new("python3");
        let done = python.args(["-c", script]).arg(database).arg(statement);
        assert!(done.status().unwrap().success(), "{statement}");
    }

    /// Starts a worker with connections of its own.
    pub(crate) fn work(&self) -> Worker {
        let (folder, redis) = (self.folder.path().to_owned(), self.redis.url());
        let api = self.receiver.url("/");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let stop = CancellationToken::new();
        let (done, ended) = std::sync::mpsc::channel();
        let stopped = stop.clone();
        runtime.spawn(async move {
            let (campaigns, _, broker) = open(&folder, &redis, &api).await;
            let jobs = JobList::default()
                .with::<FeedCampaign>(campaigns.clone())
                .with::<SendMessage>(campaigns.clone());
            campaigns.set_message_slots(jobs.slots(SendMessage::QUEUE, 8));
            let mut working = tokio::task::JoinSet::new();
            for (number, queue) in jobs.queues().into_iter().enumerate() {
                let config = ConsumerConfig {
                    lock: Duration::from_millis(1_500),
                    stalled_interval: Duration::from_millis(500),
                    ..ConsumerConfig::new(format!("worker-{number}"), jobs.slots(queue, 8))
                };
                let consumer =
                    Consumer::new(config, broker.queue(queue).await.unwrap(), jobs.handler(queue));
                working.spawn(consumer.run(stopped.clone()));
            }
            working.join_all().await;
            campaigns.stop().await;
            let _ = done.send(());
        });
        Worker { runtime: Some(runtime), stop, ended }
    }

    /// An account that sends to the receiver, as fast as it may.
    pub(crate) async fn account(&self, settings: Value, pacing: Pacing) -> AccountId {
        let mut all = json!({ "url": self.receiver.url("/messages") });
        all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";
        self.account_of(Channel::Webhook, all, json!({ "secret": secret }), pacing).await
    }

    pub(crate) async fn account_of(
        &self,
        channel: Channel,
        settings: Value,
        credentials: Value,
        pacing: Pacing,
    ) -> AccountId {
        let account = NewAccount {
            id: None,
            owner: Some("ann".to_owned()),
            name: "Ann's".to_owned(),
            channel,
            settings,
            credentials,
            pacing,
            country: None,
            time_zone: None,
        };
        match self.campaigns.create_account(account).await.unwrap() {
            AccountMade::Done(account) => account.id,
            other => panic!("{other:?}"),
        }
    }

    /// A campaign of so many recipients with messages of their own.
    pub(crate) async fn campaign(&self, account: &AccountId, recipients: usize) -> CampaignId {
        self.campaign_with(campaign(account), rows(recipients)).await
    }

    pub(crate) async fn campaign_with(
        &self,
        campaign: NewCampaign,
        rows: Vec<RecipientRow>,
    ) -> CampaignId {
        match self.campaigns.create(campaign, rows).await.unwrap() {
            Created::Done(created) => created.contract.id,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn started(&self, id: CampaignId) -> Contract {
        match self.campaigns.start(id, None, None).await.unwrap() {
            Moved::Done(contract) => *contract,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn contract(&self, id: CampaignId) -> Contract {
        self.campaigns.campaign(id).await.unwrap().unwrap()
    }

    /// Waits until the campaign is as wanted.
    pub(crate) async fn until(
        &self,
        id: CampaignId,
        wanted: impl Fn(&Contract) -> bool,
    ) -> Contract {
        let wanted = &wanted;
        eventually(PATIENCE, || async move {
            let contract = self.contract(id).await;
            if wanted(&contract) {
                Ok(contract)
            } else {
                Err(format!(
                    "{:?} {:?} {:?}",
                    contract.status, contract.status_reason, contract.counts
                ))
            }
        })
        .await
    }

    pub(crate) async fn completed(&self, id: CampaignId) -> Contract {
        self.until(id, |contract| contract.status == CampaignState::Completed).await
    }

    /// All recipients, by position.
    pub(crate) async fn ledger(&self, id: CampaignId) -> Vec<Recipient> {
        self.store.recipients(id, &RecipientFilter::default(), None, 10_000).await.unwrap()
    }

    /// How often each address got a message.
    pub(crate) fn got(&self) -> BTreeMap<String, usize> {
        let mut got = BTreeMap::new();
        for request in self.receiver.received() {
            let address =
                request.json()["recipient"]["address"].as_str().unwrap_or_default().to_owned();
            *got.entry(address).or_default() += 1;
        }
        got
    }

    /// Panics unless every recipient got one message.
    pub(crate) fn assert_each_got_one(&self, recipients: usize) {
        let got = self.got();
        assert_eq!(got.len(), recipients, "{got:?}");
        assert!(got.values().all(|times| *times == 1), "{got:?}");
    }
}

impl Worker {
    /// Ends everything at once, between any two steps, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    /// Ends in good order.
    pub(crate) fn stop(mut self) {
        self.stop.cancel();
        tokio::task::block_in_place(|| self.ended.recv_timeout(PATIENCE).unwrap());
        self.runtime.take().unwrap().shutdown_background();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// More than any test sends.
pub(crate) fn fast() -> Pacing {
    limited(1_000, 1_000)
}

pub(crate) fn limited(max: u32, per_ms: u64) -> Pacing {
    Pacing { limit: Some(Rate { max, per_ms }), ..Pacing::default() }
}

pub(crate) fn campaign(account: &AccountId) -> NewCampaign {
    NewCampaign {
        owner: "ann".to_owned(),
        name: "News".to_owned(),
        account: account.clone(),
        content: Content::Own,
        pacing: Pacing::default(),
        auto_pause: AutoPause { in_a_row: 0, failed_percent: 100, bounced_percent: 100 },
        max_attempts: 3,
        time_zone: None,
        country: None,
        start_at: None,
        end_at: None,
    }
}

pub(crate) fn rows(count: usize) -> Vec<RecipientRow> {
    let row = |number: usize| RecipientRow {
        address: format!("person-{number}"),
        message: Some(format!("Hello {number}")),
        ..RecipientRow::default()
    };
    (1..=count).map(row).collect()
}

async fn open(folder: &std::path::Path, redis: &str, api: &str) -> (Campaigns, Store, Broker) {
    let url = format!("sqlite:{}/stampede.db", folder.display());
    let store = Store::connect(&Config { url, ..Config::default() }).await.unwrap();
    store.migrate().await.unwrap();
    let store = store.with_ticket_secret(&TicketSecret::new("the secret of this test"));
    let broker = Broker::connect(&stampede_broker::Config::new(redis)).await.unwrap();
    let root = folder.join("public");
    let durability = stampede_files::Durability::Relaxed;
    let files = Files::open(&stampede_files::Config { root, durability }).await.unwrap();
    let template = [("template.typ".to_owned(), b"Hi".to_vec())].into();
    let template = TemplateFiles::new(template).unwrap();
    let ticketing = Ticketing::start(stampede_ticketing::Parts {
        worker: "worker".to_owned(),
        store: store.clone(),
        broker: broker.clone(),
        files,
        press: Press::new(store.clone(), Arc::new(NoCompiler), template),
        limits: Limits::default(),
        metrics: Metrics::default(),
    })
    .await
    .unwrap();
    let channels = Channels::new(stampede_channel::Config {
        allowed: "*".parse().unwrap(),
        telegram_api_url: api.parse().unwrap(),
        whatsapp_api_url: api.parse().unwrap(),
        receipts_base: None,
    });
    let public_url = Some("https://tickets.example".to_owned());
    let parts = Parts {
        store: store.clone(),
        broker: broker.clone(),
        ticketing,
        channels,
        public_url,
        metrics: Metrics::default(),
    };
    (Campaigns::open(parts).await.unwrap(), store, broker)
}

/// The present in milliseconds, as the store keeps it.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap()
}
