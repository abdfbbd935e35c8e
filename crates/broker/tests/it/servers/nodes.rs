//! Clusters.

use std::time::Duration;

use serde_json::{Value, json};
use stampede_broker::{
    Broker, ClaimNode, Config, ConnectionState, ConsumerConfig, Decided, Decisions, NodeIdentity,
    Tallies, TlsFiles, WorkerPresence,
};
use stampede_testkit::{Redis, eventually, free_port};

use super::certificates::Certificates;
use super::{FAILOVER, ask, lock, refusal, work};
use crate::stage::{SOON, config as consumer, job, jobs, play};

/// Three nodes that share all slots; if there are certificates, with TLS between them, too.
async fn cluster(certificates: Option<&Certificates>) -> Vec<(Redis, u16)> {
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let bus = free_port().to_string();
        let settings = node_settings(&bus);
        let (node, port) = match certificates {
            None => {
                let node = Redis::with_config(&settings).await;
                let port = node.port();
                (node, port)
            }
            Some(certificates) => {
                certificates.server(&[&settings[..], &[("tls-cluster", "yes")]].concat()).await
            }
        };
        nodes.push((node, port, bus));
    }
    for ((node, ..), slots) in nodes.iter().zip(["0 5460", "5461 10922", "10923 16383"]) {
        let _: () = ask(node, &format!("CLUSTER ADDSLOTSRANGE {slots}")).await;
    }
    for (number, (node, port, bus)) in nodes.iter().enumerate() {
        let _: () = ask(node, &format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1)).await;
        let _: () = ask(&nodes[0].0, &format!("CLUSTER MEET 127.0.0.1 {port} {bus}")).await;
    }
    for (node, ..) in &nodes {
        eventually(FAILOVER, || async {
            let info: String = ask(node, "CLUSTER INFO").await;
            let ready = info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3");
            if ready { Ok(()) } else { Err(info) }
        })
        .await;
    }
    nodes.into_iter().map(|(node, port, _)| (node, port)).collect()
}

