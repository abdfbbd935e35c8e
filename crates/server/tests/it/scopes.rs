//! Every route × keys that are limited: to the right event, to another event, to the right queue, to another queue. How a
//! route is reached comes from the router's own table; a route that says nothing is refused to all of them.

use serde_json::{Value, json};
use stampede_api::{Reach, Right, Route};
use stampede_testkit::{Answer, App, Client};

use crate::access::client;
use crate::role_matrix::{Records, new_template};
use crate::{start, text};

/// What a key is limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    RightEvent,
    OtherEvent,
    NamedQueue,
    OtherQueue,
}

const LIMITS: [Limit; 4] =
    [Limit::RightEvent, Limit::OtherEvent, Limit::NamedQueue, Limit::OtherQueue];
/// Roles that a limited key is tried with.
const ROLES: [&str; 4] = ["viewer", "scanner", "organiser", "admin"];

/// A key of the owner, limited so.
async fn limited(app: &App, role: &str, limit: Limit, right: &str, other: &str) -> Client {
    let mut key = json!({ "name": uuid(), "role": role, "user": "ann" });
    match limit {
        Limit::RightEvent => key["event"] = json!(right),
        Limit::OtherEvent => key["event"] = json!(other),
        Limit::NamedQueue => key["queues"] = json!(["mails", "slow"]),
        Limit::OtherQueue => key["queues"] = json!(["slow"]),
    }
    app.client(&text(&app.admin().post("/api/keys", &key).await.expect(201)["secret"]))
}

fn uuid() -> String {
    stampede_model::KeyId::generate().to_string()
}

fn has_role(role: &str, right: Right) -> bool {
    match right {
        Right::Nothing => true,
        Right::Call => role != "scanner",
        Right::Write => ["organiser", "admin"].contains(&role),
        Right::Watch => true,
        Right::Admit => role != "viewer",
        Right::Oversee | Right::Administer => role == "admin",
    }
}

/// The code that refuses the key; `None`: it gets in.
fn refusal(role: &str, limit: Limit, route: &Route) -> Option<&'static str> {
    if !has_role(role, route.right) {
        return Some("forbidden");
    }
    let of_event = matches!(limit, Limit::RightEvent | Limit::OtherEvent);
    let is_in = match route.reach {
        _ if route.right == Right::Nothing => true,
        None => false,
        Some(Reach::Of(_)) => limit == Limit::RightEvent,
        Some(Reach::OfHandler) => of_event,
        Some(Reach::Feed) => true,
        Some(Reach::Queue) => limit == Limit::NamedQueue,
        Some(Reach::Queues) => !of_event,
        // The key of the path has no limit, so that no limited key reaches it.
        Some(Reach::Keys) => !route.path.contains("{id}"),
    };
    (!is_in).then_some("out_of_scope")
}

fn check(route: &Route, role: &str, limit: Limit, answer: &Answer) {
    let place = format!("{} {} as {role} {limit:?}: {}", route.method, route.path, answer.body);
    match refusal(role, limit, route) {
        Some(code) => {
            assert_eq!((answer.status, &answer.body["code"]), (403, &json!(code)), "{place}");
            assert_eq!(answer.body["error"], "Access denied", "{place}");
        }
        // Handlers compare the event that a body or a query names.
        None if limit == Limit::OtherEvent && names_an_event(route) => {
            assert_eq!(answer.status, 403, "{place}");
        }
        None => assert!(![401, 403].contains(&answer.status) && answer.status < 500, "{place}"),
    }
}

/// Whether a request names the event in its body or query.
fn names_an_event(route: &Route) -> bool {
    let post = ["/api/tickets", "/api/verify", "/api/checkin/redeem", "/api/checkin/scans"];
    (post.contains(&route.path) && route.method == "POST") || route.path == "/api/checkin/bundle"
}

