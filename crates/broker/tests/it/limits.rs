//! Rate limits over several consumers.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use stampede_broker::JobSpec;
use stampede_broker::{ConsumerConfig, Handler, Job, JobContext, Outcome, Permit, Rate};
use stampede_testkit::eventually;

use crate::fleet::{Fleet, Limit, Ship, times};
use crate::stage::{Running, Stage, config, connect, job, jobs, throughout};

/// Notes when each job began; they need a permit of an account, if it has a limit.
#[derive(Clone)]
struct Begun {
    times: Arc<Mutex<Vec<Instant>>>,
    per_account: Option<Rate>,
}

impl Handler for Begun {
    async fn run(&self, job: &Job, context: &JobContext) -> Outcome {
        if let Some(rate) = self.per_account {
            match context.permit("account:17", Some(rate)).await {
                Ok(Permit::Granted(_)) => {}
                Ok(Permit::Wait(wait)) => return Outcome::Snooze(wait),
                Err(error) => return Outcome::Retry(error.to_string()),
            }
        }
        self.times.lock().unwrap().push(Instant::now());
        assert_eq!(job.attempts_made, 0, "waiting costs no attempt");
        Outcome::Done(json!(null))
    }
}

/// The most that any window of this length holds.
fn most_in_any(window: Duration, times: &[Instant]) -> usize {
    let held =
        |from: Instant| times.iter().filter(|at| **at >= from && **at < from + window).count();
    times.iter().map(|from| held(*from)).max().unwrap_or(0)
}

async fn assert_keeps(rate: Rate, queue_limit: Option<Rate>, per_account: Option<Rate>) {
    let stage = Stage::start().await;
    let begun = Begun { times: Arc::default(), per_account };
    stage.enqueue(&jobs(60)).await;
    let mut running = Vec::new();
    for number in 0..4 {
        // Connections of their own, as processes have.
        let (_, queue) = connect(&stage.redis.url()).await;
        let name = format!("w{number}");
        let config = ConsumerConfig { slots: 4, limit: queue_limit, ..config(&name) };
        running.push(Running::start(&queue, config, begun.clone()));
    }
    stage.until_completed(60).await;
    for consumer in running {
        consumer.stop().await;
    }
    let mut times = begun.times.lock().unwrap().clone();
    times.sort();
    let window = Duration::from_millis(rate.per_ms);
    let most = most_in_any(window, &times);
    assert!(most <= rate.max as usize, "{most} in {window:?}");
    assert_eq!(times.len(), 60);
}

#[tokio::test]
async fn a_queue_keeps_its_limit_in_any_window_over_all_consumers() {
    let rate = Rate::new(20, Duration::from_millis(500));
    assert_keeps(rate, Some(rate), None).await;
}

#[tokio::test]
async fn an_account_keeps_its_limit_and_its_jobs_only_wait() {
    let rate = Rate::new(20, Duration::from_millis(500));
    assert_keeps(rate, None, Some(rate)).await;
}

#[tokio::test]
async fn a_limit_is_changed_for_everybody_while_it_is_in_use() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    let (elsewhere, _) = connect(&stage.redis.url()).await;
    let take = async || elsewhere.limits().take("sms", None).await.unwrap();
    assert!(matches!(take().await, Permit::Granted(_)), "nobody has set one");
    let rate = Rate::new(2, Duration::from_secs(60));
    limits.set("sms", rate).await.unwrap();
    assert_eq!(limits.all().await.unwrap(), [("sms".to_owned(), rate)].into());
    let Permit::Granted(first) = take().await else { panic!("the first is free") };
    assert!(matches!(take().await, Permit::Granted(_)));
    let Permit::Wait(wait) = take().await else { panic!("the third must wait") };
    // A minute; but it may be raised meanwhile, so nobody is told to come later than this.
    assert_eq!(wait, Duration::from_secs(30));
    first.give_back().await.unwrap();
    assert!(matches!(take().await, Permit::Granted(_)), "what was given back is free");
    limits.set("sms", Rate::new(3, Duration::from_secs(60))).await.unwrap();
    assert!(matches!(take().await, Permit::Granted(_)), "one more since it was raised");
    limits.set("sms", Rate::new(0, Duration::from_secs(1))).await.unwrap();
    assert!(matches!(take().await, Permit::Wait(_)), "0 stops everything");
    limits.set("sms", Rate::new(0, Duration::from_secs(24 * 3600))).await.unwrap();
    let Permit::Wait(wait) = take().await else { panic!("0 stops everything") };
    assert!(wait <= Duration::from_secs(30), "{wait:?}: it may be lifted meanwhile");
    assert!(limits.unset("sms").await.unwrap());
    assert!(matches!(take().await, Permit::Granted(_)));
}

