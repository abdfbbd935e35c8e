//! Circuit breakers shared over Redis.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use stampede_broker::JobSpec;
use stampede_broker::{
    Breaker, BreakerConfig, BreakerDecision, Call, ConsumerConfig, EventKind, Handler, Job,
    JobContext, JobPolicy, Outcome,
};
use stampede_testkit::eventually;

use crate::stage::{Running, SOON, Stage, config, connect, job, throughout};

fn quick() -> BreakerConfig {
    BreakerConfig {
        failures: 3,
        within: Duration::from_secs(60),
        pause: Duration::from_millis(300),
        patience: Duration::from_millis(500),
    }
}

async fn pass(breaker: &Breaker) -> Box<Call> {
    match breaker.ask().await.unwrap() {
        BreakerDecision::Allowed(passage) => passage,
        BreakerDecision::Refused(wait) => panic!("shut for {wait:?}"),
    }
}

async fn is_shut(breaker: &Breaker) -> Option<Duration> {
    match breaker.ask().await.unwrap() {
        BreakerDecision::Allowed(_) => None,
        BreakerDecision::Refused(wait) => Some(wait),
    }
}

async fn until_open(breaker: &Breaker) -> Box<Call> {
    eventually(SOON, || async {
        match breaker.ask().await.unwrap() {
            BreakerDecision::Allowed(passage) => Ok(passage),
            BreakerDecision::Refused(wait) => Err(format!("shut for {wait:?}")),
        }
    })
    .await
}

#[tokio::test]
async fn enough_failures_shut_it_for_everybody_and_one_success_opens_it() {
    let stage = Stage::start().await;
    let (elsewhere, _) = connect(&stage.redis.url()).await;
    let here = stage.broker.breaker("smtp", quick());
    let there = elsewhere.breaker("smtp", quick());
    let late = pass(&here).await;
    pass(&here).await.failed().await.unwrap();
    pass(&there).await.failed().await.unwrap();
    pass(&there).await.worked().await.unwrap();
    assert!(is_shut(&here).await.is_none(), "two failures are not enough");
    pass(&here).await.failed().await.unwrap();
    let wait = is_shut(&there).await.expect("shut for others too");
    assert!(wait <= Duration::from_millis(300));
    assert!(is_shut(&stage.broker.breaker("sms", quick())).await.is_none(), "others are well");

    let probe = until_open(&here).await;
    assert!(is_shut(&there).await.is_some(), "one at a time finds out");
    // A call from before it was shut says nothing about now.
    late.failed().await.unwrap();
    probe.worked().await.unwrap();
    assert!(is_shut(&there).await.is_none());
    pass(&there).await.failed().await.unwrap();
    assert!(is_shut(&here).await.is_none(), "old failures are forgotten");
}

#[tokio::test]
async fn a_failed_probe_shuts_it_again_and_a_lost_one_makes_room() {
    let stage = Stage::start().await;
    let breaker = stage.broker.breaker("smtp", quick());
    for _ in 0..3 {
        pass(&breaker).await.failed().await.unwrap();
    }
    until_open(&breaker).await.failed().await.unwrap();
    assert!(is_shut(&breaker).await.is_some());
    // Its worker dies: nobody says how it went.
    std::mem::forget(until_open(&breaker).await);
    assert!(is_shut(&breaker).await.is_some());
    until_open(&breaker).await.worked().await.unwrap();
    assert!(is_shut(&breaker).await.is_none());
}

#[tokio::test]
async fn whoever_waits_for_a_probe_waits_no_longer_than_needed() {
    let stage = Stage::start().await;
    let hour = Duration::from_secs(3600);
    let config = BreakerConfig { failures: 1, patience: hour, ..quick() };
    let breaker = stage.broker.breaker("smtp", config);
    pass(&breaker).await.failed().await.unwrap();
    let probe = until_open(&breaker).await;
    // The probe may take an hour, and may be over the next moment.
    let wait = is_shut(&breaker).await.unwrap();
    assert!(wait <= Duration::from_secs(1), "{wait:?}");
    // One that was not made, because its job has to wait for something else, lets the next one find out.
    drop(probe);
    let probe = until_open(&breaker).await;
    probe.failed().await.unwrap();

    // The clock is set back by an hour, as it looks from then.
    let until: u64 = stage.ask("HGET stampede:breaker:{smtp} until").await;
    let later = until + hour.as_millis() as u64;
    stage.ask::<()>(&format!("HSET stampede:breaker:{{smtp}} until {later}")).await;
    let wait = is_shut(&breaker).await.unwrap();
    assert!(wait <= config.pause, "{wait:?}");
    until_open(&breaker).await.worked().await.unwrap();
}

