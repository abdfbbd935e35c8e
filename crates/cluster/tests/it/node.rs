//! A node announces itself in time, even when its queues answer slowly.

use std::time::Duration;

use stampede_broker::{Broker, Config};
use stampede_cluster::{ApiLimits, LatencyMeter, Limits, Membership, Node, NodeConfig, Roles};
use stampede_testkit::{Redis, eventually};
use stampede_wire::cluster::{NodeStats, QueueMetrics};
use tokio_util::sync::CancellationToken;

/// Entries of nodes live for 15 seconds.
const IN_TIME: Duration = Duration::from_secs(12);

fn config(queues: Vec<String>) -> NodeConfig {
    NodeConfig {
        name: "node".to_owned(),
        mode: "auto",
        roles: Roles { api: true, worker: false, coordinator: false },
        min: 0,
        max: 0,
        yields: false,
        limits: Limits::default(),
        api: ApiLimits::default(),
        interval: Duration::from_secs(1),
        stuck_after: Duration::from_secs(60),
        queues,
        version: "1",
    }
}

#[tokio::test]
async fn a_node_whose_queues_answer_slowly_is_announced_in_time() {
    let redis = Redis::start().await;
    let broker = Broker::connect(&Config::new(redis.url())).await.unwrap();
    // Each is one round trip; all together they take longer than an entry lives.
    let queues = (0..400_000).map(|number| format!("queue-{number}")).collect();
    let membership = Membership::claim(config(queues), broker.clone()).await.unwrap();
    let node = Node::new(membership, None, LatencyMeter::default());
    let (stop, drained) = (CancellationToken::new(), CancellationToken::new());
    let running = tokio::spawn(node.run(stop.clone(), drained.clone()));
    let registry = broker.registry(Duration::from_secs(15));
    // The claim of the name, which comes first, has no version.
    eventually(IN_TIME, || async {
        let nodes = registry.nodes::<NodeStats, QueueMetrics>().await.unwrap();
        (nodes[0].stats.version.as_deref() == Some("1")).then_some(())
    })
    .await;
    stop.cancel();
    drained.cancel();
    running.await.unwrap();
}
