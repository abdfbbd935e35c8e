//! Jobs that are refused or given up.

use serde_json::json;
use stampede_broker::{JobSpec, Work};

use crate::stage::{Quick, Stage};

#[tokio::test]
async fn a_job_of_an_unknown_kind_is_failed_at_once() {
    let stage = Stage::start().await;
    let unknown = JobSpec { attempts: Some(5), ..JobSpec::new("dance", json!({})) };
    stage.add(&stage.quick, &[unknown]).await;
    let failed = stage.failed(&stage.quick).await;
    let reason = failed.failed_reason.unwrap_or_default();
    assert_eq!(reason, "no job type is called \"dance\" here");
    assert_eq!((failed.attempts_made, stage.counters.given_up()), (1, 0));
    stage.stop.cancel();
    stage.working.await.unwrap();
}

#[tokio::test]
async fn a_payload_of_a_newer_version_is_failed_at_once() {
    let stage = Stage::start().await;
    let newer = JobSpec { data: json!({ "v": 2, "amount": "7" }), ..Quick { number: 7 }.spec() };
    stage.add(&stage.quick, &[newer]).await;
    let failed = stage.failed(&stage.quick).await;
    let reason = failed.failed_reason.unwrap_or_default();
    assert_eq!(reason, "payload version 2 is newer than this worker understands (1)");
    assert_eq!((stage.counters.quick(), stage.counters.given_up()), (0, 0));
    stage.stop.cancel();
    stage.working.await.unwrap();
}

#[tokio::test]
async fn a_job_is_given_up_before_it_is_failed_and_until_that_succeeds() {
    let stage = Stage::start().await;
    stage.add(&stage.quick, &[Quick { number: 13 }.spec()]).await;
    let failed = stage.failed(&stage.quick).await;
    assert_eq!(failed.failed_reason.as_deref(), Some("thirteen"));
    assert_eq!(failed.attempts_made, 2, "the attempts of its kind");
    assert_eq!(stage.counters.given_up(), 2, "the first call was refused");
    stage.stop.cancel();
    stage.working.await.unwrap();
}
