//! Circuit breakers shared over Redis.

use std::time::Duration;

use stampede_broker::{Breaker, BreakerConfig, Gate, Passage};
use stampede_testkit::eventually;

use crate::stage::{SOON, Stage, connect};

fn quick() -> BreakerConfig {
    BreakerConfig {
        failures: 3,
        within: Duration::from_secs(60),
        pause: Duration::from_millis(300),
        patience: Duration::from_millis(500),
    }
}

async fn pass(breaker: &Breaker) -> Box<Passage> {
    match breaker.ask().await.unwrap() {
        Gate::Open(passage) => passage,
        Gate::Shut(wait) => panic!("shut for {wait:?}"),
    }
}

async fn is_shut(breaker: &Breaker) -> Option<Duration> {
    match breaker.ask().await.unwrap() {
        Gate::Open(_) => None,
        Gate::Shut(wait) => Some(wait),
    }
}

async fn until_open(breaker: &Breaker) -> Box<Passage> {
    eventually(SOON, || async {
        match breaker.ask().await.unwrap() {
            Gate::Open(passage) => Ok(passage),
            Gate::Shut(wait) => Err(format!("shut for {wait:?}")),
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
    drop(until_open(&breaker).await);
    assert!(is_shut(&breaker).await.is_some());
    until_open(&breaker).await.worked().await.unwrap();
    assert!(is_shut(&breaker).await.is_none());
}
