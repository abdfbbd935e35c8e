//! The description of the API: it is what the server does, on the wire and on the command line.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stampede_testkit::send;
use stampede_wire::problem::Code;

use crate::start;

#[tokio::test]
async fn the_description_is_open_and_the_same_everywhere() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let (worked, printed) = app.command(&["openapi"]);
    assert!(worked, "{printed}");
    let served = app.stranger().get("/api/openapi.json").await;
    assert_eq!(served.headers["content-type"], "application/json");
    let served = served.expect(200);
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), served);
    assert_eq!(served["openapi"], "3.1.0");
    let page = app.stranger().get("/api/docs").await;
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(String::from_utf8(page.bytes).unwrap().contains("createEvent"));
}

#[tokio::test]
async fn a_body_without_fields_lacks_those_that_the_description_requires() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    let document = admin.get("/api/openapi.json").await.expect(200);
    admin.post("/api/queues/mails/jobs", &json!({ "name": "send" })).await.expect(200);
    let event = admin.post("/api/events", &json!({ "name": "Night" })).await.expect(201);
    let gates = format!("/api/events/{}/gates", event["id"].as_str().unwrap());
    let gate = admin.post(&gates, &json!({ "name": "North" })).await.expect(201);
    let webhook = json!({ "url": "https://example.com/" });
    let webhook = admin.post("/api/webhooks", &webhook).await.expect(201);
    let contract = json!({ "accountId": "console", "name": "News" });
    let contract = admin.post("/api/contracts", &contract).await.expect(201);
    let mut compared = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let Some(name) = schema["$ref"].as_str() else { continue };
            let schema = document.pointer(name.trim_start_matches('#')).unwrap();
            let required: Vec<&str> = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let record = match path {
                path if path.starts_with("/api/gates/") => &gate,
                path if path.starts_with("/api/webhooks/") => &webhook,
                path if path.starts_with("/api/contracts/") => &contract,
                _ => &event,
            };
            let path =
                path.replace("{id}", record["id"].as_str().unwrap()).replace("{name}", "mails");
            if required.is_empty() {
                continue;
            }
            let method = method.to_uppercase().parse().unwrap();
            let answer = send(admin.request(method, &path).json(&json!({}))).await;
            let problem = answer.expect(422);
            let missing: Vec<&str> = problem["errors"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|error| error["message"].as_str().unwrap().starts_with("is missing"))
                .map(|error| error["field"].as_str().unwrap())
                .collect();
            // Some say it in a sentence of their own.
            let told = problem["detail"].as_str().unwrap();
            for field in required {
                assert!(
                    missing.contains(&field) || told.contains(field),
                    "{path} {field}: {problem}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 8, "{compared}");
}

#[test]
fn the_document_lists_every_code_with_its_status() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md");
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().filter_map(|line| {
        let (code, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (status, meaning) = rest.strip_suffix(" |")?.split_once(" | ")?;
        Some((code.to_owned(), (status.parse::<u16>().ok()?, meaning.to_owned())))
    });
    let listed: BTreeMap<String, (u16, String)> = rows.collect();
    let codes = Code::ALL.iter().map(|code| {
        (code.as_str().to_owned(), (code.status(), code.meaning().trim_end_matches('.').to_owned()))
    });
    assert_eq!(listed, codes.collect::<BTreeMap<_, _>>(), "docs/http.md lists other codes");
}
