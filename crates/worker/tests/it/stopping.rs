//! Stopping drains all queues.

use stampede_broker::{JobSpec, Work};
use stampede_testkit::eventually;
use stampede_worker::Report;

use crate::stage::{PATIENCE, Quick, Slow, Stage};

#[tokio::test]
async fn a_worker_that_stops_ends_its_jobs_and_takes_no_more() {
    let mut stage = Stage::start().await;
    let slow: Vec<JobSpec> = (0..3).map(|number| Slow { number }.spec()).collect();
    stage.add(&stage.slow, &slow).await;
    stage.reported(Report { busy: 2, slots: 5 }).await;
    stage.stop.cancel();
    // It says that it drains …
    eventually(PATIENCE, || async {
        let entry = stage.redis.cli(&["HGET", "workers:heartbeat", "worker-1"]);
        if entry.contains("\"draining\"") { Ok(()) } else { Err(entry) }
    })
    .await;
    // … takes nothing new, also of queues in which nothing runs …
    stage.add(&stage.quick, &[Quick { number: 1 }.spec()]).await;
    stage.counters.let_pass(3);
    stage.working.await.unwrap();
    // … and ends what it had begun.
    let counts = stage.slow.counts().await.unwrap();
    assert_eq!((counts.completed, counts.waiting, counts.active), (2, 1, 0));
    assert_eq!(stage.quick.counts().await.unwrap().waiting, 1);
    assert_eq!(stage.redis.cli(&["HEXISTS", "workers:heartbeat", "worker-1"]).trim(), "0");
}
