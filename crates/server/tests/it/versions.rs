//! `ETag`, `If-Match` and `If-None-Match` of everything that can be edited, on both databases.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{Answer, Client, Postgres, send};

use crate::{start, text};

/// An edit of a webhook.
fn described(n: u32) -> Value {
    json!({ "description": format!("Description {n}") })
}

/// A record that can be edited.
struct Edited {
    path: String,
    /// The method of an edit, and its body with a number in it.
    edit: (Method, fn(u32) -> Value),
}

async fn records(admin: &Client) -> Vec<Edited> {
    let event = admin.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let event = text(&event["id"]);
    let order = json!({ "target": event, "name": "Guest", "quantity": 2 });
    let order = admin.post("/api/tickets", &order).await.expect(200);
    let name = json!({ "name": "North" });
    let list = admin.post(&format!("/api/events/{event}/lists"), &name).await.expect(201);
    let gate = admin.post(&format!("/api/events/{event}/gates"), &name).await.expect(201);
    let key = json!({ "name": "Box office", "role": "organiser", "user": "ann" });
    let key = admin.post("/api/keys", &key).await.expect(201);
    let blocked = format!("/api/tickets/{}/block", text(&order["tickets"][1]));
    admin.put(&blocked, &json!({})).await.expect(200);
    let limit = json!({ "max": 5, "perMs": 1000 });
    admin.put("/api/limits/sms", &limit).await.expect(200);
    let schedule = json!({ "name": "send", "everyMs": 3_600_000 });
    admin.put("/api/queues/mails/schedules/daily", &schedule).await.expect(200);
    let template = json!({ "name": "Mine", "design": "stub" });
    let template = admin.post("/api/templates", &template).await.expect(201);
    let webhook = admin.post("/api/webhooks", &json!({ "url": "https://example.com/" })).await;
    let webhook = webhook.expect(201);
    let named: fn(u32) -> Value = |n| json!({ "name": format!("Name {n}") });
    let of = |path: String, method: Method, body: fn(u32) -> Value| Edited {
        path,
        edit: (method, body),
    };
    vec![
        of(format!("/api/events/{event}"), Method::PATCH, named),
        of(format!("/api/tickets/{}", text(&order["tickets"][0])), Method::PATCH, named),
        of(format!("/api/lists/{}", text(&list["id"])), Method::PATCH, named),
        of(format!("/api/gates/{}", text(&gate["id"])), Method::PATCH, named),
        of(format!("/api/keys/{}", text(&key["id"])), Method::PATCH, named),
        of(blocked, Method::PUT, |n| json!({ "reason": format!("Reason {n}") })),
        of("/api/limits/sms".into(), Method::PUT, |n| json!({ "max": 10 + n, "perMs": 1000 })),
        of(
            "/api/queues/mails/schedules/daily".into(),
            Method::PUT,
            |n| json!({ "name": "send", "everyMs": 3_600_000 + n }),
        ),
        of(format!("/api/webhooks/{}", text(&webhook["id"])), Method::PATCH, described),
        of(format!("/api/templates/{}", text(&template["id"])), Method::PUT, |n| {
            let page = format!("// {n}\n#set page(width: 100mm, height: 60mm)\nTicket");
            json!({ "files": { "template.typ": page } })
        }),
    ]
}

fn etag(answer: &Answer) -> String {
    let tag = answer.headers.get("etag").unwrap_or_else(|| panic!("no ETag: {}", answer.body));
    tag.to_str().unwrap().to_owned()
}

impl Edited {
    async fn change(&self, admin: &Client, n: u32, wanted: Option<&str>) -> Answer {
        let (method, body) = &self.edit;
        let request = admin.request(method.clone(), &self.path).json(&body(n));
        send(wanted.iter().fold(request, |request, tag| request.header("If-Match", *tag))).await
    }

    async fn read(&self, admin: &Client, known: Option<&str>) -> Answer {
        let request = admin.request(Method::GET, &self.path);
        send(known.iter().fold(request, |request, tag| request.header("If-None-Match", *tag))).await
    }

    async fn delete(&self, admin: &Client, wanted: &str) -> Answer {
        send(admin.request(Method::DELETE, &self.path).header("If-Match", wanted)).await
    }
}