#[tokio::test]
async fn a_limited_key_reaches_what_it_names_and_nothing_else() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let owner = client(&app, "organiser", "ann");
    let template = new_template(&owner).await;
    let records = Records::new(&owner, &template).await.with_webhook(&owner).await;
    let records = records.with_campaign(&owner).await;
    let other = owner.post("/api/events", &json!({ "name": "Other" })).await.expect(201);
    let other = text(&other["id"]);
    for queue in ["mails", "slow"] {
        let path = format!("/api/queues/{queue}/jobs");
        app.admin().post(&path, &json!({ "name": "send" })).await.expect(200);
    }
    let mut cells = 0;
    for limit in LIMITS {
        // Keys of other roles cannot be limited to queues.
        let of_queue = matches!(limit, Limit::NamedQueue | Limit::OtherQueue);
        for role in ROLES.into_iter().filter(|role| !of_queue || *role == "admin") {
            let key = limited(&app, role, limit, &records.event, &other).await;
            for route in &stampede_api::routes() {
                // What is deleted needs records, and a key, of its own.
                let deletes = route.method == "DELETE" && refusal(role, limit, route).is_none();
                let answer = match deletes && !of_queue {
                    true => {
                        let own = Records::new(&owner, &template).await;
                        let own = match route.path {
                            "/api/webhooks/{id}" => own.with_webhook(&owner).await,
                            _ => own,
                        };
                        let key = limited(&app, role, limit, &own.event, &other).await;
                        own.call_as(&key, route).await
                    }
                    false => records.call_as(&key, route).await,
                };
                check(route, role, limit, &answer);
                cells += 1;
            }
        }
    }
    assert_eq!(cells, (2 * ROLES.len() + 2) * stampede_api::routes().len());
    owner.get(&format!("/api/events/{}", records.event)).await.expect(200);
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|record| text(&record["id"])).collect()
}

#[tokio::test]
async fn lists_show_a_limited_key_only_what_it_reaches() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let owner = client(&app, "organiser", "ann");
    let template = new_template(&owner).await;
    let (one, two) = (Records::new(&owner, &template).await, Records::new(&owner, &template).await);
    for role in ["viewer", "organiser", "admin"] {
        let key = limited(&app, role, Limit::RightEvent, &one.event, &two.event).await;
        let events = key.get("/api/events").await.expect(200);
        assert_eq!(ids(&events["events"]), [one.event.as_str()], "{role}");
        let tickets = key.get("/api/tickets").await.expect(200);
        assert_eq!(ids(&tickets["tickets"]), [one.ticket.as_str()], "{role}");
        let filtered = key.get(&format!("/api/tickets?batch={}", two.batch)).await.expect(200);
        assert_eq!(filtered["tickets"], json!([]), "{role}");
        key.get(&format!("/api/tickets?target={}", two.event)).await.expect(403);
        assert_eq!(key.get("/health").await.expect(200), json!({ "status": "ok" }));
        let keys = key.get("/api/keys").await.expect(200);
        let listed = keys["keys"].as_array().unwrap();
        assert!(listed.iter().all(|key| key["event"] == json!(one.event)), "{role}: {keys}");
        assert!(!listed.is_empty(), "{role}");
    }
    let organiser = limited(&app, "organiser", Limit::RightEvent, &one.event, &two.event).await;
    let event = format!("/api/events/{}", one.event);
    organiser.patch(&event, &json!({ "template": template })).await.expect(422);
    organiser.patch(&event, &json!({ "template": "stub" })).await.expect(200);
    // What a limited key makes has its limits.
    let child = json!({ "name": "child", "role": "scanner" });
    let child = organiser.post("/api/keys", &child).await.expect(201);
    assert_eq!(child["event"], json!(one.event));
    let wider = json!({ "name": "wider", "role": "viewer", "event": two.event });
    let problem = organiser.post("/api/keys", &wider).await.expect(403);
    assert_eq!(problem["code"], "out_of_scope");
}

#[tokio::test]
async fn a_key_of_queues_sees_and_cleans_only_these() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    for queue in ["mails", "slow", "reports"] {
        let path = format!("/api/queues/{queue}/jobs");
        admin.post(&path, &json!({ "name": "send" })).await.expect(200);
    }
    let key = limited(&app, "admin", Limit::NamedQueue, "", "").await;
    let status = key.get("/api/queues/status").await.expect(200);
    let seen: Vec<&String> = status.as_object().unwrap().keys().collect();
    assert_eq!(seen, ["mails", "slow"]);
    let clean = json!({ "queue": "reports", "state": "waiting" });
    assert_eq!(key.post("/api/queues/clean", &clean).await.expect(403)["code"], "out_of_scope");
    let all = key.post("/api/queues/clean", &json!({ "state": "waiting" })).await.expect(200);
    assert_eq!(all["removed"], json!({ "mails": 1, "slow": 1 }));
    let left = admin.get("/api/queues/status").await.expect(200);
    assert_eq!(left["reports"]["waiting"], 1, "{left}");
    let wider = json!({ "name": "wider", "role": "admin" });
    let made = key.post("/api/keys", &wider).await.expect(201);
    assert_eq!(made["queues"], json!(["mails", "slow"]), "it has the limits of its maker");
    let wider = json!({ "name": "reports", "role": "admin", "queues": ["reports"] });
    key.post("/api/keys", &wider).await.expect(403);
}
