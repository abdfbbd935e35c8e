//! What happens while a campaign sends: its account is deleted, the database is away, the provider answers twice.
//!
//! `STAMPEDE_OUTAGE_SECONDS` is the time for which the database is away (10): half of it stopped, half of it frozen.

use std::time::Duration;

use serde_json::json;
use stampede_testkit::{Postgres, Provider, Reply};
use tokio::time::sleep;

use super::recorder::{Recorder, limited};
use super::{
    HERE, TICKET_SECRET, completed, large_campaign, ledger, number, organiser, size, text, until,
    verb,
};
use crate::start;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_sends_is_not_deleted_and_messages_in_flight_outlive_it() {
    let recorder = Recorder::start(2 * SECOND).await;
    let app = start(&[HERE, ("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    recorder.account(&ann, "hook", 10, SECOND).await;
    let path = large_campaign(&ann, "hook", 40).await;
    verb(&ann, &path, "start").await.expect(200);
    recorder.has(5).await;
    let refused = ann.delete("/api/accounts/hook").await.expect(409);
    assert_eq!(refused["code"], "in_use", "{refused}");
    // Whose campaign is cancelled is in no use, though its last messages are in flight.
    let cancelled = verb(&ann, &path, "cancel").await.expect(200);
    assert!(number(&cancelled, "sending") > 0, "{cancelled}");
    ann.delete("/api/accounts/hook").await.expect(204);
    ann.get("/api/accounts/hook").await.expect(404);
    let ended = until(&ann, &path, |contract| {
        ["pending", "queued", "sending"].iter().all(|state| number(contract, state) == 0)
    })
    .await;
    let (sent, unknown) = recorder.assert_agrees(&ann, &path).await;
    assert!(sent >= 5 && unknown == 0, "{ended}");
    assert_eq!(sent + number(&ended, "skipped"), 40, "{ended}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_delays_messages_and_doubles_none() {
    let away = Duration::from_secs(size("STAMPEDE_OUTAGE_SECONDS", 10) as u64) / 2;
    let messages = 300;
    let recorder = Recorder::start(Duration::from_millis(30)).await;
    let mut postgres = Postgres::start().await;
    let database = postgres.url();
    let app =
        start(&[HERE, ("WORKER_COUNT", "2"), ("DATABASE_URL", &database), TICKET_SECRET]).await;
    let ann = organiser(&app, "ann");
    recorder.account(&ann, "hook", 50, SECOND).await;
    let path = large_campaign(&ann, "hook", messages).await;
    verb(&ann, &path, "start").await.expect(200);
    // Nobody answers: connections are refused.
    recorder.has(messages / 3).await;
    postgres.stop().await;
    sleep(away).await;
    postgres.start_again().await;
    // Nobody answers: commits that were under way may have arrived, and they may not.
    recorder.has(messages * 2 / 3).await;
    postgres.freeze();
    sleep(away).await;
    postgres.thaw();
    completed(&ann, &path).await;
    // No process has died: what a worker knows, it tells when the database is back.
    assert_eq!(recorder.assert_agrees(&ann, &path).await, (messages as u64, 0));
    let (healthy, report) = app.command(&["doctor"]);
    assert!(healthy, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_answer_is_not_taken_for_that_of_the_next_message() {
    let provider = Provider::start(|asked| {
        let own = format!("of-{}", asked.header("webhook-id"));
        Reply::Twice(200, json!({ "id": own }), json!({ "id": "of-nobody" }))
    })
    .await;
    let app = start(&[HERE, ("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    let account = json!({
        "id": "hook", "channel": "webhook", "settings": { "url": provider.url() },
        "credentials": { "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" },
        // One after the other: each could use the connection of the last one.
        "pacing": { "limit": limited(1_000, SECOND)["limit"], "spacing": { "minMs": 50, "maxMs": 50 } },
    });
    ann.post("/api/accounts", &account).await.expect(201);
    let path = large_campaign(&ann, "hook", 20).await;
    verb(&ann, &path, "start").await.expect(200);
    let ended = completed(&ann, &path).await;
    assert_eq!(number(&ended, "sent"), 20, "{ended}");
    assert_eq!(provider.asked().len(), 20, "each message came once");
    for row in ledger(&ann, &path).await {
        assert_eq!(row["providerId"], json!(format!("of-{}", text(&row["id"]))), "{row}");
    }
}
