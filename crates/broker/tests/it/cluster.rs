//! The registry, the lease and decisions, on a real redis-server (7.0: fields cannot expire there).

use std::time::Duration;

use serde_json::{Value, json};
use stampede_broker::{
    Broker, ClaimNode, Config, Decided, Decisions, NodeIdentity, Tallies, WorkerPresence,
};
use stampede_testkit::{Redis, eventually};

const SHORT: Duration = Duration::from_millis(1_500);
const PATIENCE: Duration = Duration::from_secs(20);

async fn connect() -> (Redis, Broker) {
    let redis = Redis::start().await;
    let broker = Broker::connect(&Config::new(redis.url())).await.unwrap();
    (redis, broker)
}

fn holder(incarnation: &str) -> NodeIdentity {
    NodeIdentity {
        incarnation: incarnation.to_owned(),
        host: "here".to_owned(),
        pid: 7,
        boot: "once".to_owned(),
    }
}

#[tokio::test]
async fn who_does_not_announce_itself_vanishes_alone_and_its_counts_stay() {
    let (redis, broker) = connect().await;
    let registry = broker.registry(SHORT);
    let stats = json!({ "instanceId": "x", "workers": 3 });
    for name in ["a", "b"] {
        let claim = registry.announce_node(name, &holder(name), &stats, None).await;
        assert!(matches!(claim.unwrap(), ClaimNode::Ours(_)));
        registry.announce_metrics(name, &holder(name), &json!({})).await.unwrap();
    }
    let worker = WorkerPresence {
        id: "a-worker-0".to_owned(),
        node: "a".to_owned(),
        incarnation: "1".to_owned(),
        start_time: 5,
        pid: 9,
    };
    let (done, mut counted) =
        (Tallies { completed: 12, failed: 1, stalled: 0 }, Tallies::default());
    registry.announce_worker(&worker, "running", &json!({ "busy": 2 })).await.unwrap();
    for _ in 0..2 {
        registry.count("a", done, &mut counted).await.unwrap();
    }
    let names = || async {
        let nodes = registry.nodes::<Value, Value>().await.unwrap();
        nodes.into_iter().map(|node| node.name).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["a", "b"]);
    assert_eq!(registry.workers::<Value, Value>().await.unwrap()[0].heartbeat["busy"], 2);

    // Only b goes on: a and its worker vanish, from the hashes too.
    eventually(PATIENCE, || async {
        registry.announce_node("b", &holder("b"), &stats, None).await.unwrap();
        registry.sweep_workers().await.unwrap();
        // The worker was announced after its node, so its entry may end later.
        let fields = ["workers:stats", "workers:active"].map(|hash| redis.cli(&["HKEYS", hash]));
        if fields == ["b", ""] { Ok(()) } else { Err(fields.join(" and ")) }
    })
    .await;
    assert_eq!(names().await, ["b"]);
    let lease = broker.coordinator_lease("b", "2", PATIENCE);
    let (leader, _) = lease.hold().await.unwrap().unwrap();
    assert!(broker.decisions().begin(&leader).await.unwrap());
    assert!(registry.settle_counters(&leader, &["b".to_owned()]).await.unwrap());
    assert_eq!(redis.cli(&["HGET", "stats:completed", "(departed)"]), "12");
    assert_eq!(redis.cli(&["HGET", "stats:completed", "a"]), "");
    let sum: u64 = registry.counters().await.unwrap().values().map(|t| t.completed).sum();
    assert_eq!(sum, 12, "what was done stays done");
    // And when nobody is left to remove anything, all of it goes.
    eventually(PATIENCE, || async {
        let left = redis.cli(&["EXISTS", "workers:stats", "queue:metrics"]);
        if left == "0" { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn times_are_those_of_redis_and_texts_stay_json() {
    let (redis, broker) = connect().await;
    let registry = broker.registry(PATIENCE);
    registry.announce_node("a", &holder("a"), &json!({}), None).await.unwrap();
    registry.announce_metrics("a", &holder("a"), &json!({ "x": 1 })).await.unwrap();
    for hash in ["workers:stats", "queue:metrics"] {
        let text = redis.cli(&["HGET", hash, "a"]);
        let value: Value = serde_json::from_str(&text).unwrap();
        let seconds: u64 = redis.cli(&["TIME"]).lines().next().unwrap().parse().unwrap();
        let written = value["timestamp"].as_u64().unwrap() / 1000;
        assert!(written.abs_diff(seconds) <= 5, "{text}");
    }
}

#[tokio::test]
async fn an_entry_from_before_the_clock_was_set_back_vanishes_too() {
    let (redis, broker) = connect().await;
    let registry = broker.registry(SHORT);
    let seconds: u64 = redis.cli(&["TIME"]).lines().next().unwrap().parse().unwrap();
    let future = format!("{{\"workers\":5,\"timestamp\":{}}}", (seconds + 3600) * 1000);
    redis.cli(&["HSET", "workers:stats", "ghost", &future, "foreign", "not ours"]);
    assert!(registry.nodes::<Value, Value>().await.unwrap().is_empty());
    let claim = registry.announce_node("a", &holder("a"), &json!({}), None).await.unwrap();
    let ClaimNode::Ours(announced) = claim else { panic!("the name is free") };
    assert_eq!(announced.other_workers, 0);
    let fields = redis.cli(&["HKEYS", "workers:stats"]);
    let mut fields: Vec<&str> = fields.lines().collect();
    fields.sort_unstable();
    assert_eq!(fields, ["a", "foreign"], "what others write is theirs");
}

#[tokio::test]
async fn a_name_belongs_to_one_process_until_that_is_gone() {
    let (_redis, broker) = connect().await;
    let registry = broker.registry(SHORT);
    let announce = |who: &'static str, dead: Option<&'static str>| {
        let registry = registry.clone();
        async move {
            let dead = dead.map(holder);
            let claim = registry.announce_node("a", &holder(who), &json!({}), dead.as_ref()).await;
            matches!(claim.unwrap(), ClaimNode::Ours(_))
        }
    };
    assert!(announce("first", None).await);
    assert!(!announce("second", None).await, "taken");
    assert!(announce("first", None).await, "again and again");
    assert!(!announce("second", Some("other")).await);
    assert!(announce("second", Some("first")).await, "the first is known to be dead");
    assert!(!announce("first", None).await);
    registry.forget_node("a", &holder("first")).await.unwrap();
    assert!(!registry.has_left("a").await.unwrap(), "not its name any more");
    registry.forget_node("a", &holder("second")).await.unwrap();
    let nodes = registry.nodes::<Value, Value>().await.unwrap();
    assert!(registry.has_left("a").await.unwrap() && nodes.is_empty());
    assert!(announce("third", None).await);
    assert!(!registry.has_left("a").await.unwrap(), "it is back, and might die now");
    eventually(PATIENCE, || async { announce("fourth", None).await.then_some(()) }).await;
}

#[tokio::test]
async fn one_leads_at_a_time_with_a_larger_token_than_all_before() {
    let (redis, broker) = connect().await;
    let first = broker.coordinator_lease("a", "1", SHORT);
    let second = broker.coordinator_lease("b", "2", SHORT);
    let (leads, _) = first.hold().await.unwrap().unwrap();
    assert_eq!(second.hold().await.unwrap(), None);
    assert_eq!(first.hold().await.unwrap().unwrap().0, leads, "renewed");
    let (next, _) = eventually(PATIENCE, || async { second.hold().await.unwrap() }).await;
    assert!(next.token > leads.token);
    assert_eq!(first.hold().await.unwrap(), None);
    // Only the holder can give it back.
    first.release(&leads).await.unwrap();
    assert_eq!(broker.coordinator().await.unwrap(), Some(next.clone()));
    second.release(&next).await.unwrap();
    assert_eq!(broker.coordinator().await.unwrap(), None);
    // Even a Redis that lost everything does not begin again with old tokens.
    redis.cli(&["FLUSHALL"]);
    assert!(first.hold().await.unwrap().unwrap().0.token > next.token);
}

#[tokio::test]
async fn one_that_does_not_lead_any_more_changes_nothing() {
    let (redis, broker) = connect().await;
    let decisions = broker.decisions();
    let lease = broker.coordinator_lease("a", "1", PATIENCE);
    let (leader, _) = lease.hold().await.unwrap().unwrap();
    let decision = json!({ "action": "scale_up", "nodeId": "n" });
    assert!(decisions.begin(&leader).await.unwrap());
    assert_eq!(decisions.decide(&leader, "n", &decision).await.unwrap(), Decided::Unheard);
    assert!(
        decisions.history::<Value>().await.unwrap().0.is_empty(),
        "what nobody heard is not history"
    );
    let mut node = broker.subscribe(&Decisions::command_channels("n")).await.unwrap();
    assert_eq!(decisions.decide(&leader, "n", &decision).await.unwrap(), Decided::Told);
    let heard: Value = serde_json::from_str(&node.next().await.unwrap()).unwrap();
    assert!(heard["action"] == "scale_up" && heard["timestamp"].is_u64(), "{heard}");

    lease.release(&leader).await.unwrap();
    let other = broker.coordinator_lease("b", "2", PATIENCE);
    let (new, _) = other.hold().await.unwrap().unwrap();
    assert!(decisions.begin(&new).await.unwrap() && !decisions.begin(&leader).await.unwrap());
    let alert = json!({ "kind": "node-dead", "subject": "x", "message": "gone" });
    let alerts = std::slice::from_ref(&alert);
    assert_eq!(decisions.decide(&leader, "n", &decision).await.unwrap(), Decided::Fenced);
    assert!(!decisions.survey(&leader, &json!({ "by": "old" })).await.unwrap());
    assert!(!decisions.alert(&leader, alerts).await.unwrap());
    // It has never seen the node that came since, and takes it for gone.
    let registry = broker.registry(PATIENCE);
    let done = Tallies { completed: 5, failed: 1, stalled: 1 };
    registry.count("came-since", done, &mut Tallies::default()).await.unwrap();
    assert!(!registry.settle_counters(&leader, &["n".to_owned()]).await.unwrap());
    assert_eq!(registry.counters().await.unwrap()["came-since"], done);
    assert_eq!(redis.cli(&["EXISTS", "cluster:stats", "cluster:alerts"]), "0");
    assert_eq!(decisions.history::<Value>().await.unwrap().0.len(), 1);

    assert!(decisions.survey(&new, &json!({ "by": "new" })).await.unwrap());
    assert!(decisions.alert(&new, alerts).await.unwrap());
    assert_eq!(decisions.stats::<Value>().await.unwrap().unwrap()["by"], "new");
    assert_eq!(decisions.alerts::<Value>().await.unwrap()[0]["kind"], "node-dead");
    // What a transaction elsewhere has decided is told by any process, whoever is coordinator.
    let paused = json!({ "kind": "campaign-paused", "subject": "c", "message": "paused" });
    let mut heard = broker.subscribe(&["cluster:alert".to_owned()]).await.unwrap();
    decisions.raise(&paused).await.unwrap();
    let told: Value = serde_json::from_str(&heard.next().await.unwrap()).unwrap();
    assert!(told["kind"] == "campaign-paused" && told["timestamp"].is_u64(), "{told}");
    let kinds: Vec<Value> = decisions.alerts::<Value>().await.unwrap();
    let kinds: Vec<&str> = kinds.iter().filter_map(|alert| alert["kind"].as_str()).collect();
    assert_eq!(kinds, ["campaign-paused", "node-dead"]);
    for _ in 0..120 {
        decisions.decide(&new, "n", &decision).await.unwrap();
    }
    assert_eq!(decisions.history::<Value>().await.unwrap().0.len(), 100);
}
