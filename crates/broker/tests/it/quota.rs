//! Quotas over several nodes, on a real server, and without one.

use std::time::Duration;

use stampede_broker::{Broker, Config, Quota};
use stampede_testkit::{Proxy, Redis, eventually};
use tokio::task::JoinSet;

use crate::stage::{SOON, Stage};

const HOUR: Duration = Duration::from_secs(3600);

/// Brokers with connections of their own, as nodes have.
async fn nodes(redis: &Redis, count: usize) -> Vec<Broker> {
    let mut brokers = Vec::new();
    for _ in 0..count {
        brokers.push(Broker::connect(&Config::new(redis.url())).await.unwrap());
    }
    brokers
}

/// Permits that are granted when `tasks` tasks on every node ask until they are refused.
async fn granted(quotas: &[Quota], subject: &'static str, tasks: usize) -> Vec<u64> {
    let mut asking = JoinSet::new();
    for (node, quota) in quotas.iter().enumerate() {
        for _ in 0..tasks {
            let quota = quota.clone();
            asking.spawn(async move {
                let mut count = 0;
                while quota.take(subject).await.granted {
                    count += 1;
                }
                (node, count)
            });
        }
    }
    let mut sums = vec![0; quotas.len()];
    for (node, count) in asking.join_all().await {
        sums[node] += count;
    }
    sums
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_nodes_together_grant_exactly_a_small_quota() {
    let stage = Stage::start().await;
    let brokers = nodes(&stage.redis, 3).await;
    for most in [1, 7, 300] {
        let name = format!("small-{most}");
        let quotas: Vec<Quota> =
            brokers.iter().map(|broker| Quota::new(broker.clone(), &name, most, HOUR)).collect();
        let sums = granted(&quotas, "ann", 8).await;
        assert_eq!(sums.iter().sum::<u64>(), most, "{sums:?}");
        assert!(quotas[0].take("bob").await.granted, "others have their own");
        assert!(quotas[0].exhausted("ann").is_some() && quotas[0].exhausted("carl").is_none());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_large_quota_no_more_is_granted_and_few_permits_stay_unused() {
    let stage = Stage::start().await;
    let most = 50_000;
    let quotas: Vec<Quota> = nodes(&stage.redis, 2)
        .await
        .into_iter()
        .map(|broker| Quota::new(broker, "large", most, HOUR))
        .collect();
    let calls = || async {
        let stats: String = stage.ask("INFO commandstats").await;
        let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap_or("");
        let calls = line.split(['=', ',']).nth(1).unwrap_or("0");
        calls.parse::<u64>().unwrap()
    };
    let before = calls().await;
    let sums = granted(&quotas, "ann", 4).await;
    let sum = sums.iter().sum::<u64>();
    assert!(sum <= most && sum >= most - 2 * 50, "{sums:?}");
    let trips = calls().await - before;
    assert!(trips < most / 20, "{trips} round trips for {sum} permits");
}

#[tokio::test]
async fn a_new_window_begins_with_everything_and_the_counts_do_not_pile_up() {
    let stage = Stage::start().await;
    let quota = Quota::new(stage.broker.clone(), "short", 3, Duration::from_millis(500));
    eventually(SOON, || async {
        let refused = loop {
            let standing = quota.take("ann").await;
            if !standing.granted {
                break standing;
            }
        };
        assert!(refused.resets_in <= Duration::from_millis(500) && refused.left == 0);
        // Only the moment of the window's end lets the next one begin.
        tokio::time::sleep(refused.resets_in + Duration::from_millis(2)).await;
        let left = quota.take("ann").await.left;
        if left == 2 { Ok(()) } else { Err(left) }
    })
    .await;
    quota.take("bob").await;
    let fields: u64 = stage.ask("HLEN stampede:quota:short").await;
    assert!(fields <= 3, "the window, ann, bob: {fields}");
    let lives_ms: i64 = stage.ask("PTTL stampede:quota:short").await;
    assert!((1..=1_000).contains(&lives_ms), "{lives_ms}");
}

#[tokio::test]
async fn too_many_subjects_are_counted_by_each_node_alone() {
    let stage = Stage::start().await;
    let mut raw = stage.raw().await;
    let quota = Quota::new(stage.broker.clone(), "crowd", 5, HOUR);
    quota.take("first").await;
    let mut fill = redis::pipe();
    for number in 0..50_000 {
        fill.hset("stampede:quota:crowd", format!("s:{number}"), 1).ignore();
    }
    fill.query_async::<()>(&mut raw).await.unwrap();
    let sums = granted(std::slice::from_ref(&quota), "late", 4).await;
    assert_eq!(sums, [5], "limited all the same");
    let known: bool = stage.ask("HEXISTS stampede:quota:crowd s:late").await;
    assert!(!known, "Redis does not grow");
    assert_eq!(granted(std::slice::from_ref(&quota), "first", 1).await, [4], "known ones go on");
}

#[tokio::test]
async fn without_redis_every_node_counts_alone_and_nobody_waits() {
    let redis = Redis::start().await;
    let proxy = Proxy::start(redis.port()).await;
    let broker = Broker::connect(&Config::new(proxy.url())).await.unwrap();
    let quota = Quota::new(broker, "outage", 40, HOUR);
    for _ in 0..10 {
        assert!(quota.take("ann").await.granted);
    }
    proxy.silence();
    let started = std::time::Instant::now();
    assert_eq!(
        granted(std::slice::from_ref(&quota), "ann", 4).await,
        [30],
        "neither open nor closed"
    );
    assert_eq!(granted(std::slice::from_ref(&quota), "bob", 4).await, [40]);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    proxy.mend();
}
