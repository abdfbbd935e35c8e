//! Masters that Sentinels know.

use std::time::Duration;

use redis::{RedisResult, cmd};
use stampede_broker::{Broker, Config};
use stampede_testkit::{Redis, Sentinel, eventually, free_port};

use super::certificates::Certificates;
use super::{FAILOVER, ask, lock, refusal, try_ask, work};
use crate::stage::{SOON, config as consumer, connect, job, play, throughout};

/// The first server dies in the middle of jobs, and the second goes on with them.
async fn fail_over(mut first: Redis, second: Redis, sentinel: &Sentinel, config: &Config) {
    eventually(SOON, || async {
        let info: String = ask(&second, "INFO replication").await;
        let known: Vec<redis::Value> = {
            let client = redis::Client::open(format!("redis://127.0.0.1:{}", sentinel.port()));
            let mut link = client.unwrap().get_multiplexed_async_connection().await.unwrap();
            cmd("SENTINEL").arg("replicas").arg("main").query_async(&mut link).await.unwrap()
        };
        let ready = info.contains("master_link_status:up") && known.len() == 1;
        if ready { Ok(()) } else { Err(info) }
    })
    .await;
    let broker = Broker::connect(config).await.unwrap();
    assert_eq!(broker.shown_url(), config.url);
    let queue = broker.queue("tickets").await.unwrap();
    let mut played = play(&queue, consumer("a"));
    queue.enqueue(&[job("before"), job("during")]).await.unwrap();
    let before = played.run().await;
    assert_eq!(before.job.id, "before");
    // What is acknowledged but not yet with the replica is lost in a failover, with any client.
    let copied: u64 = ask(&first, "WAIT 1 5000").await;
    assert_eq!(copied, 1);
    first.kill();
    before.completes();
    eventually(FAILOVER, || async {
        let role: RedisResult<String> = try_ask(&second, "INFO replication").await;
        let role = role.map_err(|error| error.to_string())?;
        if role.contains("role:master") { Ok(()) } else { Err(role) }
    })
    .await;
    let during = played.run().await;
    assert_eq!(during.job.id, "during");
    during.completes();
    eventually(FAILOVER, || async {
        let counts = queue.counts().await.map_err(|error| error.to_string())?;
        if counts.completed == 2 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    played.running.stop().await;
}

#[tokio::test]
async fn the_sentinels_new_master_goes_on_with_the_jobs() {
    let first = Redis::start().await;
    let second = Redis::with_config(&[("replicaof", &format!("127.0.0.1 {}", first.port()))]).await;
    let sentinel = Sentinel::watching("main", first.port()).await;
    let url = format!("redis-sentinel://127.0.0.1:1,127.0.0.1:{}/main", sentinel.port());
    fail_over(first, second, &sentinel, &Config::new(url)).await;
}

#[tokio::test]
async fn masters_and_sentinels_are_reached_over_tls() {
    let certificates = Certificates::make();
    let replicate = ("tls-replication", "yes");
    let (first, port) = certificates.server(&[replicate]).await;
    let master = format!("127.0.0.1 {port}");
    let (second, _) = certificates.server(&[replicate, ("replicaof", &master)]).await;
    let tls_port = free_port();
    let mut lines: Vec<String> = certificates
        .settings(tls_port)
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    lines.push("tls-replication yes".to_owned());
    let sentinel = Sentinel::with_config("main", port, &lines).await;
    let over_tls = format!("rediss-sentinel://127.0.0.1:{tls_port}/main");
    let stranger = refusal(Config::new(&over_tls)).await.to_string();
    assert!(stranger.contains("certificate"), "{stranger}");
    // Sentinels in the clear, and a master that is not who it should be.
    let plain = format!("rediss-sentinel://127.0.0.1:{}/main?sentinel_tls=no", sentinel.port());
    let stranger = refusal(Config::new(&plain)).await.to_string();
    assert!(
        stranger.contains("the master at 127.0.0.1") && stranger.contains("certificate"),
        "{stranger}"
    );
    let known = |url: &str| Config { tls: certificates.files(), ..Config::new(url) };
    Broker::connect(&known(&plain)).await.unwrap();
    fail_over(first, second, &sentinel, &known(&over_tls)).await;
}

#[tokio::test]
async fn a_name_and_passwords_open_a_server_and_its_sentinels() {
    let redis = Redis::start().await;
    let lines =
        ["requirepass sesame", "sentinel auth-user main worker", "sentinel auth-pass main s3cr:t"];
    let sentinel = Sentinel::with_config("main", redis.port(), &lines.map(str::to_owned)).await;
    lock(&redis).await;
    let (port, sentinels) = (redis.port(), format!("127.0.0.1:{}", sentinel.port()));
    let alone = Config::new(format!("redis://worker:s3cr%3At@127.0.0.1:{port}/1"));
    work(&Broker::connect(&alone).await.unwrap(), "bull").await;
    let error = refusal(Config::new(format!("redis://:s3cr%3At@127.0.0.1:{port}"))).await;
    assert!(error.to_string().contains("password"), "{error}");
    let through = |login: &str, query: &str| {
        Config::new(format!("redis-sentinel://{login}{sentinels}/main{query}"))
    };
    for (login, query, complaint) in [
        ("worker:s3cr%3At@", "", "the Sentinel at"),
        ("worker:s3cr%3At@", "?sentinel_password=wrong", "the Sentinel at"),
        ("", "?sentinel_password=sesame", "password"),
        ("worker:wrong@", "?sentinel_password=sesame", "password"),
        (":s3cr%3At@", "?sentinel_password=sesame", "password"),
    ] {
        let error = refusal(through(login, query)).await.to_string();
        assert!(error.contains(complaint), "{login} {query}: {error}");
    }
    let config = through("worker:s3cr%3At@", "?sentinel_password=sesame");
    work(&Broker::connect(&config).await.unwrap(), "bull").await;
}

#[tokio::test]
async fn a_replica_that_sentinels_take_for_the_master_is_sent_nothing() {
    let other = Redis::start().await;
    let redis = Redis::start().await;
    let sentinel = Sentinel::watching("main", redis.port()).await;
    let demote = format!("REPLICAOF 127.0.0.1 {}", other.port());
    ask::<()>(&redis, &demote).await;
    let url = format!("redis-sentinel://127.0.0.1:{}/main", sentinel.port());
    let error = refusal(Config::new(&url)).await;
    assert!(
        error.is_outage() && error.to_string().contains("says that it is a replica"),
        "{error}"
    );

    ask::<()>(&redis, "REPLICAOF NO ONE").await;
    let (_broker, queue) = connect(&url).await;
    ask::<()>(&redis, &demote).await;
    ask::<u64>(&redis, "CLIENT KILL TYPE normal").await;
    let asked = tokio::spawn(async move { queue.enqueue(&[job("a")]).await });
    // It would be told "READONLY" at once.
    throughout(Duration::from_millis(500), async || assert!(!asked.is_finished())).await;
    ask::<()>(&redis, "REPLICAOF NO ONE").await;
    asked.await.unwrap().unwrap();
}

#[tokio::test]
async fn sentinels_that_know_nothing_are_quoted() {
    let redis = Redis::start().await;
    let sentinel = Sentinel::watching("main", redis.port()).await;
    let url = format!("redis-sentinel://127.0.0.1:1,127.0.0.1:{}/other", sentinel.port());
    let error = refusal(Config::new(&url)).await.to_string();
    assert!(error.contains("knows no \"other\"") && error.contains("127.0.0.1:1"), "{error}");
    let url = format!("redis://127.0.0.1:{}", sentinel.port());
    let error = refusal(Config::new(&url)).await.to_string();
    assert!(error.contains("is a Sentinel") && error.contains("redis-sentinel://"), "{error}");
}