async fn an_edit_of_an_older_version_is_refused(settings: &[(&str, &str)]) {
    let app = start(settings).await;
    let admin = app.admin();
    for record in records(&admin).await {
        let path = &record.path;
        let read = record.read(&admin, None).await;
        assert_eq!(read.status, 200, "{path}");
        let first = etag(&read);
        let known = record.read(&admin, Some(&first)).await;
        assert_eq!(
            (known.status, known.bytes.len(), etag(&known)),
            (304, 0, first.clone()),
            "{path}"
        );

        let changed = record.change(&admin, 1, Some(&first)).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.body);
        let second = etag(&changed);
        assert_ne!(first, second, "{path}");
        assert_eq!(record.read(&admin, Some(&first)).await.status, 200, "{path}");
        let problem = record.change(&admin, 2, Some(&first)).await.expect(412);
        assert_eq!(problem["code"], "precondition_failed", "{path}");
        let told = text(&problem["etag"]);
        assert!(text(&problem["detail"]).contains(&told), "{path}: {problem}");
        // What the answer says is what to send.
        let changed = record.change(&admin, 3, Some(&told)).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.body);
        assert_eq!(record.change(&admin, 4, Some("*")).await.status, 200, "{path}");
        assert_eq!(record.change(&admin, 5, None).await.status, 200, "{path}");
        // Compressed answers have weak tags.
        let weak = format!("W/{}", etag(&record.read(&admin, None).await));
        assert_eq!(record.change(&admin, 6, Some(&weak)).await.status, 200, "{path}");

        assert_eq!(record.delete(&admin, &second).await.status, 412, "{path}");
        assert_eq!(record.read(&admin, None).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn an_edit_of_an_older_version_is_refused_on_sqlite() {
    an_edit_of_an_older_version_is_refused(&[("WORKER_MODE", "api")]).await;
}

#[tokio::test]
async fn an_edit_of_an_older_version_is_refused_on_postgres() {
    let postgres = Postgres::start().await;
    let url = postgres.url();
    let secret = ("TICKET_KEY_SECRET", "the-ticket-secret-of-these-tests-.long-enough");
    let settings = [("WORKER_MODE", "api"), secret, ("DATABASE_URL", url.as_str())];
    an_edit_of_an_older_version_is_refused(&settings).await;
}

async fn one_of_concurrent_edits_wins(settings: &[(&str, &str)]) {
    let app = start(settings).await;
    let admin = app.admin();
    for record in records(&admin).await {
        let first = etag(&record.read(&admin, None).await);
        let edits = (0..8).map(|n| {
            let (client, record, first) = (admin.separate(), &record, &first);
            async move { record.change(&client, 20 + n, Some(first)).await.status }
        });
        let statuses = futures::future::join_all(edits).await;
        let won = statuses.iter().filter(|status| **status == 200).count();
        let lost = statuses.iter().filter(|status| **status == 412).count();
        assert_eq!((won, lost), (1, 7), "{}: {statuses:?}", record.path);
    }
    // The same with deletions.
    for record in records_to_delete(&admin).await {
        let first = etag(&record.read(&admin, None).await);
        let deletions = (0..4).map(|_| {
            let (client, record, first) = (admin.separate(), &record, &first);
            async move { record.delete(&client, first).await.status }
        });
        let statuses = futures::future::join_all(deletions).await;
        assert!(statuses.contains(&204), "{}: {statuses:?}", record.path);
        assert!(
            statuses.iter().all(|status| [204, 404, 412].contains(status)),
            "{}: {statuses:?}",
            record.path
        );
    }
}

/// Other records than those that were edited, but for those that have a fixed name.
async fn records_to_delete(admin: &Client) -> Vec<Edited> {
    let event = admin.post("/api/events", &json!({ "name": "Other" })).await.expect(201);
    let gates = format!("/api/events/{}/gates", text(&event["id"]));
    let gate = admin.post(&gates, &json!({ "name": "North" })).await.expect(201);
    let named: fn(u32) -> Value = |n| json!({ "name": format!("Name {n}") });
    let webhook = admin.post("/api/webhooks", &json!({ "url": "https://example.com/" })).await;
    let webhook = text(&webhook.expect(201)["id"]);
    let others = [
        format!("/api/gates/{}", text(&gate["id"])),
        format!("/api/events/{}", text(&event["id"])),
    ]
    .into_iter()
    .map(|path| Edited { path, edit: (Method::PATCH, named) });
    let webhook =
        Edited { path: format!("/api/webhooks/{webhook}"), edit: (Method::PATCH, described) };
    others.chain([webhook]).collect()
}

#[tokio::test]
async fn one_of_concurrent_edits_wins_on_sqlite() {
    one_of_concurrent_edits_wins(&[("WORKER_MODE", "api")]).await;
}

#[tokio::test]
async fn one_of_concurrent_edits_wins_on_postgres() {
    let postgres = Postgres::start().await;
    let url = postgres.url();
    let secret = ("TICKET_KEY_SECRET", "the-ticket-secret-of-these-tests-.long-enough");
    let settings = [("WORKER_MODE", "api"), secret, ("DATABASE_URL", url.as_str())];
    one_of_concurrent_edits_wins(&settings).await;
}

#[tokio::test]
async fn the_use_of_a_key_changes_its_etag_but_not_the_version_that_can_be_edited() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let key = json!({ "name": "Door", "role": "viewer", "user": "ann" });
    let key = admin.post("/api/keys", &key).await.expect(201);
    let path = format!("/api/keys/{}", text(&key["id"]));
    let before = etag(&admin.get(&path).await);
    app.client(&text(&key["secret"])).get("/api/events").await.expect(200);
    let used = stampede_testkit::eventually(crate::PATIENCE, || async {
        let answer = admin.get(&path).await;
        match answer.body["lastUsedAt"].is_string() {
            true => Ok(answer),
            false => Err("the use is not written yet".to_owned()),
        }
    });
    assert_ne!(etag(&used.await), before);
    let known = send(admin.request(Method::GET, &path).header("If-None-Match", &before)).await;
    assert_eq!(known.status, 200, "the client does not have its last use");
    let edit = admin.request(Method::PATCH, &path).json(&json!({ "name": "Other door" }));
    assert_eq!(send(edit.header("If-Match", &before)).await.status, 200);
}

#[tokio::test]
async fn a_record_that_does_not_exist_is_not_made_by_a_change_of_it() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let body = json!({ "max": 1, "perMs": 1000 });
    for wanted in ["*", "\"abc\""] {
        let request = admin.request(Method::PUT, "/api/limits/none").json(&body);
        let problem = send(request.header("If-Match", wanted)).await.expect(412);
        assert_eq!(problem["code"], "precondition_failed");
    }
    admin.get("/api/limits/none").await.expect(404);
    admin.put("/api/limits/none", &body).await.expect(200);
}
