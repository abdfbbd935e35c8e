//! The whole product under faults: nodes with workers, their servers, and the ways between them.
//!
//! ```text
//!  clients ──proxy──▶ node ──proxy──▶ PostgreSQL
//!                      │ └──proxy──▶ Redis ◀──proxy── consumers, producers
//!                      └─ workers        (with the engine: clients outside reach it through the proxy)
//! ```
//!
//! Data directories and PDFs are on a disk of their own (`SmallDisk`); disk and clock of the nodes fail on demand (`Faults`).

mod hit;
mod play;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stampede_testkit::{
    App, Faults, Postgres, Process, Proxy, Redis, SmallDisk, TempDir, temp_dir,
};

use super::jobs;
use super::ledger::{Site, Tally};
use super::options::{BrokerKind, Options, StoreKind};
use super::plan::Target;
use crate::STAMPEDE;

/// Processes that consume the campaign's own queue.
const CONSUMERS: usize = 3;

/// The size of the disk while it is not full, in megabytes.
const DISK_MB: u64 = 8 << 10;

/// One node and the ways to and from it.
struct Node {
    app: App,
    http: Proxy,
    /// The node's way to Redis; or the way from outside to its engine.
    redis: Proxy,
    postgres: Option<Proxy>,
    /// Its data directory, as this process sees it.
    data: PathBuf,
    /// Killed, and not yet to be started again.
    dead: bool,
}

/// Everything that runs.
pub(super) struct Product {
    nodes: Vec<Node>,
    consumers: Vec<Process>,
    redis: Option<Redis>,
    postgres: Option<Postgres>,
    faults: Faults,
    books: TempDir,
    // Last: nothing may use it any more when it is unmounted.
    disk: Place,
    /// Processes that a running fault has frozen.
    frozen: HashMap<Target, Vec<u32>>,
    /// Redis or the engine for programs outside, behind a proxy. It never changes.
    broker: String,
    answers: Arc<Tally>,
    /// What happened without being planned.
    pub(super) surprises: Tally,
}

/// Where data directories and PDFs are.
enum Place {
    OfItsOwn(SmallDisk),
    /// This user may not mount: the disk is never full.
    Plain(TempDir),
}

impl Place {
    /// The folder, as nodes see it.
    fn path(&self) -> PathBuf {
        match self {
            Self::OfItsOwn(disk) => disk.path(),
            Self::Plain(folder) => folder.path().to_owned(),
        }
    }

    /// A path in the folder, as this process sees it.
    fn outside(&self, path: &Path) -> PathBuf {
        match self {
            Self::OfItsOwn(disk) => disk.from_outside(path),
            Self::Plain(_) => path.to_owned(),
        }
    }

    async fn start(&self, settings: &[(&str, &str)]) -> App {
        match self {
            Self::OfItsOwn(disk) => App::start_on(disk, STAMPEDE, settings).await,
            Self::Plain(_) => App::start(STAMPEDE, settings).await,
        }
    }
}

impl Product {
    /// Starts everything and waits until it is ready.
    pub(super) async fn start(options: &Options) -> Self {
        let disk = SmallDisk::try_mount(DISK_MB).await;
        let disk = disk.map_or_else(|_| Place::Plain(temp_dir()), Place::OfItsOwn);
        let faults = Faults::of_disk(&disk.outside(&disk.path()));
        let combination = options.combination;
        let redis = match combination.broker {
            BrokerKind::Redis => {
                Some(Redis::with_config(&[("appendfsync", options.fsync.as_str())]).await)
            }
            BrokerKind::Engine => None,
        };
        let postgres = match combination.store {
            StoreKind::Postgres => Some(Postgres::start().await),
            StoreKind::Sqlite => None,
        };
        let mut product = Self {
            nodes: Vec::new(),
            consumers: Vec::new(),
            redis,
            postgres,
            faults,
            books: temp_dir(),
            disk,
            frozen: HashMap::new(),
            broker: String::new(),
            answers: Arc::default(),
            surprises: Tally::default(),
        };
        for number in 0..combination.nodes() {
            let node = product.start_node(number, options).await;
            product.nodes.push(node);
        }
        product.follow_engine();
        product.broker = product.nodes[0].redis.instead_of(&product.direct_broker());
        for number in 0..CONSUMERS {
            let consumer = product.start_consumer(&format!("consumer-{number}"));
            product.consumers.push(consumer);
        }
        product
    }

