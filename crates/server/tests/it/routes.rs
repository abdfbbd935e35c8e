//! Every route demands the right that its handler's type names, and unknown actions are answered with the known ones.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;
use stampede_api::{Right, Route};
use stampede_testkit::{Client, Redis, send};

use crate::access::client;
use crate::role_matrix::is_stream;
use crate::start;

/// The route's path with values for its parameters.
fn path(route: &Route) -> String {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let mut path = route.path.replace("{id}", id).replace("{name}", "tickets");
    path = path.replace("{delivery}", id).replace("{recipient}", id);
    for (parameter, value) in [
        ("{kid}", "1"),
        ("{number}", "1"),
        ("{action}", "explode"),
        ("{token}", "x"),
        ("{channel}", "webhook"),
        ("{account}", "nobodys"),
    ] {
        path = path.replace(parameter, value);
    }
    assert!(!path.contains('{'), "give {path} a value for its parameter");
    if is_stream(route) { format!("{path}?seconds=0") } else { path }
}

async fn status(client: &Client, route: &Route) -> u16 {
    let method = Method::from_bytes(route.method.as_str().as_bytes()).unwrap();
    let answer = send(client.request(method, &path(route)).json(&json!({}))).await;
    if answer.status == 401 {
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
    }
    answer.status
}

#[tokio::test]
async fn every_route_demands_the_right_of_its_handlers_type() {
    // There are more routes than wrong keys are tried in a minute.
    let app = start(&[("WORKER_MODE", "api"), ("RATE_LIMIT_FAILURES", "0")]).await;
    let (stranger, wrong) = (app.stranger(), app.client("stp_wrong"));
    let (viewer, organiser) = (client(&app, "viewer", "ann"), client(&app, "organiser", "ann"));
    let routes = stampede_api::routes();
    assert!(routes.len() > 60, "{}", routes.len());
    for route in &routes {
        // Statuses for a stranger, an invalid key, a viewer and an organiser; `None`: the guard lets the request in.
        let wanted = match route.right {
            Right::Nothing => [None, (route.path == "/health").then_some(401), None, None],
            Right::Call => [Some(401), Some(401), None, None],
            Right::Write => [Some(401), Some(401), Some(403), None],
            Right::Watch => [Some(401), Some(401), None, None],
            Right::Admit => [Some(401), Some(401), Some(403), None],
            Right::Oversee | Right::Administer => [Some(401), Some(401), Some(403), Some(403)],
        };
        for (client, wanted) in [&stranger, &wrong, &viewer, &organiser].into_iter().zip(wanted) {
            let status = status(client, route).await;
            match wanted {
                Some(wanted) => assert_eq!(status, wanted, "{route:?}"),
                // Handlers may still refuse by the record's owner.
                None => assert!(status != 401 && status < 500, "{route:?}: {status}"),
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_action_is_answered_with_the_known_ones() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let admin = app.admin();
    admin.post("/api/queues/mails/jobs", &json!({ "name": "send" })).await.expect(200);
    for (path, message) in [
        (
            "/api/queues/mails/puase",
            "no such action \"puase\"; use pause, resume, concurrency, retry, drain or obliterate",
        ),
        (
            "/api/queues/mails/jobs/1/retyr",
            "no such action \"retyr\"; use retry, promote or cancel",
        ),
        ("/api/queues/mails/dead-letters/relpay", "no such action \"relpay\"; use replay or purge"),
    ] {
        let problem = admin.post(path, &json!({})).await.expect(404);
        assert_eq!(problem["error"], message, "{path}");
    }
    let problem = admin.post("/api/queues/mials/pause", &json!({})).await.expect(404);
    assert_eq!(problem["error"], "Queue not found: mials; did you mean mails?");
}

/// Verbs that are none, or none of this route; some of them are a known verb in disguise.
const UNKNOWN: [&str; 9] = [
    "purgee",
    "PURGE",
    "purge%20",
    "%70urge%00",
    "delete",
    "obliterate!",
    "*",
    "remove",
    "%70urge",
];

/// Bodies that the destructive verbs accept.
fn bodies() -> [serde_json::Value; 4] {
    [
        json!({}),
        json!({ "all": true }),
        json!({ "ids": ["a"] }),
        json!({ "confirm": "mails", "force": true }),
    ]
}

#[tokio::test]
async fn an_unknown_verb_does_nothing() {
    let redis = Redis::start().await;
    let app = start(&[("WORKER_MODE", "api"), ("REDIS_URL", &redis.url())]).await;
    let admin = app.admin();
    for id in ["a", "b"] {
        let job = json!({ "name": "send", "id": id });
        admin.post("/api/queues/mails/jobs", &job).await.expect(200);
    }
    // A job that failed, with its letter.
    redis.cli(&["HSET", "bull:mails-dlq:a", "name", "send", "data", "{}", "timestamp", "1"]);
    redis.cli(&["LPUSH", "bull:mails-dlq:wait", "a"]);
    let dump = || {
        let keys = redis.cli(&["KEYS", "bull:mails*"]);
        let mut keys: Vec<&str> = keys.lines().collect();
        keys.sort_unstable();
        let dumped = |key: &&str| format!("{key} {}", redis.cli(&["DUMP", key]));
        keys.iter().map(dumped).collect::<Vec<String>>()
    };
    let before = dump();
    assert!(before.len() >= 5, "{before:?}");
    let routes = stampede_api::routes();
    let routes = routes.iter().filter(|route| route.path.contains("{action}"));
    let mut tried = 0;
    for route in routes {
        let path = route.path.replace("{name}", "mails").replace("{id}", "a");
        for verb in UNKNOWN {
            for body in bodies() {
                let path = path.replace("{action}", verb);
                let answer = admin.post(&path, &body).await;
                assert_eq!(answer.status, 404, "{path} {body}: {}", answer.body);
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 3 * UNKNOWN.len() * bodies().len(), "three routes have verbs");
    for action in ["scale_sideways", "RESTART", "restart ", "", "purge"] {
        let command = json!({ "action": action });
        let problem = admin.post("/api/nodes/all/commands", &command).await.expect(422);
        assert!(problem["error"].as_str().unwrap().contains("scale_up"), "{problem}");
    }
    assert_eq!(dump(), before, "nothing was changed");
}

/// The rows of the tables in docs/http.md: method and path, and who may call it.
fn documented() -> BTreeSet<(String, String)> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md");
    let text = std::fs::read_to_string(root).unwrap();
    let rows = text.lines().filter_map(|line| {
        let (route, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        route.split_once(' ').filter(|(_, path)| path.starts_with('/'))?;
        Some((route.to_owned(), rest.split(" |").next()?.trim().to_owned()))
    });
    rows.collect()
}

#[test]
fn the_document_lists_every_route_with_who_may_call_it() {
    let routes = stampede_api::routes().into_iter().map(|route| {
        let right = match route.right {
            Right::Nothing => "open",
            Right::Call => "any key",
            Right::Write => "may write",
            Right::Watch => "any key, scanners too",
            Right::Admit => "may admit",
            Right::Oversee => "reads everything",
            Right::Administer => "admin",
        };
        (format!("{} {}", route.method, route.path), right.to_owned())
    });
    let (routes, documented) = (routes.collect::<BTreeSet<_>>(), documented());
    let missing: Vec<_> = routes.difference(&documented).collect();
    let wrong: Vec<_> = documented.difference(&routes).collect();
    assert!(
        missing.is_empty() && wrong.is_empty(),
        "docs/http.md lacks {missing:#?} and has {wrong:#?}"
    );
}
