//! Orders that workers draw.

use std::time::Duration;

use serde_json::json;
use stampede_broker::{JobResult, JobSpec};
use stampede_studio::{Drawn, Error, Limits, LookedUp, Priority, StickerName};

use crate::stage::{Stage, bytes, webp};

const NO_POOL: Limits = Limits { threads: 0, queue: 0, patience: Duration::from_secs(60) };

#[tokio::test]
async fn a_node_without_a_pool_waits_for_its_job() {
    let stage = Stage::new().await;
    let node = stage.node_with(NO_POOL).await;
    node.studio.warm_up().await.unwrap();
    let (worker, working) = stage.worker().await;
    for _ in 0..2 {
        assert_eq!(bytes(node.draw("Hello").await), webp("Hello"));
    }
    assert_eq!((node.painter.drawn(), worker.painter.drawn()), (0, 1));
    let refused = node.draw("a ☠").await;
    let Err(Error::Invalid(mistakes)) = refused else { panic!("{refused:?}") };
    assert!(mistakes[0].message.contains("has no glyph for ☠"), "{mistakes:?}");
    working.stop().await;
}

#[tokio::test]
async fn an_order_that_waited_too_long_is_found_by_its_name_later() {
    let stage = Stage::new().await;
    let node = stage.node_with(Limits { patience: Duration::ZERO, ..NO_POOL }).await;
    let order = node.order("Hello");
    assert_eq!(node.studio.look_up(order.name).await.unwrap(), LookedUp::Unknown);
    let drawn = node.studio.draw(&order, Priority::Vip).await.unwrap();
    assert_eq!(drawn, Drawn::Later(order.name));
    assert_eq!(node.studio.look_up(order.name).await.unwrap(), LookedUp::NotYet);
    let bad = node.order("☠");
    node.studio.draw(&bad, Priority::Vip).await.unwrap();

    let queue = stage.broker.queue("stickers").await.unwrap();
    let (_worker, working) = stage.worker().await;
    let events = queue.events().await.unwrap();
    let ended = async |name: StickerName| {
        events.ended(&name.key.to_string(), Duration::from_secs(60)).await.unwrap().unwrap()
    };
    let JobResult::Completed(result) = ended(order.name).await else { panic!("failed") };
    let made = json!({ "success": true, "file": order.name.file(), "bytes": 17 });
    assert_eq!(result, made);
    let found = node.studio.look_up(order.name).await.unwrap();
    let LookedUp::Ready(sticker) = found else { panic!("{found:?}") };
    assert_eq!(sticker.bytes, webp("Hello"));
    ended(bad.name).await;
    let failed = node.studio.look_up(bad.name).await.unwrap();
    assert_eq!(failed, LookedUp::Failed("text has no glyph for ☠".to_owned()));
    working.stop().await;
}

#[tokio::test]
async fn a_job_that_was_done_runs_again_when_its_file_is_gone() {
    let stage = Stage::new().await;
    let (worker, working) = stage.worker().await;
    let node = stage.node_with(NO_POOL).await;
    bytes(node.draw("Hello").await);
    let name = node.order("Hello").name;
    std::fs::remove_file(stage.folder.path().join(name.file())).unwrap();
    let other = stage.node_with(NO_POOL).await;
    assert_eq!(other.studio.look_up(name).await.unwrap(), LookedUp::Unknown);
    // The worker has it in memory, and writes the file again.
    assert_eq!(bytes(other.draw("Hello").await), webp("Hello"));
    assert_eq!(worker.painter.drawn(), 1);
    working.stop().await;
}

#[tokio::test]
async fn jobs_of_other_producers_are_drawn_and_mistakes_are_results() {
    let stage = Stage::new().await;
    let (worker, working) = stage.worker().await;
    let queue = stage.broker.queue("stickers").await.unwrap();
    let events = queue.events().await.unwrap();
    let run = async |data: serde_json::Value| {
        let job = JobSpec::new("generate-sticker", data);
        queue.enqueue(std::slice::from_ref(&job)).await.unwrap();
        match events.ended(&job.id, Duration::from_secs(60)).await.unwrap().unwrap() {
            JobResult::Completed(result) => result,
            JobResult::Failed(reason) => panic!("{reason}"),
        }
    };
    let task = json!({
        "v": 1, "id": "unique-task-id", "text": "Hello", "variant": { "fill": "neon" },
        "configId": "config-hash", "index": 0,
    });
    let result = run(task).await;
    let file = result["file"].as_str().unwrap();
    assert_eq!(std::fs::read(stage.folder.path().join(file)).unwrap(), webp("Hello"));
    let wrong = run(json!({ "v": 1, "text": " ", "variant": "neno" })).await;
    let told = "text is empty; variant is not known; did you mean neon?";
    assert_eq!(wrong, json!({ "success": false, "error": told }));
    assert_eq!(worker.painter.drawn(), 1);
    working.stop().await;
}

#[tokio::test]
async fn a_worker_of_another_version_draws_for_a_node_that_is_being_updated() {
    let stage = Stage::new().await;
    let node = stage.node_with(NO_POOL).await;
    let (worker, working) = stage.worker_of_version(2).await;
    assert_eq!(bytes(node.draw("Hello").await), webp("Hello"));
    let other = stage.node_with(NO_POOL).await;
    let found = other.studio.look_up(node.order("Hello").name).await.unwrap();
    let LookedUp::Ready(sticker) = found else { panic!("{found:?}") };
    assert_eq!((sticker.name, worker.painter.drawn()), (node.order("Hello").name, 1));
    working.stop().await;
}
