//! Start, pause, resume, cancel; what is refused in which state; unknown recipients.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::send;

use super::{campaign, completed, fast_account, organiser, text, until, verb};
use crate::start;

/// 409 with the state.
fn assert_refused(problem: &Value, state: &str) {
    assert_eq!(problem["code"], "campaign_state", "{problem}");
    assert_eq!(problem["state"], state, "{problem}");
}

#[tokio::test]
async fn a_pause_lets_nothing_out_and_a_resumed_campaign_goes_on_where_it_was() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    let slow = json!({ "id": "slow", "channel": "console", "pacing": { "limit": { "max": 5, "perMs": 3_600_000 } } });
    ann.post("/api/accounts", &slow).await.expect(201);
    let path = campaign(&ann, "slow", 30).await;
    verb(&ann, &path, "start").await.expect(200);
    until(&ann, &path, |contract| contract["counts"]["sent"] == 5).await;
    assert_eq!(verb(&ann, &path, "start").await.expect(200)["status"], "running", "twice is once");
    let paused = verb(&ann, &path, "pause").await.expect(200);
    assert_eq!((&paused["status"], &paused["inFlight"]), (&json!("paused"), &json!(0)), "{paused}");
    assert_eq!(paused["counts"]["queued"], 0, "{paused}");
    let limit = json!({ "pacing": { "limit": { "max": 100_000, "perMs": 1_000 } } });
    ann.patch("/api/accounts/slow", &limit).await.expect(200);
    let still = ann.get(&path).await.expect(200);
    assert_eq!((&still["status"], &still["counts"]["sent"]), (&json!("paused"), &json!(5)));
    // A list may grow while it is paused.
    let more = "{\"phoneNumber\":\"+4915200000001\",\"message\":\"late\"}\n";
    let recipients = format!("{path}/recipients");
    super::upload(&ann, &recipients, "application/x-ndjson", more).await.expect(200);
    verb(&ann, &path, "resume").await.expect(200);
    let ended = completed(&ann, &path).await;
    assert_eq!((&ended["counts"]["sent"], &ended["counts"]["total"]), (&json!(31), &json!(31)));
    let log = app.log();
    for n in 0..30 {
        let times = log.matches(&format!("\"Hello {n}\"")).count()
            + log.matches(&format!("text=Hello {n} ")).count();
        assert!(times <= 1, "message {n} was sent {times} times");
    }
    for (wrong, body) in [("pause", json!({})), ("resume", json!({})), ("cancel", json!({}))] {
        let problem = ann.post(&format!("{path}/{wrong}"), &body).await.expect(409);
        assert_refused(&problem, "completed");
    }
    let late = super::upload(&ann, &recipients, "application/x-ndjson", more).await.expect(409);
    assert_refused(&late, "completed");
}

#[tokio::test]
async fn a_cancelled_campaign_skips_what_is_left_and_does_not_start_again() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    let path = campaign(&ann, "console", 25).await;
    verb(&ann, &path, "start").await.expect(200);
    until(&ann, &path, |contract| contract["counts"]["sent"] == 20).await;
    let content = json!({ "content": { "text": "Other" } });
    assert_refused(&ann.patch(&path, &content).await.expect(409), "running");
    ann.patch(&path, &json!({ "name": "Renamed" })).await.expect(200);
    let cancelled = verb(&ann, &path, "cancel").await.expect(200);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    let ended = until(&ann, &path, |contract| contract["counts"]["skipped"] == 5).await;
    assert_eq!(ended["counts"]["sent"], 20, "{ended}");
    for wrong in ["start", "pause", "resume"] {
        assert_refused(&verb(&ann, &path, wrong).await.expect(409), "cancelled");
    }
    ann.delete(&path).await.expect(204);
    ann.get(&path).await.expect(404);
}

#[tokio::test]
async fn a_campaign_without_recipients_or_content_says_why_it_cannot_start_and_a_later_one_waits() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    let empty = json!({ "accountId": "console", "name": "Empty" });
    let empty = ann.post("/api/contracts", &empty).await.expect(201);
    let path = format!("/api/contracts/{}", text(&empty["id"]));
    let problem = verb(&ann, &path, "start").await.expect(409);
    assert_eq!(problem["code"], "campaign_not_ready", "{problem}");
    assert!(!problem["problems"].as_array().unwrap().is_empty(), "{problem}");
    assert_eq!(ann.get(&path).await.expect(200)["status"], "draft");

    fast_account(&ann, "fast").await;
    let path = campaign(&ann, "fast", 3).await;
    let at = json!({ "startAt": "2099-01-01T00:00:00Z" });
    let later = ann.post(&format!("{path}/start"), &at).await.expect(200);
    assert_eq!((&later["status"], &later["counts"]["pending"]), (&json!("scheduled"), &json!(3)));
    assert_eq!(later["startAt"], "2099-01-01T00:00:00Z");
    let draft = verb(&ann, &path, "pause").await.expect(200);
    assert_eq!(draft["status"], "draft", "{draft}");
    verb(&ann, &path, "start").await.expect(200);
    assert_eq!(completed(&ann, &path).await["counts"]["sent"], 3);
}