#[tokio::test]
async fn a_limit_and_what_was_used_of_it_survive_restarts_of_redis_and_of_everybody() {
    let mut stage = Stage::durable().await;
    let rate = Rate::new(2, Duration::from_secs(60));
    {
        let (broker, _) = connect(&stage.redis.url()).await;
        broker.limits().set("sms", rate).await.unwrap();
        let first = broker.limits().take("sms", None).await.unwrap();
        assert!(matches!(first, Permit::Granted(_)));
    }
    stage.redis.restart().await;
    let (broker, _) = connect(&stage.redis.url()).await;
    let limits = broker.limits();
    assert_eq!(limits.all().await.unwrap(), [("sms".to_owned(), rate)].into());
    assert!(matches!(limits.take("sms", None).await.unwrap(), Permit::Granted(_)));
    let third = limits.take("sms", None).await.unwrap();
    assert!(matches!(third, Permit::Wait(_)), "the first was used before the restart");
}

#[tokio::test]
async fn a_clock_that_is_set_back_neither_blocks_nor_lets_more_through() {
    let stage = Stage::start().await;
    let rate = Some(Rate::new(3, Duration::from_secs(60)));
    let limits = stage.broker.limits();
    for _ in 0..3 {
        assert!(matches!(limits.take("sms", rate).await.unwrap(), Permit::Granted(_)));
    }
    // As the grants look when the clock has been set back by an hour: after a failover, say.
    let granted = "stampede:limit:{sms}:granted";
    let ids: Vec<String> = stage.ask(&format!("ZRANGE {granted} 0 -1")).await;
    for id in &ids {
        let _: String = stage.ask(&format!("ZINCRBY {granted} 3600000000 {id}")).await;
    }
    for _ in 0..2 {
        assert!(matches!(limits.take("sms", rate).await.unwrap(), Permit::Wait(_)));
    }
    let now: Vec<f64> = stage.ask("TIME").await;
    let latest: (String, f64) = {
        let found: Vec<(String, f64)> =
            stage.ask(&format!("ZRANGE {granted} -1 -1 WITHSCORES")).await;
        found[0].clone()
    };
    assert!(latest.1 <= now[0] * 1e6 + now[1], "it counts from now on, not from an hour later");
}

/// Needs a permit of the account in the job's data.
#[derive(Clone, Default)]
struct PerAccount {
    done: Arc<Mutex<Vec<u64>>>,
}

impl Handler for PerAccount {
    async fn run(&self, job: &Job, context: &JobContext) -> Outcome {
        let account = job.data["account"].as_u64().unwrap();
        match context.permit(&format!("account:{account}"), None).await {
            Ok(Permit::Granted(_)) => self.done.lock().unwrap().push(account),
            Ok(Permit::Wait(wait)) => return Outcome::Snooze(wait),
            Err(error) => return Outcome::Retry(error.to_string()),
        }
        Outcome::Done(json!(null))
    }
}

#[tokio::test]
async fn jobs_that_wait_for_their_account_hold_up_no_others() {
    let stage = Stage::start().await;
    stage.broker.limits().set("account:17", Rate::new(1, Duration::from_secs(60))).await.unwrap();
    let of = |account: u64| {
        (0..10).map(move |n| JobSpec {
            data: json!({ "account": account }),
            ..job(&format!("{account}-{n}"))
        })
    };
    // Those that have to wait come first, and there is one slot.
    stage.enqueue(&of(17).chain(of(18)).collect::<Vec<_>>()).await;
    let accounts = PerAccount::default();
    let running = Running::start(&stage.queue, config("w"), accounts.clone());
    stage.until("all but nine", |counts| counts.completed == 11 && counts.delayed == 9).await;
    running.stop().await;
    let done = accounts.done.lock().unwrap().clone();
    assert_eq!(done.iter().filter(|account| **account == 18).count(), 10, "{done:?}");
}

