//! Whatever is sent, the answer names what is wrong; nothing breaks.

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{Answer, App, pdf_text, send};

use crate::{batch_ended, create_event, start, text};

fn fields(problem: &Value) -> Vec<String> {
    problem["errors"].as_array().into_iter().flatten().map(|error| text(&error["field"])).collect()
}

async fn raw(app: &App, content_type: Option<&str>, body: impl Into<reqwest::Body>) -> Answer {
    let mut request = app.admin().request(Method::POST, "/api/tickets").body(body);
    if let Some(content_type) = content_type {
        request = request.header("Content-Type", content_type);
    }
    send(request).await
}

#[tokio::test]
async fn wrong_orders_are_refused_with_the_field_named() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let with = |change: Value| {
        let mut order = json!({ "target": event, "quantity": 1, "name": "Ann" });
        order.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        order
    };
    for (change, field) in [
        (json!({ "quantity": 0 }), "quantity"),
        (json!({ "quantity": -1 }), "quantity"),
        (json!({ "quantity": 1.5 }), "quantity"),
        (json!({ "quantity": 100_001 }), "quantity"),
        (json!({ "quantity": "many" }), "quantity"),
        (json!({ "quantity": 1e300 }), "quantity"),
        (json!({ "name": null }), "name"),
        (json!({ "name": "" }), "name"),
        (json!({ "name": 7 }), "name"),
        (json!({ "name": "x".repeat(10_000) }), "name"),
        (json!({ "name": "bell\u{7}" }), "name"),
        (json!({ "name": "a\u{0}b" }), "name"),
        (json!({ "name": "line\nbreak" }), "name"),
        (json!({ "strict": "yes" }), "strict"),
        (json!({ "name": "\u{200B}" }), "name"),
        (json!({ "name": format!("Z{}", "\u{301}".repeat(99)) }), "name"),
        (json!({ "email": "nobody" }), "email"),
        (json!({ "seat": "s".repeat(61) }), "seat"),
        (json!({ "price": -1 }), "price"),
        (json!({ "price": 1.999 }), "price"),
        (json!({ "price": "free" }), "price"),
        (json!({ "target": 5 }), "target"),
        (json!({ "target": null }), "target"),
        (json!({ "holders": [] }), "holders"),
        (json!({ "holders": [{ "seat": "A" }] }), "holders[0].name"),
        (json!({ "holders": [{ "name": "A" }, { "name": "B" }] }), "quantity"),
    ] {
        let answer = app.admin().post("/api/tickets", &with(change.clone())).await;
        let problem = answer.expect(422);
        assert_eq!(fields(&problem), [field], "{change}: {problem}");
        assert_eq!(problem["error"], problem["detail"]);
    }
    let several = app
        .admin()
        .post("/api/tickets", &with(json!({ "quantity": 0, "name": "", "price": -1 })))
        .await;
    assert_eq!(fields(&several.expect(422)).len(), 3, "all mistakes at once");
    let unknown = with(json!({ "target": "01890a5d-ac96-774b-bcce-b302099a8057" }));
    assert_eq!(
        app.admin().post("/api/tickets", &unknown).await.expect(404)["error"],
        "Event not found"
    );
    let nonsense = with(json!({ "target": "../../etc/passwd" }));
    app.admin().post("/api/tickets", &nonsense).await.expect(404);
    let listed = app.admin().get("/api/tickets").await.expect(200);
    assert_eq!(listed["tickets"], json!([]), "nothing of all this was kept");
}

#[tokio::test]
async fn bodies_that_are_not_json_objects_are_refused() {
    let app = start(&[("WORKER_MODE", "api"), ("MAX_BODY_BYTES", "4096")]).await;
    let json = Some("application/json");
    let broken = raw(&app, json, "{\n  \"name\": oops }").await.expect(400);
    assert!(text(&broken["detail"]).contains("line 2 column"), "{broken}");
    raw(&app, json, "").await.expect(400);
    raw(&app, json, "[1]").await.expect(422);
    raw(&app, json, format!("{{\"name\":\"{}\"}}", "x".repeat(5_000))).await.expect(413);
    raw(&app, Some("text/plain"), "{}").await.expect(415);
    raw(&app, None, "{}").await.expect(415);
    raw(&app, json, vec![0xff, 0xfe]).await.expect(400);
    raw(&app, json, "[".repeat(4_000)).await.expect(400);
}

