//! Campaigns that pause by themselves: who is told, and why. Receipts count, too.

use std::time::Duration;

use serde_json::{Value, json};
use stampede_testkit::{ADMIN_KEY, Receiver, eventually};

use super::hooks::{SECRET, receipt};
use super::{HERE, large_campaign, ledger, organiser, until, verb};
use crate::live::{next, reader};
use crate::{PATIENCE, start, text};

#[tokio::test]
async fn receipts_of_addresses_that_do_not_exist_pause_the_campaign_and_everybody_is_told_why() {
    let receiver = Receiver::start().await;
    let app = start(&[HERE, ("WORKER_COUNT", "1")]).await;
    let (ann, admin) = (organiser(&app, "ann"), app.admin());
    let account = json!({
        "id": "hook", "channel": "webhook", "settings": { "url": receiver.url("/send") },
        "credentials": { "secret": SECRET },
        "pacing": { "limit": { "max": 1_000, "perMs": 1_000 } },
    });
    ann.post("/api/accounts", &account).await.expect(201);
    let path = large_campaign(&ann, "hook", 100).await;
    // The others wait for hours: it runs while the receipts come.
    let pacing = json!({ "pacing": { "limit": { "max": 60, "perMs": 86_400_000 } } });
    ann.patch(&path, &pacing).await.expect(200);
    let kinds = "kinds=alert,campaign.changed&after=0";
    let stream = format!("/api/events/stream?{kinds}");
    let mut stream = reader(&app, ADMIN_KEY).stream(&stream, None).await.unwrap();
    verb(&ann, &path, "start").await.expect(200);
    until(&ann, &path, |contract| contract["counts"]["sent"] == 60).await;

    let sent = ledger(&ann, &path).await;
    let sent = sent.iter().filter(|row| row["status"] == "sent").map(|row| text(&row["id"]));
    let sent: Vec<String> = sent.collect();
    // The first ones say that the message did not arrive; only the others, that there is no such address.
    for (number, id) in sent[..5].iter().enumerate() {
        let code = if number == 0 { "handset_off" } else { "bounce" };
        let failed = json!({ "id": id, "status": "failed", "code": code });
        let taken = receipt(&app, "/hooks/webhook/hook", id, &failed, SECRET).await.expect(200);
        assert_eq!(taken["applied"], 1, "{taken}");
    }
    let paused = until(&ann, &path, |contract| contract["status"] == "paused").await;
    let reason = text(&paused["statusReason"]);
    assert_eq!(reason, "4 addresses that do not exist among the last 60 attempts");
    let row = ann.get(&format!("{path}/recipients/{}", sent[1])).await.expect(200);
    let log: Vec<&Value> = row["log"].as_array().unwrap().iter().map(|it| &it["outcome"]).collect();
    assert_eq!(log, ["sent", "bounced_later"], "{row}");

    let alert = eventually(PATIENCE, || async {
        let cluster = admin.try_get("/api/cluster").await?.body;
        let alerts = cluster["alerts"].as_array().cloned().unwrap_or_default();
        let paused = alerts.into_iter().find(|alert| alert["kind"] == "campaign-paused");
        paused.ok_or_else(|| cluster.to_string())
    })
    .await;
    assert_eq!(alert["subject"], paused["id"], "{alert}");
    assert!(text(&alert["message"]).ends_with(&reason), "{alert}");
    let (mut changed, mut alerted) = (Value::Null, Value::Null);
    let both = async {
        while changed.is_null() || alerted.is_null() {
            let event: Value = match next(&mut stream).await {
                Some(message) => serde_json::from_str(&message.data).unwrap_or_default(),
                None => panic!("the stream has ended: {changed} {alerted}"),
            };
            match event["kind"].as_str() {
                Some("campaign.changed") if event["data"]["status"] == "paused" => changed = event,
                Some("alert") if event["data"]["alert"] == "campaign-paused" => alerted = event,
                _ => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), both).await.expect("both are told");
    assert_eq!(changed["data"]["statusReason"], json!(reason), "{changed}");
    assert_eq!(alerted["data"]["subject"], paused["id"], "{alerted}");
}
