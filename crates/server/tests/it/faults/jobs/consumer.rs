//! A consumer of the campaign's queue in a process of its own: this test binary, started again for one test.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Duration;

use serde_json::json;
use stampede_broker::{Consumer, ConsumerConfig, Handler, Job, JobContext, Outcome};
use stampede_testkit::Process;
use tokio_util::sync::CancellationToken;

use super::connect_patiently;

const URL: &str = "STAMPEDE_FAULTS_CONSUMER_URL";
const CONSUMER: &str = "STAMPEDE_FAULTS_CONSUMER";
const BOOK: &str = "STAMPEDE_FAULTS_CONSUMER_BOOK";
/// Locks that expire while a process is frozen for some seconds.
const LOCK: Duration = Duration::from_secs(4);
/// Longest time that a job takes.
const WORK: Duration = Duration::from_millis(40);

/// Starts a process.
pub(in crate::faults) fn start(url: &str, name: &str, book: &str) -> Process {
    let environment = [(URL, url), (CONSUMER, name), (BOOK, book)];
    Process::this_test("faults::jobs::consumer::consumer_process", &environment)
}

/// Writes the effect of each job into a book.
struct Writes(File);

impl Handler for Writes {
    async fn run(&self, job: &Job, _context: &JobContext) -> Outcome {
        tokio::time::sleep(WORK.mul_f64(fastrand::f64())).await;
        let Some(token) = job.data["token"].as_str() else {
            return Outcome::Discard("it has no token".to_owned());
        };
        let line = format!("effect {token} {}\n", job.id);
        let written = (&self.0).write_all(line.as_bytes()).and_then(|()| self.0.sync_data());
        match written {
            Ok(()) => Outcome::Done(json!(token)),
            Err(error) => panic!("the book: {error}"),
        }
    }
}

/// A consumer; as a test of its own it has nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumer_process() {
    let Ok(url) = std::env::var(URL) else { return };
    let said = |name: &str| std::env::var(name).unwrap();
    let book = OpenOptions::new().create(true).append(true).open(said(BOOK)).unwrap();
    let config = ConsumerConfig {
        lock: LOCK,
        stalled_interval: LOCK / 2,
        ..ConsumerConfig::new(said(CONSUMER), 8)
    };
    let queue = connect_patiently(&url).await;
    Consumer::new(config, queue, Writes(book)).run(CancellationToken::new()).await;
}
