//! More than one plain server: TLS, Sentinel, Cluster; and servers that are not what was hoped for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use redis::{FromRedisValue, cmd};
use serde_json::json;
use stampede_broker::{
    Alert, Broker, ClaimNode, Config, ConnectionState, Decided, Decisions, Error, Holder, Tallies,
    TlsFiles, WorkerPresence,
};
use stampede_testkit::{Redis, Sentinel, eventually, free_port, temp_dir};

use crate::stage::{SOON, config, connect, job, jobs, play, throughout};

/// Longer than a failover takes.
const FAILOVER: Duration = Duration::from_secs(30);

async fn ask<T: FromRedisValue>(redis: &Redis, command: &str) -> T {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut words = command.split(' ');
    let mut command = cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query_async(&mut connection).await.unwrap()
}

async fn refusal(config: Config) -> Error {
    match Broker::connect(&config).await {
        Ok(_) => panic!("should be refused"),
        Err(error) => error,
    }
}

/// Runs `count` jobs from beginning to end.
async fn work(broker: &Broker, prefix: &str) {
    let queue = broker.queue("tickets").await.unwrap();
    queue.enqueue(&jobs(3)).await.unwrap();
    let mut played = play(&queue, config("a"));
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

/// A key and certificates signed by an authority of our own, made with openssl.
struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    fn make() -> Self {
        let folder = temp_dir();
        let run = |arguments: &[&str]| {
            let made = Command::new("openssl").args(arguments).current_dir(&folder).output();
            let made = made.expect("openssl: apt-get install openssl");
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        };
        let new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let authority = ["-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key"];
        run(&[&new[..], &authority, &["-out", "ca.pem"]].concat());
        let server = ["-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr"];
        run(&[&new[..], &server].concat());
        std::fs::write(folder.path().join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
        let sign = "x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial \
                    -extfile names -out server.pem";
        run(&sign.split_whitespace().collect::<Vec<_>>());
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn server(&self, clients: &str) -> (Redis, String) {
        let port = free_port().to_string();
        let file = |name| self.path(name).display().to_string();
        let redis = Redis::with_config(&[
            ("tls-port", &port),
            ("tls-cert-file", &file("server.pem")),
            ("tls-key-file", &file("server.key")),
            ("tls-ca-cert-file", &file("ca.pem")),
            ("tls-auth-clients", clients),
        ])
        .await;
        (redis, format!("rediss://127.0.0.1:{port}"))
    }
}

#[tokio::test]
async fn jobs_travel_over_tls_to_a_server_that_is_known() {
    let certificates = Certificates::make();
    let (_redis, url) = certificates.server("yes").await;
    let stranger = refusal(Config::new(&url)).await.to_string();
    assert!(stranger.contains("certificate"), "{stranger}");
    let authority = Some(certificates.path("ca.pem"));
    let own = Some((certificates.path("server.pem"), certificates.path("server.key")));
    let tls = TlsFiles { authority, own };
    let broker = Broker::connect(&Config { tls, ..Config::new(&url) }).await.unwrap();
    work(&broker, "bull").await;
    let tls = TlsFiles { authority: Some(Path::new("/no/such/file").into()), own: None };
    let error = refusal(Config { tls, ..Config::new(&url) }).await.to_string();
    assert!(error.contains("/no/such/file") && error.contains("REDIS_TLS_CA"), "{error}");
}

#[tokio::test]
async fn the_sentinels_new_master_goes_on_with_the_jobs() {
    let mut first = Redis::start().await;
    let port = first.port().to_string();
    let second = Redis::with_config(&[("replicaof", &format!("127.0.0.1 {port}"))]).await;
    let sentinel = Sentinel::watching("main", first.port()).await;
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
    let url = format!("redis-sentinel://127.0.0.1:1,127.0.0.1:{}/main", sentinel.port());
    let (broker, queue) = connect(&url).await;
    assert_eq!(broker.shown_url(), url);
    let mut played = play(&queue, config("a"));
    queue.enqueue(&[job("before"), job("during")]).await.unwrap();
    let before = played.run().await;
    assert_eq!(before.job.id, "before");
    // What is acknowledged but not yet with the replica is lost in a failover, with any client.
    let copied: u64 = ask(&first, "WAIT 1 5000").await;
    assert_eq!(copied, 1);
    first.kill();
    before.completes();
    eventually(FAILOVER, || async {
        let role: String = ask(&second, "INFO replication").await;
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

/// Three nodes that share all slots.
async fn cluster() -> Vec<Redis> {
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let bus = free_port().to_string();
        let settings = [("cluster-enabled", "yes"), ("cluster-port", bus.as_str())];
        nodes.push((Redis::with_config(&settings).await, bus));
    }
    for ((node, _), slots) in nodes.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
        let _: () = ask(node, &format!("CLUSTER ADDSLOTSRANGE {slots}")).await;
    }
    for (number, (node, bus)) in nodes.iter().enumerate() {
        let _: () = ask(node, &format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1)).await;
        let _: () =
            ask(&nodes[0].0, &format!("CLUSTER MEET 127.0.0.1 {} {bus}", node.port())).await;
    }
    for (node, _) in &nodes {
        eventually(FAILOVER, || async {
            let info: String = ask(node, "CLUSTER INFO").await;
            let ready = info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
            if ready { Ok(()) } else { Err(info) }
        })
        .await;
    }
    nodes.into_iter().map(|(node, _)| node).collect()
}

/// Everything that nodes and their coordinator say, whatever slots it is in.
async fn coordinates(broker: &Broker) {
    let registry = broker.registry(FAILOVER);
    let me = Holder {
        incarnation: "1".to_owned(),
        host: "here".to_owned(),
        pid: 1,
        boot: "once".to_owned(),
    };
    let (stats, queue) = (json!({ "workers": 2 }), json!({ "waiting": 1 }));
    let claim = registry.announce_node("n", &me, &stats, Some(&queue), None).await.unwrap();
    assert!(matches!(claim, ClaimNode::Ours(_)));
    let worker = WorkerPresence {
        id: "n-worker-0".to_owned(),
        node: "n".to_owned(),
        incarnation: "1".to_owned(),
        start_time: 1,
        pid: 2,
    };
    registry.announce_worker(&worker, "running", &json!({})).await.unwrap();
    let done = Tallies { completed: 3, failed: 2, stalled: 1 };
    registry.count("n", done, &mut Tallies::default()).await.unwrap();
    registry.sweep_workers().await.unwrap();
    assert_eq!(registry.nodes().await.unwrap()[0].queue["waiting"], 1);
    assert_eq!(registry.workers().await.unwrap().len(), 1);
    let lease = broker.coordinator_lease("n", "1", FAILOVER);
    let (leader, _) = lease.hold().await.unwrap().unwrap();
    let decisions = broker.decisions();
    assert!(decisions.begin(&leader).await.unwrap());
    assert!(registry.settle_counters(&leader, &[]).await.unwrap());
    assert_eq!(registry.counters().await.unwrap()["(departed)"], done);
    let mut node = broker.subscribe(&Decisions::command_channels("n")).await.unwrap();
    let decision = json!({ "action": "scale_up" });
    assert_eq!(decisions.decide(&leader, "n", &decision).await.unwrap(), Decided::Told);
    assert!(node.next().await.unwrap().contains("scale_up"));
    decisions.command("all", &json!({ "action": "restart" })).await.unwrap();
    assert!(node.next().await.unwrap().contains("restart"));
    assert!(decisions.survey(&leader, &json!({ "nodeCount": 1 })).await.unwrap());
    let alert = Alert { kind: "node-dead", subject: "x".to_owned(), message: "x".to_owned() };
    assert!(decisions.alert(&leader, &[alert]).await.unwrap());
    decisions.step(&json!({ "workers": 2 }), Some(&json!({ "workers": 2 }))).await.unwrap();
    assert_eq!(decisions.history().await.unwrap().0.len(), 2);
    assert_eq!(decisions.alerts().await.unwrap().len(), 1);
    let level = broker.levels(&["tickets".to_owned()]).await.unwrap().remove(0);
    assert!(level.completed == 3 && level.last_ended.is_some(), "{level:?}");
    lease.release(&leader).await.unwrap();
    registry.forget_worker("n-worker-0", "1").await.unwrap();
    registry.forget_node("n", &me).await.unwrap();
    assert!(registry.nodes().await.unwrap().is_empty() && registry.has_left("n").await.unwrap());
}

#[tokio::test]
async fn a_cluster_keeps_all_queues_in_one_slot() {
    let nodes = cluster().await;
    let url = format!("redis-cluster://127.0.0.1:{},127.0.0.1:1", nodes[2].port());
    let broker = Broker::connect(&Config::new(&url)).await.unwrap();
    work(&broker, "{bull}").await;
    // Limits, breakers and channels have keys of their own, on whatever node.
    let rate = stampede_broker::Rate::new(1, Duration::from_secs(60));
    for name in ["a", "b", "c", "d"] {
        let limits = broker.limits();
        limits.set(name, rate).await.unwrap();
        let first = limits.take(name, None).await.unwrap();
        assert!(matches!(first, stampede_broker::Permit::Granted(_)));
        let second = limits.take(name, None).await.unwrap();
        assert!(matches!(second, stampede_broker::Permit::Wait(_)));
    }
    assert_eq!(broker.limits().all().await.unwrap().len(), 4);
    let queue = broker.queue("tickets").await.unwrap();
    queue.enqueue(&[job("cancelled")]).await.unwrap();
    let mut played = play(&queue, config("b"));
    let run = played.run().await;
    queue.cancel("cancelled", "not wanted").await.unwrap();
    run.dropped().await;
    played.failure().await.settles(Ok(()));
    eventually(SOON, || async {
        let counts = queue.counts().await.unwrap();
        if counts.failed == 1 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    played.running.stop().await;

    coordinates(&broker).await;

    let config = Config { prefix: Some("mine".into()), ..Config::new(&url) };
    let error = refusal(config).await.to_string();
    assert!(error.contains("hash tag, such as {mine}"), "{error}");
    let error = refusal(Config::new(nodes[0].url())).await.to_string();
    assert!(error.contains("redis-cluster://"), "{error}");
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
