//! Popular texts are drawn in advance.

use std::collections::HashSet;

use crate::stage::{Stage, bytes};

#[tokio::test]
async fn a_text_that_is_asked_for_three_times_is_drawn_in_all_variants() {
    let stage = Stage::new().await;
    let mut node = stage.node(1, 10).await;
    let mut made = HashSet::new();
    assert_eq!(node.studio.draw_ahead(&mut made).await, 0);
    for text in ["often", "often", "seldom", "seldom", "often"] {
        bytes(node.draw(text).await);
    }
    assert_eq!(node.painter.drawn(), 2);
    let held = node.spawn("hold 1");
    node.until_begun("hold 1").await;
    assert_eq!(node.studio.draw_ahead(&mut made).await, 0, "the pool is busy");
    node.painter.let_go(1);
    bytes(held.await.unwrap());
    assert_eq!(node.studio.draw_ahead(&mut made).await, 1, "one of the two variants is there");
    assert_eq!(node.studio.draw_ahead(&mut made).await, 0);
    assert_eq!((node.painter.drawn(), made.len()), (4, 2));
    // Another node finds the file.
    let other = stage.node(1, 10).await;
    for _ in 0..3 {
        bytes(other.draw("often").await);
    }
    assert_eq!(other.studio.draw_ahead(&mut HashSet::new()).await, 0);
    assert_eq!(other.painter.drawn(), 0);
}

#[tokio::test]
async fn texts_that_cannot_be_drawn_are_not_tried_for_ever() {
    let stage = Stage::new().await;
    let node = stage.node(1, 10).await;
    for _ in 0..3 {
        assert!(node.draw("☠").await.is_err());
    }
    let mut made = HashSet::new();
    assert_eq!(node.studio.draw_ahead(&mut made).await, 0);
    assert_eq!(made.len(), 2, "both variants were tried once");
}