#[tokio::test]
async fn wrong_events_are_refused_with_the_field_named() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    for (event, field) in [
        (json!({}), "name"),
        (json!({ "name": "x", "startsAt": "tomorrow" }), "startsAt"),
        (json!({ "name": "x", "timeZone": "Mars/Olympus" }), "timeZone"),
        (json!({ "name": "x", "timeZone": "../../etc/passwd" }), "timeZone"),
        (json!({ "name": "x", "timeZone": "localtime" }), "timeZone"),
        (json!({ "name": "x", "currency": "GOLD" }), "currency"),
        (json!({ "name": "x", "branding": "red" }), "branding"),
        (json!({ "name": "x", "branding": { "primary": "#12" } }), "branding.primary"),
        (json!({ "name": "東\u{7}京" }), "name"),
        (json!({ "name": "x", "template": "no-such-design" }), "template"),
    ] {
        let problem = app.admin().post("/api/events", &event).await.expect(422);
        assert_eq!(fields(&problem), [field], "{event}: {problem}");
    }
}

#[tokio::test]
async fn unknown_routes_methods_and_ids_answer_as_problems() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    for (method, path, status) in [
        (Method::GET, "/nothing", 404),
        (Method::PUT, "/api/events", 405),
        (Method::GET, "/api/tickets/not-an-id", 404),
        (Method::GET, "/api/tickets/..%2F..%2Fetc%2Fpasswd/pdf", 404),
        (Method::GET, "/api/batches/01890a5d-ac96-774b-bcce-b302099a8057", 404),
        (Method::GET, "/api/tickets?status=sold", 400),
        (Method::GET, "/api/tickets?limit=many", 400),
        (Method::GET, "/api/tickets?after=zzz", 400),
    ] {
        let answer = send(app.admin().request(method, path)).await;
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{path}");
        assert!(answer.body["error"].is_string(), "{path}");
        answer.expect(status);
    }
}

#[tokio::test]
async fn a_typo_in_a_query_is_named_with_what_was_meant() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    for (path, field, message) in [
        ("/api/tickets?limit=abc", "limit", "must be a whole number, at least 1, not \"abc\""),
        ("/api/tickets?limt=5", "limt", "did you mean limit?"),
        ("/api/tickets?batch=7", "batch", "must be the id of a batch"),
        ("/api/events?page=2", "page", "known are limit, after"),
        ("/api/templates?limit=0", "limit", "at least 1"),
        ("/api/queues/tickets/jobs?stat=failed", "stat", "did you mean state?"),
        ("/api/queues/tickets/jobs?state=lost", "state", "waiting, prioritized"),
        ("/api/scaling/history?limit=5", "limit", "nothing is expected"),
    ] {
        let problem = app.admin().get(path).await.expect(400);
        let error = &problem["errors"][0];
        assert_eq!(error["field"], field, "{path}: {problem}");
        assert!(text(&error["message"]).contains(message), "{path}: {problem}");
        assert!(text(&problem["error"]).starts_with("in the query, "), "{problem}");
    }
    app.admin().get("/api/tickets?batch=&target=&status=&limit=&after=").await.expect(200);
}

