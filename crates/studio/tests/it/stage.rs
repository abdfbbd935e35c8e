//! What the tests share: an artist that counts and can be held up, Redis, files, a worker.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use stampede_broker::{Broker, Config, Consumer, ConsumerConfig, JobList};
use stampede_files::{Durability, Files};
use stampede_studio::{
    Artist, Draw, Drawn, Error, Format, GenerateSticker, Limits, NotDrawn, Order, Parts, Priority,
    Studio, Variant,
};
use stampede_testkit::Redis;
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longer than any test runs.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// Draws whole files whose content is the text. `boom` panics, `☠` has no glyph, `hold …` waits until it is let go.
pub(crate) struct Painter {
    pub(crate) version: u32,
    drawn: AtomicUsize,
    held: (Mutex<usize>, Condvar),
    begun: UnboundedSender<String>,
}

impl Painter {
    /// How many stickers were drawn.
    pub(crate) fn drawn(&self) -> usize {
        self.drawn.load(Ordering::SeqCst)
    }

    /// Lets so many held stickers go.
    pub(crate) fn let_go(&self, count: usize) {
        *self.held.0.lock().unwrap() += count;
        self.held.1.notify_all();
    }

    fn hold(&self) {
        let free = self.held.1.wait_while(self.held.0.lock().unwrap(), |free| *free == 0);
        *free.unwrap() -= 1;
    }
}

/// The artist of the tests.
struct Fake(Arc<Painter>);

impl Artist for Fake {
    fn version(&self) -> u32 {
        self.0.version
    }

    fn text(&self, text: &str) -> Result<String, String> {
        match text.trim() {
            "" => Err("is empty".to_owned()),
            text => Ok(text.to_owned()),
        }
    }

    fn variants(&self) -> Vec<Variant> {
        ["plain", "neon"].map(shipped).into()
    }

    fn variant(&self, name_or_look: &Value) -> Result<Variant, String> {
        match name_or_look.as_str() {
            Some(name @ ("plain" | "neon")) => Ok(shipped(name)),
            Some(_) => Err("is not known; did you mean neon?".to_owned()),
            None => Ok(Variant {
                name: None,
                ..shipped(name_or_look["fill"].as_str().unwrap_or_default())
            }),
        }
    }

    fn drawer(&self) -> Box<dyn Draw> {
        Box::new(Brush(self.0.clone()))
    }
}

fn shipped(name: &str) -> Variant {
    let look = json!({ "fill": name });
    Variant { name: Some(name.to_owned()), config_id: format!("config of {name}"), look }
}

struct Brush(Arc<Painter>);

impl Draw for Brush {
    fn draw(&mut self, text: &str, _: &Variant, _: Format) -> Result<Vec<u8>, NotDrawn> {
        // A test that does not listen has gone.
        let _ = self.0.begun.send(text.to_owned());
        if text.starts_with("hold") {
            self.0.hold();
        }
        assert!(text != "boom", "the drawer panics at this text");
        if text.contains('☠') {
            return Err(NotDrawn::Impossible("has no glyph for ☠".to_owned()));
        }
        self.0.drawn.fetch_add(1, Ordering::SeqCst);
        Ok(webp(text))
    }
}

/// A file that begins and ends as a WEBP does.
pub(crate) fn webp(text: &str) -> Vec<u8> {
    let content = format!("WEBP{text}");
    [b"RIFF".as_slice(), &(content.len() as u32).to_le_bytes(), content.as_bytes()].concat()
}

/// Redis and a folder, which all nodes share.
pub(crate) struct Stage {
    _redis: Redis,
    pub(crate) folder: TempDir,
    pub(crate) broker: Broker,
}

/// A process with a studio.
pub(crate) struct Node {
    pub(crate) studio: Studio,
    pub(crate) painter: Arc<Painter>,
    /// Texts whose drawing has begun.
    begun: UnboundedReceiver<String>,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let redis = Redis::start().await;
        let broker = Broker::connect(&Config::new(redis.url())).await.unwrap();
        Self { _redis: redis, folder: TempDir::new().unwrap(), broker }
    }

    pub(crate) async fn node(&self, threads: usize, queue: usize) -> Node {
        self.node_with(Limits { threads, queue, patience: LONG }).await
    }

    pub(crate) async fn node_with(&self, limits: Limits) -> Node {
        self.node_of_version(limits, 1).await
    }

    pub(crate) async fn node_of_version(&self, limits: Limits, version: u32) -> Node {
        let (begin, begun) = unbounded_channel();
        let (drawn, held) = (AtomicUsize::new(0), Default::default());
        let painter = Arc::new(Painter { version, drawn, held, begun: begin });
        let root = self.folder.path().to_owned();
        let config = stampede_files::Config { root, durability: Durability::Relaxed };
        let parts = Parts {
            broker: self.broker.clone(),
            files: Files::open(&config).await.unwrap(),
            artist: Arc::new(Fake(painter.clone())),
            limits,
        };
        let studio = Studio::open(parts).await.unwrap();
        Node { studio, painter, begun }
    }

    /// A worker process that serves the queue.
    pub(crate) async fn worker(&self) -> (Node, Working) {
        self.worker_of_version(1).await
    }

    pub(crate) async fn worker_of_version(&self, version: u32) -> (Node, Working) {
        let node = self.node_of_version(Limits::of_worker(), version).await;
        let jobs = JobList::default().with::<GenerateSticker>(node.studio.clone());
        let queue = self.broker.queue("stickers").await.unwrap();
        let config = ConsumerConfig::new("worker", jobs.slots("stickers", 16));
        let stop = CancellationToken::new();
        let consumer = Consumer::new(config, queue, jobs.handler("stickers"));
        let running = tokio::spawn(consumer.run(stop.clone()));
        (node, Working { stop, running })
    }
}

/// A consumer that runs.
pub(crate) struct Working {
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Working {
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

impl Node {
    pub(crate) fn order(&self, text: &str) -> Order {
        self.studio.order(text, None, Format::Webp).unwrap()
    }

    pub(crate) async fn draw(&self, text: &str) -> Result<Drawn, Error> {
        self.studio.draw(&self.order(text), Priority::Normal).await
    }

    /// Draws in a task of its own, as a request does.
    pub(crate) fn spawn(&self, text: &str) -> JoinHandle<Result<Drawn, Error>> {
        let (studio, order) = (self.studio.clone(), self.order(text));
        tokio::spawn(async move { studio.draw(&order, Priority::Normal).await })
    }

    /// Waits until the drawing of a text begins.
    pub(crate) async fn until_begun(&mut self, text: &str) {
        while self.begun.recv().await.unwrap() != text {}
    }

    /// How many orders wait in the pool.
    pub(crate) async fn waiting(&self) -> usize {
        self.studio.stats().await.pool.queue_size
    }
}

/// The bytes of a sticker that is ready.
#[track_caller]
pub(crate) fn bytes(drawn: Result<Drawn, Error>) -> Vec<u8> {
    match drawn {
        Ok(Drawn::Ready(sticker)) => sticker.bytes.to_vec(),
        other => panic!("{other:?}"),
    }
}
