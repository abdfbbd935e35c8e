//! Several orders at once.

use std::time::Duration;

use stampede_studio::{Drawn, Error, Limits, LookedUp, Order, Priority};
use stampede_testkit::eventually;

use crate::stage::{Node, Stage, bytes, webp};

fn orders(node: &Node, texts: &[&str]) -> Vec<Order> {
    texts.iter().map(|text| node.order(text)).collect()
}

#[tokio::test]
async fn results_are_in_order_and_one_that_fails_leaves_the_others_alone() {
    let stage = Stage::new().await;
    let node = stage.node(2, 10).await;
    bytes(node.draw("known").await);
    let orders = orders(&node, &["a", "boom", "known", "☠", "a", "b"]);
    let done = node.studio.draw_all(&orders, Priority::Batch).await.unwrap();
    let [a, boom, known, bone, again, b] = <[_; 6]>::try_from(done).unwrap();
    assert!(matches!(boom, Err(Error::Internal(_))));
    assert!(matches!(bone, Err(Error::Invalid(_))));
    for (done, text) in [(a, "a"), (known, "known"), (again, "a"), (b, "b")] {
        assert_eq!(bytes(done), webp(text));
    }
    assert_eq!(node.painter.drawn(), 3);
    assert!(node.studio.draw_all(&[], Priority::Vip).await.unwrap().is_empty());
}

#[tokio::test]
async fn there_is_room_for_all_or_for_none() {
    let stage = Stage::new().await;
    let mut node = stage.node(1, 3).await;
    bytes(node.draw("known").await);
    let held = node.spawn("hold 1");
    node.until_begun("hold 1").await;
    let four = orders(&node, &["a", "b", "c", "d"]);
    let refused = node.studio.draw_all(&four, Priority::Vip).await;
    assert!(matches!(refused, Err(Error::Full { queued: 0, .. })), "{refused:?}");
    // Only what has to be drawn needs room.
    let studio = node.studio.clone();
    let four = orders(&node, &["a", "b", "known", "c"]);
    let drawing = tokio::spawn(async move { studio.draw_all(&four, Priority::Vip).await });
    eventually(Duration::from_secs(30), async || (node.waiting().await == 3).then_some(())).await;
    node.painter.let_go(1);
    bytes(held.await.unwrap());
    let drawn = drawing.await.unwrap().unwrap();
    let drawn: Vec<_> = drawn.into_iter().map(bytes).collect();
    assert_eq!(drawn, ["a", "b", "known", "c"].map(webp));
}

#[tokio::test]
async fn what_waits_too_long_and_what_never_has_room_is_drawn_by_workers() {
    let stage = Stage::new().await;
    let limits = Limits { threads: 1, queue: 2, patience: Duration::ZERO };
    let node = stage.node_with(limits).await;
    let held = orders(&node, &["hold 1", "hold 2"]);
    let late = node.studio.draw_all(&held, Priority::Normal).await.unwrap();
    let too_many = orders(&node, &["b", "c", "d", "e"]);
    let more = node.studio.draw_all(&too_many, Priority::Normal).await.unwrap();
    for (done, order) in late.into_iter().chain(more).zip(held.iter().chain(&too_many)) {
        assert_eq!(done.unwrap(), Drawn::Later(order.name));
    }
    let (worker, working) = stage.worker().await;
    worker.painter.let_go(2);
    let queue = stage.broker.queue("stickers").await.unwrap();
    let events = queue.events().await.unwrap();
    for order in held.iter().chain(&too_many) {
        let ended = events.ended(&order.name.key.to_string(), Duration::from_secs(60)).await;
        assert!(ended.unwrap().is_some());
        let found = node.studio.look_up(order.name).await.unwrap();
        let LookedUp::Ready(sticker) = found else { panic!("{found:?}") };
        assert_eq!(sticker.bytes, webp(&order.text));
    }
    assert_eq!(worker.painter.drawn(), 6);
    working.stop().await;
    // What the node itself may have begun.
    node.painter.let_go(2);
}