#[tokio::test]
async fn an_operator_sees_what_is_shut_and_can_open_it() {
    let stage = Stage::start().await;
    let breaker = stage.broker.breaker("smtp:eu", BreakerConfig { failures: 1, ..quick() });
    assert_eq!(stage.broker.open_breakers().await.unwrap(), []);
    let shut = async || {
        let shut = stage.broker.open_breakers().await.unwrap();
        shut.into_iter().map(|shut| (shut.name, shut.state)).collect::<Vec<_>>()
    };
    pass(&breaker).await.failed().await.unwrap();
    assert_eq!(shut().await, [("smtp:eu".into(), "open".into())]);
    let probe = until_open(&breaker).await;
    assert_eq!(shut().await, [("smtp:eu".into(), "half-open".into())]);
    probe.failed().await.unwrap();
    assert!(stage.broker.close_breaker("smtp:eu").await.unwrap());
    assert!(!stage.broker.close_breaker("smtp:eu").await.unwrap());
    pass(&breaker).await.worked().await.unwrap();
    assert_eq!(shut().await, []);
    pass(&breaker).await.failed().await.unwrap();
    assert_eq!(shut().await.len(), 1, "it is known again");
    assert!(stage.broker.breaker("{", quick()).ask().await.is_err());
}

/// Calls a service that can be down.
#[derive(Clone, Default)]
struct Caller {
    is_up: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Handler for Caller {
    async fn run(&self, job: &Job, context: &JobContext) -> Outcome {
        assert_eq!(job.attempts_made, 0, "not its fault");
        let passage = match context.breaker("smtp", quick()).ask().await {
            Ok(BreakerDecision::Allowed(passage)) => passage,
            Ok(BreakerDecision::Refused(wait)) => return Outcome::Snooze(wait),
            Err(error) => return Outcome::Retry(error.to_string()),
        };
        self.calls.fetch_add(1, Ordering::SeqCst);
        if self.is_up.load(Ordering::SeqCst) {
            passage.worked().await.unwrap();
            Outcome::Done(json!(null))
        } else {
            passage.failed().await.unwrap();
            Outcome::Snooze(Duration::from_millis(50))
        }
    }
}

#[tokio::test]
async fn jobs_snooze_while_it_is_shut_and_none_fails_or_uses_up_an_attempt() {
    const JOBS: usize = 20;
    let stage = Stage::start().await;
    let caller = Caller::default();
    let running = Running::start(&stage.queue, config("w"), caller.clone());
    let mut events = running.handle.events();
    let once = |n| JobSpec { attempts: Some(1), ..job(&format!("mail-{n}")) };
    stage.enqueue(&(0..JOBS).map(once).collect::<Vec<_>>()).await;
    // Every job has come back several times, and only few have called.
    let mut snoozed = 0;
    while snoozed < 4 * JOBS {
        let event = tokio::time::timeout(SOON, events.recv()).await.unwrap().unwrap();
        assert!(matches!(event.kind, EventKind::Started | EventKind::Snoozed), "{event:?}");
        snoozed += usize::from(event.kind == EventKind::Snoozed);
    }
    let calls = caller.calls.load(Ordering::SeqCst);
    assert!((3..JOBS).contains(&calls), "{calls} calls of a service that is down");
    let counts = stage.queue.counts().await.unwrap();
    assert_eq!((counts.completed, counts.failed), (0, 0));

    caller.is_up.store(true, Ordering::SeqCst);
    stage.until_completed(JOBS as u64).await;
    for n in 0..JOBS {
        assert_eq!(stage.field(&format!("mail-{n}"), "atm").await.as_deref(), Some("1"));
        assert_eq!(stage.field(&format!("mail-{n}"), "failedReason").await, None);
    }
    running.stop().await;
}

/// Calls a service that never answers.
struct Hangs;

impl Handler for Hangs {
    async fn run(&self, _: &Job, context: &JobContext) -> Outcome {
        match context.breaker("smtp", quick()).ask().await {
            Ok(BreakerDecision::Allowed(_passage)) => std::future::pending().await,
            Ok(BreakerDecision::Refused(wait)) => Outcome::Snooze(wait),
            Err(error) => Outcome::Retry(error.to_string()),
        }
    }

    fn policy(&self, _: &str) -> JobPolicy {
        JobPolicy { timeout: Some(Duration::from_millis(100)), ..JobPolicy::default() }
    }
}

#[tokio::test]
async fn a_service_that_hangs_is_in_trouble_and_a_worker_that_stops_is_not_its_fault() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("a"), job("b"), job("c")]).await;
    let slow = BreakerConfig { pause: Duration::from_secs(60), ..quick() };
    let breaker = stage.broker.breaker("smtp", slow);
    let running = Running::start(&stage.queue, config("w"), Hangs);
    eventually(SOON, || async { is_shut(&breaker).await }).await;
    running.stop().await;
    assert!(stage.broker.close_breaker("smtp").await.unwrap());

    // Handlers that are dropped because their worker goes say nothing about it.
    let five = ConsumerConfig { slots: 5, drain: Duration::ZERO, ..config("w2") };
    let mut played = stage.play(five);
    stage.enqueue(&(0..5).map(|n| job(&format!("more-{n}"))).collect::<Vec<_>>()).await;
    let mut passages = Vec::new();
    for _ in 0..5 {
        let run = played.run().await;
        let context = run.context.as_ref().unwrap();
        let Ok(BreakerDecision::Allowed(passage)) = context.breaker("smtp", quick()).ask().await
        else {
            panic!("it is open")
        };
        passages.push((run, passage));
    }
    played.running.handle.kill();
    drop(passages);
    throughout(Duration::from_millis(300), async || {
        let failures: i64 = stage.ask("ZCARD stampede:breaker:{smtp}:failures").await;
        assert_eq!(failures, 0);
    })
    .await;
    assert!(is_shut(&breaker).await.is_none());
}
