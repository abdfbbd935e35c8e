//! Consumers in processes of their own, and a ledger of what they did, outside Redis.
//!
//! A process is this test binary started again for [`consumer_process`] alone. Each appends to a file
//! of its own, one line with one `write` per event: what was written stays when the process is killed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use stampede_broker::{ConsumerConfig, Handler, Job, JobContext, Outcome, Rate};
use stampede_testkit::{Process, TempDir, temp_dir};
use tokio_util::sync::CancellationToken;

use crate::stage::{config, connect};

const URL: &str = "STAMPEDE_FLEET_URL";
const TOKEN: &str = "STAMPEDE_FLEET_TOKEN";
const LEDGER: &str = "STAMPEDE_FLEET_LEDGER";
const SLOTS: &str = "STAMPEDE_FLEET_SLOTS";
const LOCK_MS: &str = "STAMPEDE_FLEET_LOCK_MS";
const LIMIT: &str = "STAMPEDE_FLEET_LIMIT";
const WORK_MS: &str = "STAMPEDE_FLEET_WORK_MS";

/// What the processes of a fleet have in common.
#[derive(Debug, Clone)]
pub(crate) struct Ship {
    pub(crate) url: String,
    pub(crate) slots: usize,
    pub(crate) lock: Duration,
    /// Jobs begun in any second, by the whole fleet.
    pub(crate) limit: Option<u32>,
    /// Longest time a job takes; each takes some part of it.
    pub(crate) work: Duration,
}

/// Processes that can be killed and replaced, and what they wrote.
pub(crate) struct Fleet {
    pub(crate) processes: Vec<Process>,
    ship: Ship,
    started: usize,
    // After the processes, which write in it.
    folder: TempDir,
}

/// One thing that a handler did.
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
        let (limit, work) = (limit.unwrap_or(0).to_string(), work.as_millis().to_string());
        let environment = [
            (URL, url.as_str()),
            (TOKEN, &name),
            (LEDGER, &ledger),
            (SLOTS, &slots),
            (LOCK_MS, &lock),
            (LIMIT, &limit),
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
    ledger: File,
    work: Duration,
}

impl Writes {
    fn write(&self, what: &str, job: &Job, at_us: u128) {
        (&self.ledger).write_all(format!("{what} {} {at_us}\n", job.id).as_bytes()).unwrap();
    }
}

impl Handler for Writes {
    async fn run(&self, job: &Job, _: &JobContext) -> Outcome {
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
    let ledger = OpenOptions::new().create(true).append(true).open(PathBuf::from(said(LEDGER)));
    let lock = Duration::from_millis(number(LOCK_MS));
    let limit = Some(number(LIMIT) as u32).filter(|limit| *limit > 0);
    let config = ConsumerConfig {
        slots: number(SLOTS) as usize,
        lock,
        stalled_interval: lock / 2,
        limit: limit.map(|limit| Rate::new(limit, Duration::from_secs(1))),
        ..config(&said(TOKEN))
    };
    let handler = Writes { ledger: ledger.unwrap(), work: Duration::from_millis(number(WORK_MS)) };
    let (_broker, queue) = connect_patiently(&url).await;
    stampede_broker::Consumer::new(config, queue, handler).run(CancellationToken::new()).await;
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