#[tokio::test]
async fn what_nobody_knows_is_settled_by_people() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    let fast = json!({ "limit": { "max": 100_000, "perMs": 1_000 } });
    // Nobody knows of any message whether it arrived.
    let account = json!({ "id": "dark", "channel": "console", "pacing": fast, "settings": { "unknown": 1.0 } });
    ann.post("/api/accounts", &account).await.expect(201);
    let path = campaign(&ann, "dark", 3).await;
    verb(&ann, &path, "start").await.expect(200);
    let ended = completed(&ann, &path).await;
    assert_eq!(
        (&ended["counts"]["unknown"], &ended["counts"]["sent"]),
        (&json!(3), &json!(0)),
        "{ended}"
    );
    let rows = ann.get(&format!("{path}/recipients?state=unknown")).await.expect(200);
    let ids: Vec<&Value> =
        rows["recipients"].as_array().unwrap().iter().map(|r| &r["id"]).collect();
    let unknown = format!("{path}/unknown");
    for (body, told) in [
        (json!({ "action": "resend" }), "ids is missing"),
        (json!({ "all": true }), "action is missing"),
        (json!({ "action": "guess", "all": true }), "must be resend, sent or failed"),
        (json!({ "action": "sent", "ids": [ids[0]], "all": true }), "together with ids"),
        (json!({ "action": "sent", "ids": ["x", 7] }), "ids[0] must be the id of a recipient"),
    ] {
        let problem = ann.post(&unknown, &body).await.expect(422);
        assert!(text(&problem["detail"]).contains(told), "{body}: {problem}");
    }
    let sent = json!({ "action": "sent", "ids": [ids[0]] });
    assert_eq!(ann.post(&unknown, &sent).await.expect(200)["recipients"], 1);
    assert_eq!(ann.post(&unknown, &sent).await.expect(200)["recipients"], 0, "twice is once");
    let failed = json!({ "action": "failed", "ids": [ids[1]] });
    assert_eq!(ann.post(&unknown, &failed).await.expect(200)["recipients"], 1);
    ann.patch("/api/accounts/dark", &json!({ "settings": { "unknown": null } })).await.expect(200);
    let resend = json!({ "action": "resend", "all": true });
    assert_eq!(ann.post(&unknown, &resend).await.expect(200)["recipients"], 1);
    let open = ann.get(&path).await.expect(200);
    assert_eq!(
        (&open["status"], &open["counts"]["pending"]),
        (&json!("paused"), &json!(1)),
        "{open}"
    );
    let retried = verb(&ann, &path, "retry-failed").await.expect(200);
    assert_eq!(retried["recipients"], 1, "{retried}");
    verb(&ann, &path, "resume").await.expect(200);
    assert_eq!(completed(&ann, &path).await["counts"]["sent"], 3);
}

#[tokio::test]
async fn a_version_guards_changes_and_a_repeated_request_is_carried_out_once() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = organiser(&app, "ann");
    let body = json!({ "accountId": "console", "name": "Once", "recipients": super::people(2) });
    let create = || {
        let request =
            ann.request(Method::POST, "/api/contracts").header("idempotency-key", "once-1");
        send(request.json(&body))
    };
    let (first, again) = (create().await, create().await);
    assert_eq!(again.headers["idempotency-replayed"], "true");
    let (first, again) = (first.expect(201), again.expect(201));
    assert_eq!(first["id"], again["id"]);
    let list = ann.get("/api/contracts").await.expect(200);
    assert_eq!(list["contracts"].as_array().unwrap().len(), 1);

    let path = format!("/api/contracts/{}", text(&first["id"]));
    for path in [path.clone(), "/api/accounts/mine".to_owned()] {
        if path.ends_with("mine") {
            ann.post("/api/accounts", &json!({ "id": "mine", "channel": "console" }))
                .await
                .expect(201);
        }
        let tag = ann.get(&path).await.headers["etag"].to_str().unwrap().to_owned();
        let known = ann.request(Method::GET, &path).header("if-none-match", &tag);
        assert_eq!(send(known).await.status, 304);
        let patch = |tag: String| {
            let request = ann.request(Method::PATCH, &path).header("if-match", tag);
            send(request.json(&json!({ "name": "Changed" })))
        };
        patch(tag.clone()).await.expect(200);
        let refused = patch(tag).await.expect(412);
        assert_eq!(refused["code"], "precondition_failed", "{refused}");
    }
}

#[tokio::test]
async fn a_campaign_is_made_and_scheduled_in_one_request_or_not_made() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    fast_account(&ann, "fast").await;
    let later = "2099-01-01T06:00:00Z";
    let mut body = json!({
        "accountId": "fast", "name": "Later", "startAt": later, "endAt": "2099-01-02T06:00:00Z",
    });
    let refused = ann.post("/api/contracts", &body).await.expect(409);
    assert_eq!(refused["code"], "campaign_not_ready", "{refused}");
    assert!(text(&refused["problems"][0]).contains("no recipient"), "{refused}");
    assert_eq!(ann.get("/api/contracts").await.expect(200)["contracts"], json!([]));

    body["recipients"] = json!(super::people(2));
    let made = ann.post("/api/contracts", &body).await.expect(201);
    assert_eq!(
        (&made["status"], &made["startAt"], &made["recipients"]["added"]),
        (&json!("scheduled"), &json!(later), &json!(2)),
        "{made}"
    );
    body["endAt"] = json!(later);
    let problem = ann.post("/api/contracts", &body).await.expect(422);
    assert_eq!(super::fields(&problem), ["endAt"], "{problem}");
    // A time that is over is now.
    body["endAt"] = json!(null);
    body["startAt"] = json!("2020-01-01T06:00:00Z");
    let made = ann.post("/api/contracts", &body).await.expect(201);
    let ended = completed(&ann, &format!("/api/contracts/{}", text(&made["id"]))).await;
    assert_eq!(ended["counts"]["sent"], 2, "{ended}");
}
