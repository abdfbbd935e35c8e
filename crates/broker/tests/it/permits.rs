//! Holds of limits, pauses after grants, and permits of several limits at once.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;
use stampede_broker::{
    Ask, Broker, Handler, Job, JobContext, Limits, Outcome, Pause, Permit, Permits, Rate, Rest,
    Taking,
};
use stampede_testkit::{Proxy, eventually};

use crate::stage::{Running, SOON, Stage, config, connect, jobs};

const MINUTE: Duration = Duration::from_secs(60);

fn ms(length: u64) -> Duration {
    Duration::from_millis(length)
}

async fn takes(limits: &Limits, asks: &[Ask]) -> Permits {
    match limits.take_all("test", asks).await.unwrap() {
        Taking::Granted(permits) => permits,
        refused => panic!("{refused:?}"),
    }
}

/// The limit that refuses, and for how long.
async fn waits(limits: &Limits, asks: &[Ask]) -> (String, Duration) {
    match limits.take_all("test", asks).await.unwrap() {
        Taking::Wait { limit, wait } => (limit, wait),
        other => panic!("{other:?}"),
    }
}

/// Notes when each job begins; every job needs all permits.
#[derive(Clone)]
struct Begun {
    times: Arc<Mutex<Vec<Instant>>>,
    asks: Vec<Ask>,
}

impl Begun {
    fn new(asks: &[Ask]) -> Self {
        Self { times: Arc::default(), asks: asks.to_vec() }
    }

    fn sorted(&self) -> Vec<Instant> {
        let mut times = self.times.lock().unwrap().clone();
        times.sort();
        times
    }
}

impl Handler for Begun {
    async fn run(&self, _: &Job, context: &JobContext) -> Outcome {
        match context.permits(&self.asks).await {
            Ok(Taking::Granted(permits)) => assert!(permits.are_fresh(), "as told by Redis"),
            Ok(Taking::Wait { wait, .. }) => return Outcome::Snooze(wait),
            Ok(Taking::Forgotten { ask, .. }) => panic!("{ask:?}"),
            Err(error) => return Outcome::Retry(error.to_string()),
        }
        self.times.lock().unwrap().push(Instant::now());
        Outcome::Done(json!(null))
    }
}

/// Runs so many jobs in four consumers with connections of their own, as processes have.
async fn four_consumers(stage: &Stage, begun: &Begun, count: u64) -> Vec<Running> {
    stage.enqueue(&jobs(count as usize)).await;
    let mut running = Vec::new();
    for number in 0..4 {
        let (_, queue) = connect(&stage.redis.url()).await;
        let config = stampede_broker::ConsumerConfig { slots: 4, ..config(&format!("w{number}")) };
        running.push(Running::start(&queue, config, begun.clone()));
    }
    running
}

