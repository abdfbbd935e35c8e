//! Snapshots: states of things, written for outside readers.

use std::time::Duration;

use serde_json::{Value, json};
use stampede_broker::SnapshotWrite;

use crate::stage::Stage;

const KEY: &str = "batch:b1";
const HOUR: Duration = Duration::from_secs(3600);

async fn write(stage: &Stage, revision: u64, done: u64, list: Option<&str>) -> bool {
    // A text that looks like the list must not be taken for it.
    let mut head = json!({"owner": r#"ann","tickets":["x"]"#, "done": done}).to_string();
    head.pop();
    let keep = HOUR * done as u32;
    let write = SnapshotWrite { key: KEY, revision, head: &head, list_name: "tickets", list, keep };
    stage.broker.snapshots().write(write).await.unwrap()
}

async fn read(stage: &Stage) -> Value {
    let text: String = stage.ask(&format!("GET {KEY}")).await;
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn the_newest_revision_wins_whatever_the_order() {
    let stage = Stage::start().await;
    let tickets = r#"["t1","t2","t3"]"#;
    assert!(write(&stage, 1, 1, Some(tickets)).await);
    assert!(write(&stage, 10, 3, None).await);
    assert!(write(&stage, 2, 2, None).await, "late, but of a known thing");
    assert_eq!(read(&stage).await["done"], 3);
    assert!(write(&stage, 2, 2, Some(tickets)).await);
    let expected = json!({
        "revision": 10, "owner": r#"ann","tickets":["x"]"#, "done": 3, "tickets": ["t1", "t2", "t3"],
    });
    assert_eq!(read(&stage).await, expected);
}

#[tokio::test]
async fn an_update_of_an_unknown_thing_says_so_and_writes_nothing() {
    let stage = Stage::start().await;
    assert!(!write(&stage, 1, 1, None).await);
    assert!(!stage.ask::<bool>(&format!("EXISTS {KEY}")).await);
}

#[tokio::test]
async fn every_update_says_how_long_it_is_kept() {
    let stage = Stage::start().await;
    for (revision, hours, list) in [(1, 2, Some("[]")), (2, 1, None), (3, 2, None)] {
        assert!(write(&stage, revision, hours, list).await);
        let kept: i64 = stage.ask(&format!("TTL {KEY}")).await;
        let seconds = 3600 * hours as i64;
        assert!((seconds - 60..=seconds).contains(&kept), "{kept}");
    }
    assert_eq!(read(&stage).await["tickets"], json!([]));
}
