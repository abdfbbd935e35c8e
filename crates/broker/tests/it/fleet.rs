//! Consumers in processes of their own, and a ledger of what they did, outside Redis.
//!
//! A process is this test binary started again for [`consumer_process`] alone. Each appends to a file
//! of its own, one line with one `write` per event: what was written stays when the process is killed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use stampede_broker::{
    Consumer, ConsumerConfig, ConsumerEvent, EventKind, Handler, Job, JobContext, Outcome, Permit,
    Rate,
};
use stampede_testkit::{Process, TempDir, temp_dir};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::stage::{config, connect};

const URL: &str = "STAMPEDE_FLEET_URL";
const TOKEN: &str = "STAMPEDE_FLEET_TOKEN";
const LEDGER: &str = "STAMPEDE_FLEET_LEDGER";
const SLOTS: &str = "STAMPEDE_FLEET_SLOTS";
const LOCK_MS: &str = "STAMPEDE_FLEET_LOCK_MS";
const QUEUE_LIMIT: &str = "STAMPEDE_FLEET_QUEUE_LIMIT";
const KEY_LIMIT: &str = "STAMPEDE_FLEET_KEY_LIMIT";
const WORK_MS: &str = "STAMPEDE_FLEET_WORK_MS";

/// What the processes of a fleet have in common.
#[derive(Debug, Clone)]
pub(crate) struct Ship {
    pub(crate) url: String,
    pub(crate) slots: usize,
    pub(crate) lock: Duration,
    pub(crate) limit: Limit,
    /// Longest time a job takes; each takes some part of it.
    pub(crate) work: Duration,
}

/// How many jobs the whole fleet may begin in any second.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    No,
    /// A limit of the queue, which the consumer keeps.
    OfQueue(u32),
    /// A limit of a key, which the handler asks for.
    OfKey(u32),
}

/// Processes that can be killed and replaced, and what they wrote.
pub(crate) struct Fleet {
    pub(crate) processes: Vec<Process>,
    ship: Ship,
    started: usize,
    // After the processes, which write in it.
    folder: TempDir,
}

/// One thing that a handler did (`began`, `effect`, `stumbled`, `refused`), or that Redis has told the
/// process it came to (`completed`, `failed`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) what: String,
    pub(crate) job: String,
    /// Microseconds since 1970, by the clock that all processes share.
    pub(crate) at_us: u64,
}

impl Fleet {
    pub(crate) fn start(count: usize, ship: Ship) -> Self {
        let mut fleet = Self { processes: Vec::new(), ship, started: 0, folder: temp_dir() };
        for _ in 0..count {
            let process = fleet.launch();
            fleet.processes.push(process);
        }
        fleet
    }

    /// Kills a process with SIGKILL and puts another in its place.
    pub(crate) fn replace(&mut self, index: usize) {
        self.processes[index].kill();
        self.processes[index] = self.launch();
    }

    fn launch(&mut self) -> Process {
        self.started += 1;
        let name = format!("ship-{}", self.started);
        let ledger = self.folder.path().join(&name).display().to_string();
        let Ship { url, slots, lock, limit, work } = &self.ship;
        let (slots, lock) = (slots.to_string(), lock.as_millis().to_string());
        let (of_queue, of_key) = match limit {
            Limit::No => (0, 0),
            Limit::OfQueue(limit) => (*limit, 0),
            Limit::OfKey(limit) => (0, *limit),
        };
        let (of_queue, of_key) = (of_queue.to_string(), of_key.to_string());
        let work = work.as_millis().to_string();
        let environment = [
            (URL, url.as_str()),
            (TOKEN, &name),
            (LEDGER, &ledger),
            (SLOTS, &slots),
            (LOCK_MS, &lock),
            (QUEUE_LIMIT, &of_queue),
            (KEY_LIMIT, &of_key),
            (WORK_MS, &work),
        ];
        Process::this_test("fleet::consumer_process", &environment)
    }

    /// All that was written, in no order.
    pub(crate) fn ledger(&self) -> Vec<Entry> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        files.flat_map(|file| entries(&file.unwrap().path())).collect()
    }
}

fn entries(file: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(file).unwrap();
    let read = |line: &str| {
        let mut words = line.split(' ');
        let (what, job) = (words.next()?.to_owned(), words.next()?.to_owned());
        Some(Entry { what, job, at_us: words.next()?.parse().ok()? })
    };
    text.lines().map(|line| read(line).unwrap_or_else(|| panic!("{line:?}"))).collect()
}

