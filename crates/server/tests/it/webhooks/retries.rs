//! Receivers that refuse, hang, flood or are gone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stampede_testkit::{App, Behaviour, Receiver, Redis, SmallDisk, eventually};

use super::{FIRST_PAUSE, HERE, becomes, sent_test, start_here, webhook_to};
use crate::{PATIENCE, STAMPEDE, text};

#[tokio::test]
async fn a_message_that_is_refused_is_sent_again_under_the_same_id() {
    let app = start_here().await;
    let receiver = Receiver::start().await;
    receiver.behaves(Behaviour::Answers(500, "out of order".to_owned()));
    let admin = app.admin();
    let (id, secret) = webhook_to(&admin, &receiver).await;
    let path = sent_test(&admin, &id).await;
    receiver.has(1).await;
    let log = becomes(&admin, &path, "attempts", 1).await;
    assert_eq!((&log["state"], &log["lastError"]), (&json!("pending"), &json!("answered 500")));
    assert!(log["nextAttemptAt"].is_string());
    assert_eq!(log["log"][0]["answer"], "out of order");
    let failing = admin.get(&format!("/api/webhooks/{id}")).await.expect(200);
    assert!(failing["failingSince"].is_string(), "{failing}");
    receiver.behaves(Behaviour::Answers(204, String::new()));
    let begun = Instant::now();
    let received = receiver.has(2).await;
    assert!(begun.elapsed() < FIRST_PAUSE + Duration::from_secs(20));
    assert_eq!((received[0].id(), &received[0].body), (received[1].id(), &received[1].body));
    assert!(received.iter().all(|message| message.is_signed_with(&secret)));
    let log = becomes(&admin, &path, "state", "delivered").await;
    assert_eq!((&log["attempts"], &log["log"].as_array().unwrap().len()), (&json!(2), &2));
    let healthy = admin.get(&format!("/api/webhooks/{id}")).await.expect(200);
    assert_eq!(healthy["failingSince"], Value::Null);
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_disabled_and_what_waits_is_cancelled() {
    let app = start_here().await;
    let receiver = Receiver::start().await;
    // Its next attempt is far away.
    receiver.behaves(Behaviour::AnswersWith(503, "Retry-After", "3000".to_owned()));
    let admin = app.admin();
    let (id, _) = webhook_to(&admin, &receiver).await;
    let waiting = sent_test(&admin, &id).await;
    becomes(&admin, &waiting, "attempts", 1).await;
    receiver.behaves(Behaviour::Answers(410, "bye".to_owned()));
    let last = sent_test(&admin, &id).await;
    becomes(&admin, &last, "state", "failed").await;
    let disabled = becomes(&admin, &format!("/api/webhooks/{id}"), "state", "disabled").await;
    assert_eq!(disabled["disabledReason"], "gone");
    becomes(&admin, &waiting, "state", "cancelled").await;
    let log = eventually(PATIENCE, || async {
        Some(app.log()).filter(|log| log.contains("webhook disabled"))
    });
    assert!(log.await.contains("why=\"gone\""), "{}", app.log());
    // Made active again, everything that was not delivered is sent once more.
    receiver.behaves(Behaviour::Answers(200, String::new()));
    admin.patch(&format!("/api/webhooks/{id}"), &json!({ "state": "active" })).await.expect(200);
    let since = json!({ "since": "2026-01-01T00:00:00Z" });
    let again = admin.post(&format!("/api/webhooks/{id}/redeliver"), &since).await.expect(202);
    assert_eq!(again, json!({ "redelivered": 2 }));
    for path in [&waiting, &last] {
        becomes(&admin, path, "state", "delivered").await;
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let app = start_here().await;
    let (receiver, target) = (Receiver::start().await, Receiver::start().await);
    let admin = app.admin();
    let (id, _) = webhook_to(&admin, &receiver).await;
    for status in [301, 302, 307, 308] {
        receiver.behaves(Behaviour::AnswersWith(status, "Location", target.url("/")));
        let path = sent_test(&admin, &id).await;
        let log = becomes(&admin, &path, "lastStatus", status).await;
        let error = text(&log["lastError"]);
        assert!(error.contains("redirects are not followed"), "{error}");
    }
    assert!(target.received().is_empty());
}

#[tokio::test]
async fn a_receiver_that_floods_trickles_or_closes_is_ended() {
    let app = start_here().await;
    let admin = app.admin();
    let receiver = Receiver::start().await;
    receiver.behaves(Behaviour::Floods);
    let (id, _) = webhook_to(&admin, &receiver).await;
    let log = becomes(&admin, &sent_test(&admin, &id).await, "lastStatus", 500).await;
    let kept = text(&log["log"][0]["answer"]);
    assert_eq!((kept.len(), kept.trim_matches('x')), (4_096, ""));
    receiver.behaves(Behaviour::Closes);
    let path = sent_test(&admin, &id).await;
    let log = becomes(&admin, &path, "attempts", 1).await;
    assert!(text(&log["lastError"]).contains("no answer"), "{log}");
    receiver.behaves(Behaviour::Trickles);
    let path = sent_test(&admin, &id).await;
    let log = becomes(&admin, &path, "attempts", 1).await;
    assert!(text(&log["lastError"]).contains("no answer"), "{log}");
    assert!(log["log"][0]["durationMs"].as_u64().unwrap() < 16_000, "{log}");
}

#[tokio::test]
async fn a_receiver_that_hangs_holds_up_no_other() {
    let app = start_here().await;
    let (slow, quick) = (Receiver::start().await, Receiver::start().await);
    slow.behaves(Behaviour::Hangs);
    let admin = app.admin();
    let (hanging, _) = webhook_to(&admin, &slow).await;
    let (other, _) = webhook_to(&admin, &quick).await;
    for _ in 0..40 {
        sent_test(&admin, &hanging).await;
    }
    slow.has(4).await;
    let begun = Instant::now();
    for _ in 0..20 {
        sent_test(&admin, &other).await;
    }
    quick.has(20).await;
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    assert!(slow.received().len() <= 8, "a quarter of the slots: {}", slow.received().len());
}

#[tokio::test]
async fn a_delivery_can_be_sent_again_by_hand() {
    let app = start_here().await;
    let receiver = Receiver::start().await;
    let admin = app.admin();
    let (id, _) = webhook_to(&admin, &receiver).await;
    let path = sent_test(&admin, &id).await;
    becomes(&admin, &path, "state", "delivered").await;
    let again = admin.post(&format!("{path}/redeliver"), &json!({})).await.expect(202);
    assert_eq!(again["id"], json!(path.rsplit('/').next().unwrap()));
    let received = receiver.has(2).await;
    assert_eq!(received[0].id(), received[1].id());
    becomes(&admin, &path, "attempts", 2).await;
    // One that waits for its next attempt is tried now.
    receiver.behaves(Behaviour::AnswersWith(503, "Retry-After", "3000".to_owned()));
    let path = sent_test(&admin, &id).await;
    becomes(&admin, &path, "attempts", 1).await;
    receiver.behaves(Behaviour::Answers(200, String::new()));
    admin.post(&format!("{path}/redeliver"), &json!({})).await.expect(202);
    becomes(&admin, &path, "state", "delivered").await;
    let deliveries = format!("/api/webhooks/{id}/deliveries");
    let page = admin
        .get(&format!("{deliveries}?state=delivered&kind=webhook.test&limit=1"))
        .await
        .expect(200);
    assert_eq!(page["deliveries"].as_array().unwrap().len(), 1);
    let next = text(&page["next"]);
    let rest = admin.get(&format!("{deliveries}?after={next}")).await.expect(200);
    assert_eq!((rest["deliveries"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
}

#[tokio::test]
async fn nothing_is_sent_while_its_attempt_could_not_be_recorded() {
    let (disk, redis) = (SmallDisk::mount(16).await, Redis::start().await);
    let database = format!("sqlite:{}", disk.path().join("stampede.db").display());
    let settings = [
        HERE,
        ("WORKER_COUNT", "1"),
        ("DATABASE_URL", database.as_str()),
        ("REDIS_URL", &redis.url()),
    ];
    let app = App::start_on(&disk, STAMPEDE, &settings).await;
    let (receiver, admin) = (Receiver::start().await, app.admin());
    receiver.behaves(Behaviour::Answers(500, String::new()));
    let (id, _) = webhook_to(&admin, &receiver).await;
    let path = sent_test(&admin, &id).await;
    becomes(&admin, &path, "attempts", 1).await;
    disk.fill();
    receiver.behaves(Behaviour::Answers(204, String::new()));
    // The second attempt is due within eight seconds; it is tried several times.
    let waits = eventually(PATIENCE, || async {
        let job = format!("bull:webhooks:{}", path.rsplit('/').next().unwrap_or_default());
        let started: u32 = redis.cli(&["HGET", &job, "ats"]).trim().parse().unwrap_or(0);
        if started >= 4 { Ok(()) } else { Err(format!("started {started} times")) }
    });
    waits.await;
    assert_eq!(receiver.received().len(), 1, "nothing was sent that nobody can count");
    assert!(app.log().contains("webhooks wait"), "{}", app.log());
    disk.make_room();
    becomes(&admin, &path, "state", "delivered").await;
    let log = admin.get(&path).await.expect(200);
    assert_eq!((&log["attempts"], receiver.received().len()), (&json!(2), 2), "{log}");
}
