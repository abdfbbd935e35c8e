//! Reconciling: pending tickets without a job get one.

use stampede_ticketing::Reconciler;

use crate::stage::{Stage, now};

#[tokio::test]
async fn a_redis_that_lost_everything_is_filled_again() {
    let mut stage = Stage::quiet().await;
    let (batch, tickets) = stage.place(&["Ann", "Bob", "Eve"]).await;
    stage.redis.cli(&["FLUSHALL"]);
    assert!(!stage.has_job(tickets[0]) && stage.mirrored(batch).is_null());
    let reconciler = Reconciler::new(stage.ticketing.clone());
    assert_eq!(reconciler.pass(now()).await, Ok(3));
    assert!(tickets.iter().all(|ticket| stage.has_job(*ticket)));
    assert_eq!(stage.mirrored(batch)["tickets"], serde_json::json!(tickets));
    assert_eq!(reconciler.pass(now()).await, Ok(0), "live jobs are left alone");
    stage.work().await;
    assert_eq!(stage.ended(batch).await.completed, 3);
    assert_eq!(reconciler.pass(now()).await, Ok(0), "completed tickets need no job");
    stage.stop().await;
}

#[tokio::test]
async fn young_orders_are_left_to_those_who_took_them() {
    let stage = Stage::quiet().await;
    let (_, tickets) = stage.place(&["Ann"]).await;
    stage.redis.cli(&["FLUSHALL"]);
    let reconciler = Reconciler::new(stage.ticketing.clone());
    let earlier = now() - std::time::Duration::from_secs(15);
    assert_eq!(reconciler.pass(earlier).await, Ok(0));
    assert!(!stage.has_job(tickets[0]));
    // No time is too far for the store: tickets of a clock that was ahead are looked at like this.
    assert_eq!(reconciler.pass(stampede_model::Timestamp::MAX).await, Ok(1));
}