/// How often each job has an entry of this kind.
pub(crate) fn times(entries: &[Entry], what: &str) -> HashMap<String, usize> {
    let mut times = HashMap::new();
    for entry in entries.iter().filter(|entry| entry.what == what) {
        *times.entry(entry.job.clone()).or_default() += 1;
    }
    times
}

/// What the processes do with jobs: those named `flaky` fail at first, `broken` ones for good.
struct Writes {
    ledger: Arc<Ledger>,
    limit: Option<Rate>,
    work: Duration,
}

struct Ledger(File);

impl Ledger {
    fn write(&self, what: &str, job_id: &str, at_us: u128) {
        (&self.0).write_all(format!("{what} {job_id} {at_us}\n").as_bytes()).unwrap();
    }

    /// Writes what became of jobs until the consumer is gone.
    async fn write_ends(self: Arc<Self>, mut events: broadcast::Receiver<ConsumerEvent>) {
        loop {
            match events.recv().await.map(|event| (event.job_id, event.kind)) {
                Ok((job_id, EventKind::Completed)) => self.write("completed", &job_id, now_us()),
                Ok((job_id, EventKind::Failed(_))) => self.write("failed", &job_id, now_us()),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => panic!("{missed} events were not read in time"),
                Err(RecvError::Closed) => return,
            }
        }
    }
}

impl Writes {
    fn write(&self, what: &str, job: &Job, at_us: u128) {
        self.ledger.write(what, &job.id, at_us);
    }
}

impl Handler for Writes {
    async fn run(&self, job: &Job, context: &JobContext) -> Outcome {
        if self.limit.is_some() {
            match context.permit("account:17", self.limit).await {
                Ok(Permit::Granted(_)) => {}
                Ok(Permit::Wait(wait)) => return Outcome::Snooze(wait),
                Err(error) => return Outcome::Retry(error.to_string()),
            }
        }
        // Before anything else: this is the moment in which the job begins.
        let began = now_us();
        self.write("began", job, began);
        let took = self.work.mul_f64(fastrand::f64());
        if !took.is_zero() {
            tokio::time::sleep(took).await;
        }
        match job.name.as_str() {
            "flaky" if job.attempts_made == 0 => {
                self.write("stumbled", job, now_us());
                Outcome::Retry("not the first time".to_owned())
            }
            "broken" => {
                self.write("refused", job, now_us());
                Outcome::Discard("cannot be done".to_owned())
            }
            _ => {
                self.write("effect", job, now_us());
                Outcome::Done(json!(null))
            }
        }
    }
}

fn now_us() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()
}

/// A process of a fleet; as a test of its own it has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumer_process() {
    let Ok(url) = std::env::var(URL) else { return };
    let said = |name: &str| std::env::var(name).unwrap();
    let number = |name: &str| said(name).parse::<u64>().unwrap();
    let file = OpenOptions::new().create(true).append(true).open(PathBuf::from(said(LEDGER)));
    let ledger = Arc::new(Ledger(file.unwrap()));
    let lock = Duration::from_millis(number(LOCK_MS));
    let limit = |name: &str| {
        let limit = Some(number(name) as u32).filter(|limit| *limit > 0);
        limit.map(|limit| Rate::new(limit, Duration::from_secs(1)))
    };
    let config = ConsumerConfig {
        slots: number(SLOTS) as usize,
        lock,
        stalled_interval: lock / 2,
        limit: limit(QUEUE_LIMIT),
        ..config(&said(TOKEN))
    };
    let handler = Writes {
        ledger: ledger.clone(),
        limit: limit(KEY_LIMIT),
        work: Duration::from_millis(number(WORK_MS)),
    };
    let (_broker, queue) = connect_patiently(&url).await;
    let consumer = Consumer::new(config, queue, handler);
    tokio::spawn(ledger.write_ends(consumer.handle().events()));
    consumer.run(CancellationToken::new()).await;
}

/// The connection may be reset while it is made.
pub(crate) async fn connect_patiently(
    url: &str,
) -> (stampede_broker::Broker, stampede_broker::Queue) {
    loop {
        let connecting = tokio::spawn({
            let url = url.to_owned();
            async move { connect(&url).await }
        });
        if let Ok(connected) = connecting.await {
            return connected;
        }
    }
}