#[tokio::test]
async fn the_limit_of_a_queue_is_set_changed_and_lifted_while_its_consumer_works() {
    let stage = Stage::start().await;
    let stalled_interval = Duration::from_millis(100);
    let mut played = stage.play(ConsumerConfig { stalled_interval, ..config("w") });
    stage.enqueue(&jobs(100)).await;
    // No limit yet.
    for _ in 0..30 {
        played.run().await.completes();
    }
    let limits = stage.broker.limits();
    let set = async |max: u32| {
        limits.set("queue:tickets", Rate::new(max, Duration::from_secs(3600))).await.unwrap();
    };
    set(0).await;
    // It is noticed between two jobs; then nothing begins any more.
    let mut begun = 30;
    while let Ok(run) = tokio::time::timeout(Duration::from_secs(2), played.run()).await {
        begun += 1;
        assert!(begun < 90, "nobody keeps to the limit");
        // Longer than it takes to look for limits.
        throughout(2 * stalled_interval, async || {}).await;
        run.completes();
    }
    set(5).await;
    // Who was told to wait for an hour comes back after half a minute at most; here the next look is sooner.
    for _ in 0..5 {
        played.run().await.completes();
    }
    throughout(Duration::from_secs(1), async || {}).await;
    played.runs_nothing_else();
    assert!(limits.unset("queue:tickets").await.unwrap());
    for _ in begun + 5..100 {
        played.run().await.completes();
    }
    stage.until_completed(100).await;
}

const LIMIT: usize = 20;
const JOBS: usize = 220;

/// When jobs began in eight processes with four slots each, in microseconds.
async fn eight_processes(limit: impl Fn(u32) -> Limit) -> Vec<u64> {
    let stage = Stage::start().await;
    let ship = Ship {
        url: stage.redis.url(),
        slots: 4,
        lock: Duration::from_secs(30),
        limit: limit(LIMIT as u32),
        work: Duration::ZERO,
    };
    let fleet = Fleet::start(8, ship);
    stage.until_idle(8).await;
    stage.enqueue(&jobs(JOBS)).await;
    eventually(Duration::from_secs(60), || async {
        let counts = stage.queue.counts().await.unwrap();
        if counts.completed == JOBS as u64 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    // When each handler began, by the clock that all processes share.
    let ledger = fleet.ledger();
    assert!(times(&ledger, "began").values().all(|runs| *runs == 1));
    let mut begun: Vec<u64> =
        ledger.iter().filter(|e| e.what == "began").map(|e| e.at_us).collect();
    begun.sort_unstable();
    assert_eq!(begun.len(), JOBS);
    begun
}

fn assert_every_window_holds(begun: &[u64]) {
    let in_second =
        |from: &u64| begun.iter().filter(|at| (*from..from + 1_000_000).contains(at)).count();
    let most = begun.iter().map(in_second).max().unwrap();
    assert!(most <= LIMIT, "{most} began in one second");
}

/// The pace of the middle window: how long a window's worth of jobs took, as the median of all that follow one another.
/// A machine that stands still for a moment lengthens some of them; a limiter that wastes time lengthens all.
fn assert_reaches(begun: &[u64], least: f64) {
    let mut spans: Vec<u64> =
        begun.windows(LIMIT + 1).map(|window| window[LIMIT] - window[0]).collect();
    spans.sort_unstable();
    let rate = LIMIT as f64 / (spans[spans.len() / 2] as f64 / 1e6);
    assert!(rate >= least * LIMIT as f64, "{rate:.2} a second");
}

#[tokio::test]
async fn eight_processes_keep_a_queues_limit_in_every_window() {
    assert_every_window_holds(&eight_processes(Limit::OfQueue).await);
}

#[tokio::test]
async fn eight_processes_keep_a_keys_limit_in_every_window() {
    assert_every_window_holds(&eight_processes(Limit::OfKey).await);
}

#[tokio::test]
async fn eight_processes_nearly_reach_a_queues_limit() {
    assert_reaches(&eight_processes(Limit::OfQueue).await, 0.95);
}

#[tokio::test]
async fn eight_processes_come_near_a_keys_limit() {
    // Who has to wait goes back to the queue, and comes again a little late.
    assert_reaches(&eight_processes(Limit::OfKey).await, 0.9);
}