async fn all_run(stage: &Stage, begun: &Begun, count: u64) {
    let running = four_consumers(stage, begun, count).await;
    eventually(MINUTE, || async {
        let counts = stage.queue.counts().await.unwrap();
        if counts.completed == count { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    for consumer in running {
        consumer.stop().await;
    }
}

#[tokio::test]
async fn nobody_gets_a_permit_while_a_limit_is_held_whether_it_is_set_or_not() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    let (elsewhere, _) = connect(&stage.redis.url()).await;
    for (name, rate) in [("account:1", None), ("account:2", Some(Rate::new(100, ms(1_000))))] {
        let begun = Instant::now();
        assert_eq!(limits.hold(name, ms(600)).await.unwrap(), ms(600));
        let Permit::Wait(wait) = elsewhere.limits().take(name, rate).await.unwrap() else {
            panic!("it is held");
        };
        assert!(wait <= ms(610), "{wait:?}");
        eventually(SOON, || async {
            let permit = elsewhere.limits().take(name, rate).await.unwrap();
            matches!(permit, Permit::Granted(_)).then_some(())
        })
        .await;
        assert!(begun.elapsed() >= ms(600), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn the_longest_hold_wins() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    assert_eq!(limits.hold("sms", MINUTE).await.unwrap(), MINUTE);
    assert!(limits.hold("sms", ms(100)).await.unwrap() > MINUTE / 2, "the longer one stays");
    assert_eq!(limits.hold("sms", 2 * MINUTE).await.unwrap(), 2 * MINUTE);
    let Permit::Wait(wait) = limits.take("sms", None).await.unwrap() else { panic!("held") };
    assert_eq!(wait, Duration::from_secs(30), "nobody is told to come later");
}

#[tokio::test]
async fn jobs_that_wait_for_permits_are_held_up_too() {
    let stage = Stage::start().await;
    let rate = Rate::new(5, ms(200));
    let begun = Begun::new(&[Ask::at("account:1", rate)]);
    let running = four_consumers(&stage, &begun, 40).await;
    eventually(SOON, || async { (begun.sorted().len() >= 10).then_some(()) }).await;
    stage.broker.limits().hold("account:1", ms(1_500)).await.unwrap();
    let held = Instant::now();
    stage.until_completed(40).await;
    for consumer in running {
        consumer.stop().await;
    }
    // Permits of the moment before may be used for as long as they are fresh.
    let (from, to) = (held + ms(50), held + ms(1_490));
    let meanwhile = begun.sorted().into_iter().filter(|at| (from..to).contains(at)).count();
    assert_eq!(meanwhile, 0);
    assert_eq!(begun.sorted().len(), 40);
}

#[tokio::test]
async fn a_hold_from_before_the_clock_was_set_back_lasts_as_long_as_it_was_meant_to() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    limits.hold("sms", ms(700)).await.unwrap();
    let pause = Pause { length: ms(700), rest: None };
    takes(&limits, &[Ask { pause, ..Ask::new("mail") }]).await;
    // As they look when the clock has been set back by an hour.
    for (limit, fields) in [("sms", ["since", "till"]), ("mail", ["granted", "next"])] {
        for field in fields {
            let key = format!("stampede:limit:{{{limit}}}:held");
            let _: i64 = stage.ask(&format!("HINCRBY {key} {field} 3600000000")).await;
        }
    }
    for limit in ["sms", "mail"] {
        let (_, wait) = waits(&limits, &[Ask::new(limit)]).await;
        assert!(wait <= ms(760), "{limit} {wait:?}");
        eventually(SOON, || async {
            let permit = limits.take(limit, None).await.unwrap();
            matches!(permit, Permit::Granted(_)).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn no_two_begin_closer_together_than_the_pause_in_four_processes() {
    let stage = Stage::start().await;
    let length = ms(60);
    let pause = Pause { length, rest: None };
    let begun = Begun::new(&[Ask { pause, ..Ask::new("spacing:1") }]);
    all_run(&stage, &begun, 40).await;
    let times = begun.sorted();
    let shortest = times.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
    assert!(shortest >= length, "{shortest:?}");
    assert_eq!(times.len(), 40);
}

#[tokio::test]
async fn a_limit_rests_after_so_many_grants() {
    let stage = Stage::start().await;
    let rest = Rest { every: 5, length: ms(400) };
    let pause = Pause { length: ms(10), rest: Some(rest) };
    let begun = Begun::new(&[Ask { pause, ..Ask::at("spacing:1", Rate::new(3, ms(100))) }]);
    all_run(&stage, &begun, 23).await;
    let times = begun.sorted();
    for (number, pair) in times.windows(2).enumerate() {
        let least = if (number + 1) % 5 == 0 { ms(400) } else { ms(10) };
        assert!(pair[1] - pair[0] >= least, "after {}: {:?}", number + 1, pair[1] - pair[0]);
    }
    assert_eq!(times.len(), 23);
}

#[tokio::test]
async fn a_later_no_gives_back_everything_that_was_granted_before() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    let closed = Ask::at("closed", Rate::new(0, MINUTE));
    let pause = Pause { length: MINUTE, rest: None };
    let spacing = Ask { pause, ..Ask::new("spacing:1") };
    let rest = Pause { length: ms(0), rest: Some(Rest { every: 2, length: MINUTE }) };
    let resting = Ask { pause: rest, ..Ask::new("rest:1") };
    let once = Ask::at("account:1", Rate::new(1, MINUTE));
    let person = |key: &str| Ask {
        counts_as: Some(key.to_owned()),
        ..Ask::at("day:1", Rate::new(1, MINUTE))
    };
    takes(&limits, std::slice::from_ref(&resting)).await;
    for _ in 0..3 {
        let asks = [spacing.clone(), resting.clone(), once.clone(), person("ann"), closed.clone()];
        assert_eq!(waits(&limits, &asks).await.0, "closed");
    }
    // The pause is over, the rest has not begun, the only place is free, and nobody counts.
    let permits =
        takes(&limits, &[spacing.clone(), resting.clone(), once.clone(), person("ann")]).await;
    for ask in [&spacing, &resting, &once, &person("bob")] {
        assert_eq!(waits(&limits, std::slice::from_ref(ask)).await.0, ask.limit);
    }
    permits.give_back().await.unwrap();
    takes(&limits, &[spacing, resting, once, person("bob")]).await;
}

#[tokio::test]
async fn a_key_counts_once_however_often_it_is_taken() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    let person = |key: &str| {
        [Ask { counts_as: Some(key.to_owned()), ..Ask::at("day:1", Rate::new(2, MINUTE)) }]
    };
    takes(&limits, &person("ann")).await;
    let again = takes(&limits, &person("ann")).await;
    takes(&limits, &person("bob")).await;
    assert_eq!(waits(&limits, &person("cleo")).await.0, "day:1");
    takes(&limits, &person("bob")).await;
    // Given back, the earlier grant of the same key still counts.
    again.give_back().await.unwrap();
    assert_eq!(waits(&limits, &person("cleo")).await.0, "day:1");
    assert_eq!(stage.ask::<i64>("ZCARD stampede:limit:{day:1}:granted").await, 2);
}

#[tokio::test]
async fn permits_that_have_grown_stale_are_exchanged_and_the_place_is_kept() {
    let stage = Stage::start().await;
    let limits = stage.broker.limits();
    // Stale after 5 ms; nobody else gets the only place of a minute by the exchange.
    limits.set("short", Rate::new(1, ms(150))).await.unwrap();
    let pause = Pause { length: ms(10), rest: None };
    let asks = [Ask { pause, ..Ask::new("short") }, Ask::at("long", Rate::new(1, MINUTE))];
    let permits = takes(&limits, &asks).await;
    eventually(SOON, || async { (!permits.are_fresh()).then_some(()) }).await;
    let Taking::Granted(permits) = permits.refreshed().await.unwrap() else { panic!("kept") };
    assert!(permits.are_fresh());
    assert_eq!(waits(&limits, &asks[1..]).await.0, "long");
    assert_eq!(stage.ask::<i64>("ZCARD stampede:limit:{long}:granted").await, 1);
    assert_eq!(stage.ask::<i64>("ZCARD stampede:limit:{short}:granted").await, 1);
}

#[tokio::test]
async fn permits_that_are_always_stale_are_given_back_and_not_used() {
    let stage = Stage::start().await;
    let proxy = Proxy::start(stage.redis.port()).await;
    let (far, _) = connect(&proxy.url()).await;
    // Permits are fresh for 50 ms at most.
    let person = |key: &str| Ask {
        counts_as: Some(key.to_owned()),
        ..Ask::at("day:1", Rate::new(1, MINUTE))
    };
    let asks = [Ask::at("account:1", Rate::new(1, MINUTE)), person("ann")];
    proxy.delay(ms(70));
    let permits = takes(&far.limits(), &asks).await;
    assert!(!permits.are_fresh(), "Redis is too far away for that");
    match permits.refreshed().await.unwrap() {
        Taking::Wait { limit, wait } => {
            assert!(asks.iter().any(|ask| ask.limit == limit), "{limit}");
            assert!(wait > ms(0));
        }
        other => panic!("{other:?}"),
    }
    // Both places are free again.
    let near = stage.broker.limits();
    takes(&near, &[asks[0].clone(), person("bob")]).await;
    assert_eq!(waits(&near, &asks[..1]).await.0, "account:1");
    assert_eq!(waits(&near, &asks[1..]).await.0, "day:1");
}

#[tokio::test]
async fn a_limit_that_is_changed_counts_at_once_for_several_permits() {
    let stage = Stage::start().await;
    let broker: Broker = stage.broker.clone();
    let limits = broker.limits();
    let asks =
        [Ask::at("account:1", Rate::new(1, MINUTE)), Ask::at("campaign:1", Rate::new(9, MINUTE))];
    takes(&limits, &asks).await;
    assert_eq!(waits(&limits, &asks).await.0, "account:1");
    limits.set("account:1", Rate::new(2, MINUTE)).await.unwrap();
    takes(&limits, &asks).await;
    assert_eq!(waits(&limits, &asks).await.0, "account:1");
    // The rate that a caller brings may change from call to call, too: the grants are remembered.
    limits.unset("account:1").await.unwrap();
    let wider = [Ask::at("account:1", Rate::new(3, MINUTE)), asks[1].clone()];
    takes(&limits, &wider).await;
    assert_eq!(waits(&limits, &wider).await.0, "account:1");
}
