//! Jobs written by others.

use redis::cmd;
use stampede_broker::{Letters, Outcome};

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
async fn an_unreadable_job_fails_with_a_reason_and_holds_up_nobody() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    add(&stage, "bytes", b"{\"name\":\"\xff\xfe\"}", "{}").await;
    assert!(played.failure().await.reason.contains("its field data is not UTF-8"));
    for (id, options, told) in [
        ("text", "not json", "its opts are not JSON (expected ident at line 1 column 2)"),
        ("list", "[3]", "its opts are no JSON object"),
    ] {
        add(&stage, id, b"{}", options).await;
        let failure = played.failure().await;
        assert_eq!((&*failure.job.id, &*failure.reason), (id, &*format!("unreadable job: {told}")));
    }
    stage.until("failed", |counts| counts.failed == 3 && counts.active == 0).await;
    assert_eq!(stage.queue.dead_letters().count().await.unwrap(), 3);
    // Put right by hand, and replayed.
    stage.ask::<()>("HSET @text opts {}").await;
    let these = Letters::These(vec!["text".to_owned()]);
    assert_eq!(stage.queue.dead_letters().replay(&these, None).await.unwrap().count, 1);
    played.run().await.completes();
    stage.until_completed(1).await;
}
