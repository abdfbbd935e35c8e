//! The account of jobs: added by our broker, over HTTP and by Node's BullMQ; run by consumer processes that write a book.
//!
//! A handler's effect is a line in a book, synced before the handler ends. A handler may run again after a crash
//! (at least once), so an effect counts once however often it stands in the books. Counted:
//!
//! - lost: a job whose add was acknowledged, without an effect or without a `completed` event
//! - doubled: an id that two adds were given; an add under two ids; two `completed` events of a job
//! - wrong: a `failed` event, a dead letter, a job or a lock that is left
//!
//! An add of Node without an answer is unknown: it has its effect once, or never. Adds of our broker and over HTTP carry an id and
//! are repeated until they are answered.

mod audit;
mod consumer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::Method;
use serde_json::json;
use stampede_broker::{Broker, Config, JobSpec, Keep, Queue};
use stampede_testkit::Process;
use tokio_util::sync::CancellationToken;

use self::audit::{Seen, compare};
use super::caller::Caller;
use super::ledger::{Account, Audit, Site};

pub(super) use self::consumer::start as start_consumer;

/// The campaign's own queue.
const QUEUE: &str = "errands";
/// The name of its jobs.
const NAME: &str = "errand";
/// Longest pause between two adds of a producer.
const PAUSE: Duration = Duration::from_millis(120);
/// The pause after an add that was not answered.
const RETRY: Duration = Duration::from_millis(100);

/// What was acknowledged.
#[derive(Debug, Default)]
struct Book {
    /// Token and id of each add, in the order of the answers.
    acknowledged: Vec<(String, String)>,
    /// Tokens of adds without an answer.
    unknown: Vec<String>,
    contradictions: Vec<String>,
}

/// The account.
pub(super) struct Jobs {
    seed: u64,
    book: Mutex<Book>,
}

impl Jobs {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, book: Mutex::default() }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acknowledge(&self, token: String, id: String) {
        self.book().acknowledged.push((token, id));
    }

    /// Adds with our own broker until `stop`.
    async fn with_broker(&self, site: &Site, stop: &CancellationToken) {
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let queue = connect_patiently(&site.broker).await;
        for number in 0.. {
            if stop.is_cancelled() {
                return;
            }
            let token = format!("rust-{number}");
            let data = json!({ "token": token });
            let job = JobSpec {
                id: token.clone(),
                keep_completed: Keep::Forever,
                ..JobSpec::new(NAME, data)
            };
            while let Err(error) = queue.enqueue(std::slice::from_ref(&job)).await {
                let kind: String = error.to_string().chars().take(70).collect();
                site.answers.count(format!(
                    "not added, {}: {kind}",
                    if error.is_outage() { "outage" } else { "refused" }
                ));
                tokio::time::sleep(RETRY).await;
            }
            self.acknowledge(token.clone(), token);
            tokio::time::sleep(PAUSE.mul_f64(rng.f64())).await;
        }
    }

    /// Adds over HTTP until `stop`.
    async fn over_http(&self, site: &Site, stop: &CancellationToken) {
        let mut rng = fastrand::Rng::with_seed(self.seed + 1);
        let caller = Caller::new(site);
        let path = format!("/api/queues/{QUEUE}/jobs");
        for number in 0.. {
            if stop.is_cancelled() {
                return;
            }
            let token = format!("http-{number}");
            let job = json!({ "name": NAME, "id": token, "data": { "token": token } });
            let answer =
                caller.until_answered(Method::POST, &path, |request| request.json(&job)).await;
            if answer.status == 200 && answer.body["id"] == token.as_str() {
                self.acknowledge(token.clone(), token);
            } else {
                self.book()
                    .contradictions
                    .push(format!("job {token} was refused: {} {}", answer.status, answer.body));
            }
            tokio::time::sleep(2 * PAUSE.mul_f64(rng.f64())).await;
        }
    }

    /// Adds with Node's BullMQ until `stop`.
    async fn with_node(&self, site: &Site, stop: &CancellationToken) {
        let packages = node_packages().await;
        // Node looks for packages beside the file that asks.
        let folder = packages.join(format!("faults.{}", std::process::id()));
        let (script, book) = (folder.join("adder.mjs"), site.books.join("adder.acks"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(interop().join("node/processes/adder.mjs"), &script).unwrap();
        let [script, book_path] = [&script, &book].map(|path| path.display().to_string());
        let longest = PAUSE.as_millis().to_string();
        let mut adder =
            Process::start(&["node", &script, &site.broker, QUEUE, &book_path, &longest], &[]);
        stop.cancelled().await;
        adder.stop().await;
        std::fs::remove_dir_all(&folder).ok();
        assert!(!adder.log().contains("Error"), "{}", adder.log());
        self.read_acks(&book);
    }

    fn read_acks(&self, file: &Path) {
        let mut book = self.book();
        for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("acked"), Some(token), Some(id)) => {
                    book.acknowledged.push((token.to_owned(), id.to_owned()))
                }
                (Some("unknown"), Some(token), _) => book.unknown.push(token.to_owned()),
                _ => {}
            }
        }
    }
}

impl Account for Jobs {
    fn work(self: Arc<Self>, site: Site, stop: CancellationToken) -> BoxFuture<'static, ()> {
        async move {
            // Our broker and HTTP set no limit for the stream of events; Node's BullMQ does, to the one it is given.
            audit::redis_cli(
                &site.direct_broker,
                &["HSET", &format!("bull:{QUEUE}:meta"), "opts.maxLenEvents", "10000000"],
            );
            tokio::join!(
                self.with_broker(&site, &stop),
                self.over_http(&site, &stop),
                self.with_node(&site, &stop)
            );
        }
        .boxed()
    }

    fn settled<'a>(&'a self, site: &'a Site) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let status = Caller::new(site).get("/api/queues/status").await?;
            for queue in [QUEUE, "tickets"] {
                for state in ["waiting", "prioritized", "active", "delayed"] {
                    if status[queue][state] != 0 {
                        return Err(format!(
                            "{} jobs of {queue} are {state}",
                            status[queue][state]
                        ));
                    }
                }
            }
            Ok(())
        }
        .boxed()
    }

    fn audit<'a>(&'a self, site: &'a Site) -> BoxFuture<'a, Audit> {
        async move {
            match Seen::read(site).await {
                Ok(seen) => compare(&self.book(), &seen),
                Err(reason) => Audit {
                    wrong: vec![format!("the jobs cannot be read: {reason}")],
                    ..Audit::default()
                },
            }
        }
        .boxed()
    }
}

/// Connects to a Redis whose connections break.
async fn connect_patiently(url: &str) -> Queue {
    loop {
        if let Ok(broker) = Broker::connect(&Config::new(url)).await
            && let Ok(queue) = broker.queue(QUEUE).await
        {
            return queue;
        }
        tokio::time::sleep(RETRY).await;
    }
}

fn interop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop")
}

/// The folder with npm's packages; installed at the first use.
async fn node_packages() -> PathBuf {
    let output =
        tokio::process::Command::new(interop().join("run")).arg("packages").output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}