    async fn start_node(&self, number: usize, options: &Options) -> Node {
        let (name, data) =
            (format!("node-{number}"), self.disk.path().join(format!("data-{number}")));
        let redis = Proxy::start(self.redis.as_ref().map_or(0, Redis::port)).await;
        let postgres = match &self.postgres {
            Some(postgres) => Some(Proxy::start(postgres.port()).await),
            None => None,
        };
        let (redis_url, public) =
            (redis.url(), self.disk.path().join("public").display().to_string());
        let database = self
            .postgres
            .as_ref()
            .zip(postgres.as_ref())
            .map(|(server, way)| way.instead_of(&server.url()));
        let data_dir = data.display().to_string();
        let mut settings = self.faults.environment();
        settings.extend([
            ("SERVER_NAME", name.as_str()),
            ("DATA_DIR", &data_dir),
            ("PUBLIC_PATH", &public),
            ("TICKET_KEY_SECRET", "0123456789abcdef0123456789abcdef"),
            ("START_TIMEOUT", "60"),
            ("ENGINE_FSYNC", &options.fsync),
            ("JOB_CONCURRENCY", "4"),
            // The provider of messages is here.
            ("WEBHOOK_ALLOW_PRIVATE", "127.0.0.1"),
        ]);
        if self.redis.is_some() {
            settings.push(("REDIS_URL", &redis_url));
        }
        settings.extend(database.as_deref().map(|url| ("DATABASE_URL", url)));
        let app = self.disk.start(&settings).await;
        let data = self.disk.outside(&data);
        let http = Proxy::start(port_of(&app.url()).unwrap_or_default()).await;
        Node { app, http, redis, postgres, data, dead: false }
    }

    fn start_consumer(&self, name: &str) -> Process {
        let book = self.books.path().join(format!("{name}.book")).display().to_string();
        jobs::start_consumer(&self.broker, name, &book)
    }

    /// The folder of PDFs, as this process sees it.
    fn public(&self) -> PathBuf {
        self.disk.outside(&self.disk.path().join("public"))
    }

    fn direct_broker(&self) -> String {
        match &self.redis {
            Some(redis) => redis.url(),
            None => engine_url(&self.nodes[0].data),
        }
    }

    /// Where everything is at the moment.
    pub(super) fn site(&self) -> Site {
        Site {
            nodes: self
                .nodes
                .iter()
                .map(|node| format!("http://127.0.0.1:{}", node.http.port()))
                .collect(),
            direct: self.nodes[0].app.url(),
            broker: self.broker.clone(),
            direct_broker: self.direct_broker(),
            public: self.public(),
            books: self.books.path().to_owned(),
            answers: self.answers.clone(),
        }
    }

    /// The report of `stampede doctor`; `Err` if something is wrong.
    pub(super) fn doctor(&self) -> Result<(), String> {
        let (healthy, report) = self.nodes[0].app.command(&["doctor"]);
        if healthy { Ok(()) } else { Err(report) }
    }

    /// Copies the logs of all nodes to a folder, for a person who looks for a cause.
    pub(super) fn keep_logs(&self, folder: &Path) {
        std::fs::create_dir_all(folder).ok();
        for (number, node) in self.nodes.iter().enumerate() {
            self.save_log(number, node);
        }
        for entry in std::fs::read_dir(self.books.path()).into_iter().flatten().flatten() {
            std::fs::copy(entry.path(), folder.join(entry.file_name())).ok();
        }
        for (number, consumer) in self.consumers.iter().enumerate() {
            std::fs::write(folder.join(format!("consumer-{number}.log")), consumer.log()).ok();
        }
    }

    /// A log begins anew with every start of its node.
    fn save_log(&self, number: usize, node: &Node) {
        let file = self.books.path().join(format!("node-{number}.log"));
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        std::fs::write(file, before + &node.app.log()).ok();
    }
}

/// The address of a node's engine; empty while it is written.
fn engine_url(data: &Path) -> String {
    std::fs::read_to_string(data.join("engine.url")).unwrap_or_default()
}

/// The port in an address such as `redis://default:password@127.0.0.1:6379/0`.
fn port_of(url: &str) -> Option<u16> {
    url.rsplit(':').next().and_then(|end| end.split('/').next()?.trim().parse().ok())
}
