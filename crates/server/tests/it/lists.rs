//! Lists: the same parameters everywhere; cursors show each record once, though others come and go.

use serde_json::{Value, json};
use stampede_testkit::Client;

use crate::{start, text};

/// All records of a list, page by page; `meanwhile` runs after each page.
async fn paged(client: &Client, path: &str, field: &str, meanwhile: impl AsyncFn()) -> Vec<Value> {
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let sign = if path.contains('?') { '&' } else { '?' };
        let page = client.get(&format!("{path}{sign}limit=2&after={after}")).await.expect(200);
        let records = page[field].as_array().unwrap_or_else(|| panic!("{path}: {page}"));
        assert!(records.len() <= 2, "{path}: {page}");
        seen.extend(records.iter().cloned());
        meanwhile().await;
        match &page["next"] {
            Value::Null => return seen,
            Value::String(next) => after = next.clone(),
            next => after = next.to_string(),
        }
    }
}

#[tokio::test]
async fn cursors_show_each_record_once_though_others_come_and_go() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let event = admin.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let of_event = |what: &str| format!("/api/events/{}/{what}", event["id"].as_str().unwrap());
    for n in 0..5 {
        let name = json!({ "name": format!("Name {n}") });
        for path in ["gates", "lists", "devices"] {
            admin.post(&of_event(path), &name).await.expect(201);
        }
        admin.post("/api/events", &name).await.expect(201);
        admin
            .post("/api/keys", &json!({ "name": format!("Key {n}"), "role": "viewer" }))
            .await
            .expect(201);
        admin.put(&format!("/api/limits/l{n}"), &json!({ "max": 1, "perMs": 1 })).await.expect(200);
        let url = format!("https://example.com/{n}");
        admin.post("/api/webhooks", &json!({ "url": url })).await.expect(201);
        let contract = json!({ "accountId": "console", "name": format!("News {n}") });
        admin.post("/api/contracts", &contract).await.expect(201);
        admin.post("/api/accounts", &json!({ "channel": "console" })).await.expect(201);
        let one = json!({ "target": event["id"], "name": "Guest" });
        admin.post("/api/tickets", &one).await.expect(200);
        let schedule = json!({ "name": "send", "everyMs": 3_600_000 + n });
        admin.put(&format!("/api/queues/mails/schedules/s{n}"), &schedule).await.expect(200);
    }
    let order = json!({ "target": event["id"], "name": "Guest", "quantity": 5 });
    admin.post("/api/tickets", &order).await.expect(200);
    let another = async |path: &str| {
        let name = json!({ "name": format!("Meanwhile {}", rand_text()) });
        match path {
            "/api/events" => drop(admin.post(path, &name).await.expect(201)),
            "/api/tickets" | "/api/batches" => {
                let one = json!({ "target": event["id"], "name": "Guest" });
                admin.post("/api/tickets", &one).await.expect(200);
            }
            "/api/limits" => {
                let limit = json!({ "max": 1, "perMs": 1 });
                admin.put(&format!("/api/limits/a{}", rand_text()), &limit).await.expect(200);
            }
            "/api/contracts" => {
                let one = json!({ "accountId": "console", "name": "News" });
                admin.post(path, &one).await.expect(201);
            }
            "/api/accounts" => {
                admin.post(path, &json!({ "channel": "console" })).await.expect(201);
            }
            path if path.ends_with("gates") => drop(admin.post(path, &name).await.expect(201)),
            _ => {}
        }
    };
    for (path, field, id) in [
        ("/api/events".to_owned(), "events", "id"),
        ("/api/tickets".to_owned(), "tickets", "id"),
        ("/api/batches".to_owned(), "batches", "id"),
        ("/api/webhooks".to_owned(), "webhooks", "id"),
        ("/api/contracts".to_owned(), "contracts", "id"),
        ("/api/accounts".to_owned(), "accounts", "id"),
        (of_event("batches"), "batches", "id"),
        ("/api/keys".to_owned(), "keys", "id"),
        ("/api/limits".to_owned(), "limits", "name"),
        ("/api/queues/mails/schedules".to_owned(), "schedules", "key"),
        (of_event("gates"), "gates", "id"),
        (of_event("lists"), "lists", "id"),
        (of_event("devices"), "devices", "id"),
    ] {
        for order in ["asc", "desc"] {
            let whole = format!("{path}?order={order}");
            let before = admin.get(&format!("{whole}&limit=1000")).await.expect(200);
            let ids = |records: &[Value]| -> Vec<String> {
                records.iter().map(|record| text(&record[id])).collect()
            };
            let before = ids(before[field].as_array().unwrap());
            let mut sorted = before.clone();
            sorted.sort();
            if order == "desc" {
                sorted.reverse();
            }
            assert_eq!(before, sorted, "{whole}");
            let seen = ids(&paged(&admin, &whole, field, async || another(&path).await).await);
            let mut once = seen.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), seen.len(), "{whole} shows a record twice: {seen:?}");
            let missed: Vec<_> = before.iter().filter(|id| !seen.contains(id)).collect();
            assert!(missed.is_empty(), "{whole} misses {missed:?}");
        }
    }
}

/// A text that no other call gives.
fn rand_text() -> String {
    stampede_model::ErrorId::generate().to_string()
}

#[tokio::test]
async fn lists_are_filtered_by_time_and_unknown_parameters_are_refused() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let first = admin.post("/api/events", &json!({ "name": "First" })).await.expect(201);
    let second = admin.post("/api/events", &json!({ "name": "Second" })).await.expect(201);
    let between = text(&second["createdAt"]);
    let after = admin.get(&format!("/api/events?from={between}")).await.expect(200);
    assert_eq!(after["events"], json!([second]));
    let before = admin.get(&format!("/api/events?to={between}")).await.expect(200);
    assert_eq!(before["events"], json!([first]));
    for (query, told) in [
        ("form=2026-01-01T00:00:00Z", "did you mean from?"),
        ("order=up", "must be asc or desc"),
        ("from=yesterday", "must be a time such as"),
        ("limit=0", "at least 1"),
    ] {
        let problem = admin.get(&format!("/api/events?{query}")).await.expect(400);
        assert!(text(&problem["detail"]).contains(told), "{query}: {problem}");
    }
    // Older clients of queues.
    admin.post("/api/queues/mails/jobs", &json!({ "name": "send" })).await.expect(200);
    for query in ["count=1&skip=0", "limit=1&after=0"] {
        let jobs = admin.get(&format!("/api/queues/mails/jobs?{query}")).await.expect(200);
        assert_eq!(jobs["jobs"].as_array().unwrap().len(), 1, "{query}");
    }
}
