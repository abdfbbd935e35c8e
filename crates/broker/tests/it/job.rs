//! Jobs written by others.

use redis::cmd;
use stampede_broker::Outcome;

use crate::stage::{Stage, config};

async fn add(stage: &Stage, id: &str, data: &[u8], options: &str) {
    let mut raw = stage.raw().await;
    let mut command = cmd("HSET");
    command.arg(format!("bull:tickets:{id}")).arg("name").arg("x").arg("data").arg(data);
    command.arg("opts").arg(options).arg("timestamp").arg("1").arg("priority").arg("0");
    let _: i64 = command.query_async(&mut raw).await.unwrap();
    stage.ask::<()>(&format!("LPUSH @wait {id}")).await;
    stage.ask::<()>("ZADD @marker 0 0").await;
}

#[tokio::test]
async fn options_with_fractions_from_javascript_are_read_one_by_one() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    let options = r#"{"attempts":2.5,"backoff":{"type":"fixed","delay":50.7},"removeOnFail":true,"kl":0.5,"delay":1.5}"#;
    add(&stage, "js", b"{\"n\":1.5}", options).await;
    let run = played.run().await;
    assert_eq!((run.job.attempts, &run.job.data["n"]), (2, &serde_json::json!(1.5)));
    run.ends(Outcome::Retry("once".into()));
    played.run().await.ends(Outcome::Retry("twice".into()));
    played.failure().await.settles(Ok(()));
    // removeOnFail held, too.
    stage.until("gone", |counts| counts.active + counts.delayed + counts.failed == 0).await;
    assert!(!stage.ask::<bool>("EXISTS @js").await);
}

#[tokio::test]
async fn an_unreadable_job_does_not_hold_up_the_queue() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    add(&stage, "bytes", b"{\"name\":\"\xff\xfe\"}", "not json").await;
    let run = played.run().await;
    assert_eq!((run.job.id.as_str(), run.job.attempts), ("bytes", 0));
    run.completes();
    stage.until_completed(1).await;
}
