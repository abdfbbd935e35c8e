//! The limit of an account, by the clock of the provider: no window holds more messages than it may.
//!
//! `STAMPEDE_LIMIT_MESSAGES` is the number of messages (100).
//!
//! Which limit is it when it is changed? That under which a message was sent, and for the window that ends with this message:
//! at that moment, the limit and all messages before it were known. So a window may hold more than the limit that comes next,
//! but then no message ends it. Between the request for a change and its answer, a message may be sent under either limit. From
//! the answer on, no message is claimed under the former one; those that were claimed before may still be on their way. A change
//! that makes the window longer counts the messages that had left the former one (`crates/campaign/src/history.rs`).

use std::time::{Duration, Instant};

use serde_json::json;
use stampede_testkit::{Client, Faults, Redis, eventually, temp_dir};

use super::recorder::{Recorder, limited};
use super::{HERE, completed, large_campaign, organiser, size, verb};
use crate::cluster::Cluster;
use crate::{PATIENCE, start};

/// Messages are dated when they arrive. One that is held up on its way arrives closer to those after it than it was sent. It is
/// held up by the scheduler: four workers, two nodes, their servers and other tests share two cores. The limit itself is kept at
/// the moment at which a worker begins to write.
const HELD_UP: Duration = Duration::from_millis(200);
/// How long after the answer to a change a message arrives that was claimed before: it is held up before it leaves, and on its way.
const ON_ITS_WAY: Duration = Duration::from_millis(400);

/// A limit, and when it was in force.
struct Limit {
    max: usize,
    per: Duration,
    /// When it was asked for.
    from: Instant,
    /// When the last message that was claimed under it had arrived.
    until: Option<Instant>,
}

impl Limit {
    fn new(max: usize, per: Duration) -> Self {
        Self { max, per, from: Instant::now(), until: None }
    }

    /// Whether a message may have been sent under it.
    fn was_in_force(&self, at: Instant) -> bool {
        self.from <= at && self.until.is_none_or(|until| at < until)
    }

    /// Whether the window that ends with this message holds no more than it may.
    fn is_kept(&self, times: &[Instant], message: usize) -> bool {
        self.shortest(times, message).is_none_or(|took| took + HELD_UP >= self.per)
    }

    /// The time from the message that must have left the window until this one.
    fn shortest(&self, times: &[Instant], message: usize) -> Option<Duration> {
        let first = message.checked_sub(self.max)?;
        Some(times[message] - times[first])
    }
}

/// Panics if a window holds more than it may; returns how much shorter than it may be the shortest one was.
fn assert_kept(times: &[Instant], limits: &[Limit]) -> Duration {
    let mut shorter = Duration::ZERO;
    for (message, at) in times.iter().enumerate() {
        let in_force: Vec<&Limit> = limits.iter().filter(|limit| limit.was_in_force(*at)).collect();
        let told: Vec<_> = in_force
            .iter()
            .map(|limit| (limit.max, limit.per, limit.shortest(times, message)))
            .collect();
        assert!(
            in_force.iter().any(|limit| limit.is_kept(times, message)),
            "message {message} came too early; its limits (max, per, took): {told:?}"
        );
        if let [limit] = in_force.as_slice() {
            let took = limit.shortest(times, message).unwrap_or(limit.per);
            shorter = shorter.max(limit.per.saturating_sub(took));
        }
    }
    shorter
}

/// Changes the limit of the account.
async fn change(client: &Client, limits: &mut Vec<Limit>, max: usize, per: Duration) {
    let limit = Limit::new(max, per);
    let change = json!({ "pacing": limited(max, per) });
    client.patch("/api/accounts/hook", &change).await.expect(200);
    if let Some(former) = limits.last_mut() {
        former.until = Some(Instant::now() + ON_ITS_WAY);
    }
    limits.push(limit);
}

fn times(recorder: &Recorder) -> Vec<Instant> {
    recorder.arrivals().iter().map(|arrival| arrival.at).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_workers_on_two_nodes_keep_a_limit_that_is_changed_and_lengthened() {
    let messages = size("STAMPEDE_LIMIT_MESSAGES", 100);
    let recorder = Recorder::start(Duration::ZERO).await;
    let cluster = Cluster::start().await;
    let settings = [HERE, ("WORKER_COUNT", "2")];
    let (a, b) =
        tokio::join!(cluster.node("a", "both", &settings), cluster.node("b", "both", &settings));
    eventually(PATIENCE, || async {
        let workers = (a.workers().len(), b.workers().len());
        if workers == (2, 2) { Ok(()) } else { Err(format!("{workers:?} workers")) }
    })
    .await;
    let clients = [a.admin(), b.admin()];
    let second = Duration::from_secs(1);
    let mut limits = vec![Limit::new(20, 2 * second)];
    recorder.account(&clients[0], "hook", 20, 2 * second).await;
    let path = large_campaign(&clients[0], "hook", messages).await;
    verb(&clients[0], &path, "start").await.expect(200);
    // The last one makes the window longer.
    let changes = [(12, 2 * second), (30, 2 * second), (5, second), (10, 4 * second)];
    for (number, (max, per)) in changes.into_iter().enumerate() {
        recorder.has(messages * (number + 1) / 5).await;
        change(&clients[(number + 1) % 2], &mut limits, max, per).await;
    }
    completed(&clients[1], &path).await;
    assert_eq!(recorder.assert_agrees(&clients[1], &path).await, (messages as u64, 0));
    let shorter = assert_kept(&times(&recorder), &limits);
    println!("a window was shorter than it may be by {shorter:?}, at most");
}

/// Limits are kept by the clock of Redis: those of nodes and workers may be wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_of_workers_that_jump_open_no_window() {
    let messages = size("STAMPEDE_LIMIT_MESSAGES", 60);
    let recorder = Recorder::start(Duration::ZERO).await;
    let folder = temp_dir();
    let clock = Faults::of_disk(folder.path());
    let redis = Redis::start().await;
    let url = redis.url();
    let mut settings = clock.environment();
    settings.extend([HERE, ("WORKER_COUNT", "2"), ("REDIS_URL", url.as_str())]);
    let app = start(&settings).await;
    let ann = organiser(&app, "ann");
    let per = Duration::from_secs(2);
    let limits = [Limit::new(20, per)];
    recorder.account(&ann, "hook", 20, per).await;
    let path = large_campaign(&ann, "hook", messages).await;
    verb(&ann, &path, "start").await.expect(200);
    // At the end it is right: jobs wait by the clock of the worker that has put them off.
    for (number, clock_ms) in [5_000, -5_000, 0].into_iter().enumerate() {
        recorder.has(messages * (number + 1) / 4).await;
        clock.change(|wrong| wrong.clock_ms = clock_ms);
    }
    completed(&ann, &path).await;
    assert_eq!(recorder.assert_agrees(&ann, &path).await, (messages as u64, 0));
    let shorter = assert_kept(&times(&recorder), &limits);
    println!("a window was shorter than it may be by {shorter:?}, at most");
}
