//! Each queue has its own slots.

use stampede_broker::{JobSpec, Work};
use stampede_telemetry::{Metrics, Registry};
use stampede_testkit::eventually;
use stampede_worker::Report;

use crate::stage::{PATIENCE, Quick, Slow, Stage};

#[tokio::test]
async fn slow_jobs_of_one_queue_do_not_hold_up_another() {
    let mut stage = Stage::start().await;
    let slow: Vec<JobSpec> = (0..10).map(|number| Slow { number }.spec()).collect();
    stage.add(&stage.slow, &slow).await;
    // Both slots of the slow queue are taken, and the reports add up over all queues.
    stage.reported(Report { busy: 2, slots: 2 + 3 }).await;
    let quick: Vec<JobSpec> = (20..120).map(|number| Quick { number }.spec()).collect();
    stage.add(&stage.quick, &quick).await;
    eventually(PATIENCE, || async {
        let ran = stage.counters.quick();
        if ran == 100 { Ok(()) } else { Err(format!("{ran} ran")) }
    })
    .await;
    let counts = stage.slow.counts().await.unwrap();
    assert_eq!((counts.active, counts.completed), (2, 0), "the slow ones still wait");
    stage.counters.let_pass(10);
    eventually(PATIENCE, || async {
        let counts = stage.slow.counts().await.map_err(|e| e.to_string())?;
        if counts.completed == 10 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    stage.stop.cancel();
    stage.working.await.unwrap();
    // What ended in all queues is counted for the node.
    assert_eq!(stage.redis.cli(&["HGET", "stats:completed", "node-1"]).trim(), "110");
}

#[tokio::test]
async fn runs_are_counted_by_queue_and_end() {
    let stage = Stage::start().await;
    let quick: Vec<JobSpec> = (11..16).map(|number| Quick { number }.spec()).collect();
    stage.add(&stage.quick, &quick).await;
    stage.failed(&stage.quick).await;
    stage.stop.cancel();
    stage.working.await.unwrap();
    let registry = Registry::new();
    let node = Metrics::register(&registry).unwrap();
    node.listen().hear(stage.metrics.snapshot());
    let text = stampede_telemetry::text(&registry).unwrap();
    for line in [
        r#"queue_jobs_total{queue="quick-things",status="completed"} 4"#,
        r#"queue_jobs_total{queue="quick-things",status="retried"} 1"#,
        r#"queue_jobs_total{queue="quick-things",status="failed"} 1"#,
        r#"queue_job_duration_seconds_count{queue="quick-things"} 4"#,
        r#"stampede_job_run_seconds_count{queue="quick-things"} 6"#,
        r#"stampede_job_wait_seconds_count{queue="quick-things"} 5"#,
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in:\n{text}");
    }
}