/// Nodes that miss another one soon.
fn node_settings(bus: &str) -> [(&'static str, &str); 3] {
    [("cluster-enabled", "yes"), ("cluster-node-timeout", "2000"), ("cluster-port", bus)]
}

/// Which node has the queues.
async fn home(nodes: &[(Redis, u16)]) -> usize {
    let slot: usize = ask(&nodes[0].0, "CLUSTER KEYSLOT {bull}").await;
    [5460, 10922, 16383].iter().position(|last| slot <= *last).unwrap()
}

/// A node that has everything that another one has.
async fn replica_of(master: &Redis, nodes: &[(Redis, u16)]) -> Redis {
    let bus = free_port().to_string();
    let replica = Redis::with_config(&node_settings(&bus)).await;
    let (port, first) = (replica.port(), &nodes[0].0);
    let _: () = ask(first, &format!("CLUSTER MEET 127.0.0.1 {port} {bus}")).await;
    let id: String = ask(master, "CLUSTER MYID").await;
    eventually(FAILOVER, || async {
        let known: String = ask(&replica, "CLUSTER NODES").await;
        if known.contains(&id) { Ok(()) } else { Err(known) }
    })
    .await;
    let _: () = ask(&replica, &format!("CLUSTER REPLICATE {id}")).await;
    // All have to know of it, or nobody makes it the master.
    for node in nodes.iter().map(|(node, _)| node).chain([&replica]) {
        eventually(FAILOVER, || async {
            let known: String = ask(node, "CLUSTER NODES").await;
            if known.contains(&format!("slave {id}")) { Ok(()) } else { Err(known) }
        })
        .await;
    }
    replica
}

#[tokio::test]
async fn a_cluster_that_loses_the_master_of_the_queues_goes_on_with_its_replica() {
    const JOBS: usize = 20;
    let mut nodes = cluster(None).await;
    let home = home(&nodes).await;
    let _replica = replica_of(&nodes[home].0, &nodes).await;
    let other = nodes[(home + 1) % 3].1;
    let config = Config::new(format!("redis-cluster://127.0.0.1:{other}"));
    let broker = Broker::connect(&config).await.unwrap();
    let queue = broker.queue("tickets").await.unwrap();
    let mut played = play(&queue, ConsumerConfig { slots: 2, ..consumer("w") });
    queue.enqueue(&jobs(JOBS)).await.unwrap();
    let runs = [played.run().await, played.run().await];
    eventually(SOON, || async {
        let reached: i64 = ask(&nodes[home].0, "WAIT 1 100").await;
        (reached == 1).then_some(())
    })
    .await;
    nodes[home].0.kill();
    let mut seen: Vec<String> = runs.iter().map(|run| run.job.id.clone()).collect();
    runs.into_iter().for_each(|run| run.completes());
    // Other nodes answer meanwhile, but they have no queues.
    eventually(SOON, || async {
        let state = broker.connection_state();
        if state == ConnectionState::Connected { Err(format!("{state:?}")) } else { Ok(()) }
    })
    .await;
    eventually(FAILOVER, || async {
        let state = broker.connection_state();
        if state == ConnectionState::Connected { Ok(()) } else { Err(format!("{state:?}")) }
    })
    .await;
    for _ in 2..JOBS {
        let run = played.run().await;
        seen.push(run.job.id.clone());
        run.completes();
    }
    eventually(FAILOVER, || async {
        let counts = queue.counts().await.map_err(|error| error.to_string())?;
        if counts.completed == JOBS as u64 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), JOBS, "each of them once");
    played.runs_nothing_else();
}

/// Everything that nodes and their coordinator say, whatever slots it is in.
async fn coordinates(broker: &Broker) {
    let registry = broker.registry(FAILOVER);
    let me = NodeIdentity {
        incarnation: "1".to_owned(),
        host: "here".to_owned(),
        pid: 1,
        boot: "once".to_owned(),
    };
    let (stats, queue) = (json!({ "workers": 2 }), json!({ "waiting": 1 }));
    let claim = registry.announce_node("n", &me, &stats, None).await.unwrap();
    assert!(matches!(claim, ClaimNode::Ours(_)));
    registry.announce_metrics("n", &me, &queue).await.unwrap();
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
    let queue = registry.nodes::<Value, Value>().await.unwrap().remove(0).queue;
    assert_eq!(queue.unwrap()["waiting"], 1);
    assert_eq!(registry.workers::<Value, Value>().await.unwrap().len(), 1);
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
    let alert = json!({ "kind": "node-dead", "subject": "x", "message": "x" });
    assert!(decisions.alert(&leader, &[alert]).await.unwrap());
    decisions.step(&json!({ "workers": 2 }), Some(&json!({ "workers": 2 }))).await.unwrap();
    assert_eq!(decisions.history::<Value>().await.unwrap().0.len(), 2);
    assert_eq!(decisions.alerts::<Value>().await.unwrap().len(), 1);
    let level = broker.levels(&["tickets".to_owned()]).await.unwrap().remove(0);
    assert!(level.completed == 3 && level.last_ended.is_some(), "{level:?}");
    lease.release(&leader).await.unwrap();
    registry.forget_worker("n-worker-0", "1").await.unwrap();
    registry.forget_node("n", &me).await.unwrap();
    let nodes = registry.nodes::<Value, Value>().await.unwrap();
    assert!(nodes.is_empty() && registry.has_left("n").await.unwrap());
}

#[tokio::test]
async fn a_cluster_keeps_all_queues_in_one_slot() {
    let nodes = cluster(None).await;
    let url = format!("redis-cluster://127.0.0.1:{},127.0.0.1:1", nodes[2].1);
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
    let mut played = play(&queue, consumer("b"));
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
    let error = refusal(Config::new(nodes[0].0.url())).await.to_string();
    assert!(error.contains("redis-cluster://"), "{error}");
}

#[tokio::test]
async fn a_cluster_over_tls_lets_in_who_has_name_password_and_certificate() {
    let certificates = Certificates::make();
    let nodes = cluster(Some(&certificates)).await;
    for (node, _) in &nodes {
        lock(node).await;
    }
    let config = |login: &str| Config {
        tls: certificates.files(),
        ..Config::new(format!("rediss-cluster://{login}127.0.0.1:{}", nodes[1].1))
    };
    let error = refusal(config("worker:wrong@")).await.to_string();
    assert!(error.contains("password"), "{error}");
    let stranger = Config { tls: TlsFiles::default(), ..config("worker:s3cr%3At@") };
    let error = refusal(stranger).await.to_string();
    assert!(error.contains("certificate"), "{error}");
    work(&Broker::connect(&config("worker:s3cr%3At@")).await.unwrap(), "{bull}").await;
}