#[tokio::test]
async fn a_typo_in_a_body_is_refused_or_at_least_told() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let order = json!({ "target": event, "name": "Ann", "emial": "ann@example.org", "phone": "1" });
    // Clients of seed 000 send whatever they have.
    let accepted = app.order(order.clone()).await;
    let warnings = accepted["warnings"].as_array().unwrap();
    assert_eq!((warnings.len(), &warnings[0]["kind"]), (2, &json!("unknown_field")), "{accepted}");
    assert!(text(&warnings[0]["message"]).contains("did you mean email?"), "{accepted}");
    let mut strict = order;
    strict["strict"] = json!(true);
    let refused = app.admin().post("/api/tickets", &strict).await.expect(422);
    assert_eq!(fields(&refused), ["emial", "phone"], "{refused}");

    let ticket = format!("/api/tickets/{}", text(&accepted["tickets"][0]));
    let admin = app.admin();
    for (path, body, field, message) in [
        (&ticket, json!({ "seta": "A-1" }), "seta", "did you mean seat?"),
        (&ticket, json!({ "seat": "A-1", "owner": "bob" }), "owner", "cannot be changed"),
        (&format!("/api/events/{event}"), json!({ "starts_at": null }), "starts_at", "startsAt"),
        (
            &format!("/api/events/{event}"),
            json!({ "branding": { "primry": "#000000" } }),
            "branding.primry",
            "did you mean primary?",
        ),
        (
            &format!("/api/events/{event}"),
            json!({ "template": { "id": "a4", "revison": 3 } }),
            "template",
            "did you mean revision?",
        ),
    ] {
        let problem = admin.patch(path, &body).await.expect(422);
        assert_eq!(fields(&problem), [field], "{body}: {problem}");
        assert!(text(&problem["error"]).contains(message), "{body}: {problem}");
    }
    for (path, body, field) in [
        ("/api/events", json!({ "name": "x", "locaton": "y" }), "locaton"),
        ("/api/templates", json!({ "name": "x", "design": "a4", "nots": "y" }), "nots"),
        ("/api/templates/validate", json!({ "design": "a4", "evnt": {} }), "evnt"),
        (
            "/api/templates/validate",
            json!({ "design": "a4", "ticket": { "nam": "A" } }),
            "ticket.nam",
        ),
        ("/api/verify", json!({ "token": "x", "traget": event }), "traget"),
        ("/api/nodes/all/commands", json!({ "action": "restart", "cuont": 2 }), "cuont"),
    ] {
        let problem = admin.post(path, &body).await.expect(422);
        assert_eq!(fields(&problem), [field], "{path}: {problem}");
    }
    // What a server answered may be shown to it in a preview.
    let event = admin.get(&format!("/api/events/{event}")).await.expect(200);
    let ticket = admin.get(&ticket).await.expect(200);
    let body = json!({ "design": "a4", "event": event, "ticket": ticket });
    admin.post("/api/templates/validate", &body).await.expect(200);
}

#[tokio::test]
async fn names_in_other_scripts_are_printed_or_refused_but_never_broken() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    // Shaped and reordered text comes back from poppler in reading order.
    let order = app.order(json!({ "target": event, "name": "דוד", "seat": "محمد" })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let pdf =
        app.admin().get(&format!("/api/tickets/{}/pdf", text(&order["tickets"][0]))).await.bytes;
    let printed = pdf_text(&pdf);
    assert!(
        printed.contains("דוד")
            || printed.contains("דוד".chars().rev().collect::<String>().as_str()),
        "{printed}"
    );
}

#[tokio::test]
async fn hostile_names_are_refused_with_a_reason_or_printed_as_they_are() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let json_type = Some("application/json");
    for name in ["\\ud800", "Ann \\udc00\\ud800", "\\ud800\\ud800"] {
        // Half a character is no text, and never reaches a template.
        let body = format!("{{\"target\":\"{event}\",\"name\":\"{name}\"}}");
        raw(&app, json_type, body).await.expect(400);
    }
    for name in [
        format!("a{}", "\u{301}".repeat(5_000)),
        format!("a{}", "\u{301}".repeat(100)),
        "a\0b".to_owned(),
        "a\u{1b}[31m".to_owned(),
    ] {
        let order = json!({ "target": event, "name": name });
        let refused = app.admin().post("/api/tickets", &order).await.expect(422);
        assert_eq!(fields(&refused), ["name"], "{refused}");
    }
    for name in [") Tj ET Q endstream", "#panic(1) $a$ *b*", "<script>alert(1)</script>"] {
        let order = app.order(json!({ "target": event, "name": name })).await;
        batch_ended(&app, &text(&order["batchId"])).await;
        let path = format!("/api/tickets/{}/pdf", text(&order["tickets"][0]));
        let printed = pdf_text(&app.admin().get(&path).await.bytes);
        assert!(printed.contains(name), "{printed}");
    }
}
