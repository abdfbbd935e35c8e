//! More than one plain server: TLS, Sentinel, Cluster; and servers that are not what was hoped for.

mod certificates;
mod nodes;
mod sentinels;

use std::path::Path;
use std::time::Duration;

use redis::{FromRedisValue, RedisResult, cmd};
use stampede_broker::{Broker, Config, ConnectionState, Error, TlsFiles};
use stampede_testkit::{Redis, eventually};

use self::certificates::Certificates;
use crate::stage::{SOON, config as consumer, connect, jobs, play};

/// Longer than a failover takes.
const FAILOVER: Duration = Duration::from_secs(30);

async fn ask<T: FromRedisValue>(redis: &Redis, command: &str) -> T {
    try_ask(redis, command).await.unwrap()
}

/// For a server that may end connections: a replica does when it is made the master.
async fn try_ask<T: FromRedisValue>(redis: &Redis, command: &str) -> RedisResult<T> {
    let client = redis::Client::open(redis.url())?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let mut words = command.split(' ');
    let mut command = cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query_async(&mut connection).await
}

async fn refusal(config: Config) -> Error {
    match Broker::connect(&config).await {
        Ok(_) => panic!("should be refused"),
        Err(error) => error,
    }
}

/// Runs three jobs from beginning to end.
async fn work(broker: &Broker, prefix: &str) {
    let queue = broker.queue("tickets").await.unwrap();
    queue.enqueue(&jobs(3)).await.unwrap();
    let mut played = play(&queue, consumer("a"));
    for _ in 0..3 {
        played.run().await.completes();
    }
    eventually(SOON, || async {
        let counts = queue.counts().await.unwrap();
        if counts.completed == 3 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    assert_eq!(broker.prefix(), prefix);
    assert_eq!(broker.queue_names().await.unwrap().into_iter().collect::<Vec<_>>(), ["tickets"]);
    played.running.stop().await;
}

/// Lets a user in who is not everybody, and everybody else out.
async fn lock(redis: &Redis) {
    ask::<()>(redis, "ACL SETUSER worker on >s3cr:t ~* &* +@all").await;
    ask::<()>(redis, "ACL SETUSER default on >other").await;
}

#[tokio::test]
async fn jobs_travel_over_tls_to_a_server_that_is_known() {
    let certificates = Certificates::make();
    let (_redis, port) = certificates.server(&[]).await;
    let url = format!("rediss://127.0.0.1:{port}");
    let stranger = refusal(Config::new(&url)).await.to_string();
    assert!(stranger.contains("certificate"), "{stranger}");
    let tls = certificates.files();
    let broker = Broker::connect(&Config { tls, ..Config::new(&url) }).await.unwrap();
    work(&broker, "bull").await;
    let tls = TlsFiles { authority: Some(Path::new("/no/such/file").into()), own: None };
    let error = refusal(Config { tls, ..Config::new(&url) }).await.to_string();
    assert!(error.contains("/no/such/file") && error.contains("REDIS_TLS_CA"), "{error}");
}

#[tokio::test]
async fn a_prefix_of_ones_own_is_used_throughout() {
    let redis = Redis::start().await;
    let config = Config { prefix: Some("shop".into()), ..Config::new(redis.url()) };
    work(&Broker::connect(&config).await.unwrap(), "shop").await;
    let strangers: Vec<String> = ask(&redis, "KEYS bull:*").await;
    assert_eq!(strangers, [""; 0]);
    for prefix in ["", "a:b", "a*", "ä", &"x".repeat(300)] {
        let config = Config { prefix: Some(prefix.into()), ..Config::new(redis.url()) };
        let error = refusal(config).await.to_string();
        assert!(error.contains("queue prefix"), "{error}");
    }
}

#[tokio::test]
async fn the_state_of_the_connection_is_known() {
    let mut redis = Redis::start().await;
    let (broker, _queue) = connect(&redis.url()).await;
    assert_eq!(broker.connection_state(), ConnectionState::Connected);
    redis.kill();
    let away = |state: &ConnectionState| matches!(state, ConnectionState::Away { .. });
    eventually(SOON, || async {
        Some(broker.connection_state()).filter(away).ok_or("it seems to be there")
    })
    .await;
    redis.start_again().await;
    eventually(FAILOVER, || async {
        let state = broker.connection_state();
        if state == ConnectionState::Connected { Ok(()) } else { Err(format!("{state:?}")) }
    })
    .await;
}
