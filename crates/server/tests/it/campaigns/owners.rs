//! Whose campaigns and accounts are whose.

use serde_json::json;

use super::{campaign, fast_account, organiser, text, verb};
use crate::access::client;
use crate::start;

#[tokio::test]
async fn records_of_others_are_as_if_they_did_not_exist() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (ann, bob) = (organiser(&app, "ann"), organiser(&app, "bob"));
    fast_account(&ann, "anns").await;
    let path = campaign(&ann, "anns", 2).await;
    let rows = ann.get(&format!("{path}/recipients")).await.expect(200);
    let row = format!("{path}/recipients/{}", text(&rows["recipients"][0]["id"]));
    for path in [path.clone(), format!("{path}/report"), format!("{path}/report.csv"), row.clone()]
    {
        bob.get(&path).await.expect(404);
        client(&app, "viewer", "ann").get(&path).await;
        assert_eq!(client(&app, "viewer", "*").get(&path).await.status, 200, "{path}");
    }
    for verb in ["start", "pause", "resume", "cancel", "validate", "preview", "retry-failed"] {
        bob.post(&format!("{path}/{verb}"), &json!({})).await.expect(404);
    }
    bob.patch(&path, &json!({ "name": "Mine" })).await.expect(404);
    bob.delete(&path).await.expect(404);
    bob.get("/api/accounts/anns").await.expect(404);
    bob.patch("/api/accounts/anns", &json!({ "name": "Mine" })).await.expect(404);
    bob.post("/api/accounts/anns/check", &json!({})).await.expect(404);
    let foreign = json!({ "accountId": "anns", "name": "B" });
    let problem = bob.post("/api/contracts", &foreign).await.expect(422);
    assert_eq!(super::fields(&problem), ["accountId"]);
    assert_eq!(bob.get("/api/contracts").await.expect(200)["contracts"], json!([]));
    // A recipient of another campaign is none of this one.
    let other = campaign(&ann, "anns", 1).await;
    let id = row.rsplit('/').next().unwrap();
    ann.get(&format!("{other}/recipients/{id}")).await.expect(404);
    let admin = app.admin();
    assert_eq!(admin.get(&path).await.expect(200)["owner"], "ann");
    // A viewer reads, and changes nothing.
    let viewer = client(&app, "viewer", "ann");
    viewer.get(&path).await.expect(200);
    viewer.post(&format!("{path}/validate"), &json!({})).await.expect(200);
    verb(&viewer, &path, "start").await.expect(403);
    client(&app, "scanner", "ann").get(&path).await.expect(403);
}

#[tokio::test]
async fn everybody_sends_with_the_console_and_only_administrators_change_it() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (ann, admin) = (organiser(&app, "ann"), app.admin());
    let console = ann.get("/api/accounts/console").await.expect(200);
    assert_eq!((&console["channel"], &console["owner"]), (&json!("console"), &json!(null)));
    let limit = json!({ "pacing": { "limit": { "max": 100, "perMs": 1_000 } } });
    ann.patch("/api/accounts/console", &limit).await.expect(403);
    let changed = admin.patch("/api/accounts/console", &limit).await.expect(200);
    assert_eq!(changed["pacing"]["limit"]["max"], 100, "{changed}");
    assert_eq!(admin.delete("/api/accounts/console").await.expect(409)["code"], "built_in");
    let checked = admin.post("/api/accounts/console/check", &json!({})).await.expect(200);
    assert_eq!(checked["ok"], true, "{checked}");
    let shared = json!({ "id": "shared", "channel": "console", "shared": true });
    admin.post("/api/accounts", &shared).await.expect(201);
    let list = ann.get("/api/accounts").await.expect(200);
    let ids: Vec<_> = list["accounts"].as_array().unwrap().iter().map(|a| text(&a["id"])).collect();
    assert_eq!(ids, ["console", "shared"]);
    campaign(&ann, "shared", 1).await;
}

#[tokio::test]
async fn a_suppressed_address_is_skipped_and_everybody_has_a_list_of_their_own() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (ann, bob) = (organiser(&app, "ann"), organiser(&app, "bob"));
    let stop =
        json!({ "addresses": ["+49 151 00000001", "+4915100000002"], "accountId": "console" });
    assert_eq!(ann.post("/api/suppressions", &stop).await.expect(200)["added"], 2);
    assert_eq!(ann.post("/api/suppressions", &stop).await.expect(200)["added"], 0, "twice is once");
    let list = ann.get("/api/suppressions?limit=1").await.expect(200);
    let first = &list["suppressions"][0];
    assert_eq!((&first["address"], &first["reason"]), (&json!("+4915100000001"), &json!("manual")));
    assert_eq!(first["by"], "ann");
    let next = text(&list["next"]);
    let next = url::form_urlencoded::byte_serialize(next.as_bytes()).collect::<String>();
    let rest = ann.get(&format!("/api/suppressions?limit=5&after={next}")).await.expect(200);
    assert_eq!(rest["suppressions"][0]["address"], "+4915100000002", "{rest}");
    assert_eq!(bob.get("/api/suppressions").await.expect(200)["suppressions"], json!([]));
    let body = json!({ "accountId": "console", "name": "N", "recipients": super::people(4) });
    let made = ann.post("/api/contracts", &body).await.expect(201);
    assert_eq!(
        (&made["recipients"]["added"], &made["recipients"]["suppressed"]),
        (&json!(2), &json!(2)),
        "{made}"
    );
    let made = bob.post("/api/contracts", &body).await.expect(201);
    assert_eq!(made["recipients"]["added"], 4, "bob's list is another one: {made}");
    let one = "/api/suppressions?address=%2B4915100000001&account=console";
    bob.delete(one).await.expect(404);
    ann.delete(one).await.expect(204);
    ann.delete(one).await.expect(404);
    let foreign = json!({ "addresses": ["+4915100000009"], "owner": "ann" });
    assert_eq!(
        super::fields(&bob.post("/api/suppressions", &foreign).await.expect(422)),
        ["owner"]
    );
    assert_eq!(app.admin().post("/api/suppressions", &foreign).await.expect(200)["added"], 1);
}
