//! One order.

use std::time::Duration;

use serde_json::json;
use stampede_studio::{Error, Format, Limits, Priority};
use stampede_testkit::eventually;

use crate::stage::{LONG, Stage, bytes, webp};

#[tokio::test]
async fn a_sticker_is_drawn_once_and_found_by_all_nodes_afterwards() {
    let stage = Stage::new().await;
    let (one, other) = (stage.node(1, 10).await, stage.node(1, 10).await);
    for _ in 0..3 {
        assert_eq!(bytes(one.draw(" Hello ").await), webp("Hello"));
    }
    for _ in 0..2 {
        assert_eq!(bytes(other.draw("Hello").await), webp("Hello"));
    }
    assert_eq!((one.painter.drawn(), other.painter.drawn()), (1, 0));
    let (cache, others) = (one.studio.stats().await.cache, other.studio.stats().await.cache);
    assert_eq!((cache.memory, cache.files, cache.drawn), (2, 0, 1));
    assert_eq!((others.memory, others.files, others.drawn), (1, 1, 0));
    assert!(cache.bytes > webp("Hello").len() as u64);
    // Other bytes under the same name would be kept by every client for a year.
    let limits = Limits { threads: 1, queue: 10, patience: LONG };
    let newer = stage.node_of_version(limits, 2).await;
    assert_ne!(newer.order("Hello").name, one.order("Hello").name);
    newer.draw("Hello").await.unwrap();
    assert_eq!(newer.painter.drawn(), 1);
}

#[tokio::test]
async fn a_damaged_file_is_drawn_again() {
    let stage = Stage::new().await;
    let node = stage.node(1, 10).await;
    bytes(node.draw("Hello").await);
    let file = stage.folder.path().join(node.order("Hello").name.file());
    assert_eq!(std::fs::read(&file).unwrap(), webp("Hello"));
    for damaged in [&b""[..], &[0; 14], &webp("Hello")[..10]] {
        std::fs::write(&file, damaged).unwrap();
        let other = stage.node(1, 10).await;
        assert_eq!(bytes(other.draw("Hello").await), webp("Hello"));
        assert_eq!(std::fs::read(&file).unwrap(), webp("Hello"));
    }
}

#[tokio::test]
async fn the_same_text_from_50_clients_is_drawn_once() {
    let stage = Stage::new().await;
    let mut node = stage.node(1, 100).await;
    let clients: Vec<_> = (0..50).map(|_| node.spawn("hold on")).collect();
    node.until_begun("hold on").await;
    assert_eq!(node.waiting().await, 0);
    node.painter.let_go(1);
    for client in clients {
        assert_eq!(bytes(client.await.unwrap()), webp("hold on"));
    }
    assert_eq!(node.painter.drawn(), 1);
}

#[tokio::test]
async fn a_full_pool_refuses_and_a_client_that_hangs_up_frees_its_place() {
    let stage = Stage::new().await;
    let mut node = stage.node(1, 1).await;
    let first = node.spawn("hold 1");
    node.until_begun("hold 1").await;
    let second = node.spawn("waits");
    let is_waiting = async |count: usize| {
        eventually(Duration::from_secs(30), async || (node.waiting().await == count).then_some(()))
            .await
    };
    is_waiting(1).await;
    let refused = node.draw("refused").await;
    let Err(Error::Full { queued: 1, retry_after }) = refused else { panic!("{refused:?}") };
    assert!(retry_after >= Duration::from_secs(1));
    second.abort();
    is_waiting(0).await;
    let third = node.spawn("third");
    is_waiting(1).await;
    node.painter.let_go(1);
    assert_eq!(bytes(first.await.unwrap()), webp("hold 1"));
    assert_eq!(bytes(third.await.unwrap()), webp("third"));
    assert_eq!(node.painter.drawn(), 2);
}

#[tokio::test]
async fn a_text_that_makes_the_drawer_panic_harms_no_other() {
    let stage = Stage::new().await;
    let node = stage.node(2, 100).await;
    for _ in 0..3 {
        let failed = node.draw("boom").await;
        let Err(Error::Internal(reason)) = failed else { panic!("{failed:?}") };
        assert!(reason.contains("the drawer panics at this text"), "{reason}");
        assert_eq!(bytes(node.draw("Hello").await), webp("Hello"));
    }
    assert_eq!(node.studio.stats().await.pool.tasks_failed, 3);
}

#[tokio::test]
async fn wrong_orders_are_told_with_their_fields() {
    let stage = Stage::new().await;
    let node = stage.node(1, 10).await;
    let told = |text: &str, variant: &str| -> Vec<String> {
        let order = node.studio.order(text, Some(&json!(variant)), Format::Webp);
        let mistakes = order.unwrap_err().into_iter();
        mistakes.map(|mistake| format!("{} {}", mistake.field, mistake.message)).collect()
    };
    assert_eq!(told(" ", "neon"), ["text is empty"]);
    let variant = "variant is not known; did you mean neon?";
    assert_eq!(told(" ", "neno"), ["text is empty", variant]);
    // This is known only when it is drawn.
    let refused = node.draw("a ☠").await;
    let Err(error @ Error::Invalid(_)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.to_string(), "text has no glyph for ☠");
}

#[tokio::test]
async fn a_studio_that_stops_answers_those_who_wait() {
    let stage = Stage::new().await;
    let mut node = stage.node(1, 10).await;
    node.studio.warm_up().await.unwrap();
    let running = node.spawn("hold 1");
    node.until_begun("hold 1").await;
    let waiting = node.spawn("waits");
    eventually(Duration::from_secs(30), async || (node.waiting().await == 1).then_some(())).await;
    node.studio.stop(Duration::ZERO).await;
    assert!(matches!(waiting.await.unwrap(), Err(Error::Unavailable { .. })));
    node.painter.let_go(1);
    assert_eq!(bytes(running.await.unwrap()), webp("hold 1"));
    node.studio.stop(LONG).await;
    let late = node.studio.draw(&node.order("late"), Priority::Vip).await;
    assert!(matches!(late, Err(Error::Unavailable { .. })), "{late:?}");
    // What is kept can still be had.
    assert_eq!(bytes(node.draw("hold 1").await), webp("hold 1"));
}
