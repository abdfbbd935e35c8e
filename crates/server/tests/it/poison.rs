//! One organiser's template must not stop everybody: fonts that unpack to gigabytes are refused, and a template that
//! brings down its process in spite of all checks is set aside.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use stampede_testkit::fonts::{cff_font, overlapping};
use stampede_testkit::{App, Client, eventually};

use crate::access::client;
use crate::{PATIENCE, assert_all_ready, batch_ended, start, text, tickets_of};

const SOURCE: &str = "#set page(width: 120mm, height: 80mm, margin: 10mm)\n\
                      Hello #text(font: \"Made Up\", field(\"name\"))\n\n#qr(40mm)\n";

/// A ticket with this in its name brings down the process that stamps it.
const POISON: &str = "Poison";

async fn event_with_template(client: &Client, source: &str) -> (String, String) {
    let body = json!({ "name": "Own", "files": { "template.typ": source } });
    let template = text(&client.post("/api/templates", &body).await.expect(201)["id"]);
    let event = json!({ "name": "Opening Night", "template": template });
    (text(&client.post("/api/events", &event).await.expect(201)["id"]), template)
}

async fn ordered(client: &Client, order: Value) -> String {
    text(&client.post("/api/tickets", &order).await.expect(200)["batchId"])
}

#[tokio::test]
async fn a_font_that_unpacks_to_gigabytes_is_refused_with_its_glyph_and_the_limit() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let ann = client(&app, "organiser", "ann");
    for (name, font, limit) in [
        ("components.ttf", overlapping(400 << 10, 4_000), "overlaps others"),
        ("subroutines.otf", cff_font(9, 10), "with its subroutines in place"),
    ] {
        let files =
            json!({ "template.typ": SOURCE, name: { "base64": BASE64_STANDARD.encode(&font) } });
        for (path, body) in [
            ("/api/templates", json!({ "name": "Bomb", "files": files })),
            ("/api/templates/validate", json!({ "files": files })),
            ("/api/templates/preview", json!({ "files": files, "ticket": { "name": "A" } })),
        ] {
            let refused = ann.post(path, &body).await.expect(422);
            let diagnostic = &refused["diagnostics"][0];
            assert_eq!(diagnostic["file"], name, "{refused}");
            let message = text(&diagnostic["message"]);
            assert!(message.contains("glyph ") && message.contains(limit), "{message}");
        }
    }
}

#[tokio::test]
async fn a_poisonous_template_is_set_aside_while_others_get_their_tickets() {
    let app = start(&[("STAMPEDE_POISON", POISON)]).await;
    let workers = app.workers();
    let (ann, bob) = (client(&app, "organiser", "ann"), client(&app, "organiser", "bob"));
    let (poisoned, template) = event_with_template(&ann, "Hi #field(\"name\") #qr(40mm)").await;
    let (good, _) = event_with_template(&bob, "Hello #field(\"name\") #qr(40mm)").await;
    let bad = ordered(&ann, json!({ "target": poisoned, "quantity": 40, "name": POISON })).await;
    let well = ordered(&bob, json!({ "target": good, "quantity": 50, "name": "Bob" })).await;
    assert_all_ready(&app, &well, 50).await;

    let batch = batch_ended(&app, &bad).await;
    assert_eq!((&batch["completed"], &batch["failed"]), (&json!(0), &json!(40)), "{batch}");
    let tickets = tickets_of(&app, &bad).await;
    let set_aside = |ticket: &&Value| text(&ticket["error"]).contains("its template is set aside");
    assert!(tickets.iter().filter(set_aside).count() >= 35, "{tickets:?}");
    let error = tickets.iter().find(set_aside).map(|ticket| text(&ticket["error"])).unwrap();
    assert!(error.contains("crash") && error.contains("Publish a corrected revision"), "{error}");
    assert_eq!(app.workers(), workers, "no worker died");

    // A new revision begins without suspicion, and an operator can lift it from the old one.
    let suspects = app.admin().get("/api/suspects").await.expect(200);
    let suspect = &suspects["suspects"][0];
    assert!(suspect["strikes"].as_u64().unwrap() >= 3, "{suspects}");
    let files = json!({ "files": { "template.typ": "Better #field(\"name\") #qr(40mm)" } });
    ann.put(&format!("/api/templates/{template}"), &files).await.expect(200);
    let again = ordered(&ann, json!({ "target": poisoned, "quantity": 5, "name": "Ann" })).await;
    assert_all_ready(&app, &again, 5).await;
    let path = format!("/api/suspects/{}", text(&suspect["name"]));
    ann.delete(&path).await.expect(403);
    app.admin().delete(&path).await.expect(204);
    app.admin().delete(&path).await.expect(404);
}

#[tokio::test]
async fn a_poisonous_ticket_takes_down_one_worker_at_most_and_fails_alone() {
    let app = start(&[("STAMPEDE_POISON", POISON)]).await;
    let ann = client(&app, "organiser", "ann");
    let (event, _) = event_with_template(&ann, "Hi #field(\"name\") #qr(40mm)").await;
    // Both workers have stamped with it, so they trust it with their own process.
    let first = ordered(&ann, json!({ "target": event, "quantity": 200, "name": "Ann" })).await;
    assert_all_ready(&app, &first, 200).await;
    let before = app.workers();
    let names = (0..60).map(|n| json!({ "name": if n == 30 { POISON } else { "Eve" } }));
    let order = json!({ "target": event, "holders": names.collect::<Vec<_>>() });
    let batch_id = ordered(&ann, order).await;
    let batch = batch_ended(&app, &batch_id).await;
    assert_eq!((&batch["completed"], &batch["failed"]), (&json!(59), &json!(1)), "{batch}");
    let failed = &tickets_of(&app, &batch_id).await[30];
    assert!(text(&failed["error"]).contains("crash"), "{failed}");
    let survivors = app.workers().iter().filter(|pid| before.contains(pid)).count();
    assert!(survivors >= 1, "{before:?} {:?}", app.workers());
    all_workers_run(&app).await;
    let suspects = app.admin().get("/api/suspects").await.expect(200);
    assert_eq!(suspects["suspects"].as_array().unwrap().len(), 1, "{suspects}");
}

#[tokio::test]
async fn a_merged_pdf_that_would_bring_its_process_down_is_refused_and_the_server_goes_on() {
    let mut app = start(&[]).await;
    let ann = client(&app, "organiser", "ann");
    let (event, _) = event_with_template(&ann, "Hi #field(\"name\") #qr(40mm)").await;
    let order = json!({ "target": event, "quantity": 3, "name": POISON });
    let batch = ordered(&ann, order).await;
    assert_all_ready(&app, &batch, 3).await;
    let path = format!("/api/batches/{batch}/pdf");
    assert_eq!(ann.get(&path).await.status, 200);
    app.stop().await;
    // From now on, stamping one of these tickets ends its process.
    app.start_again(&[("STAMPEDE_POISON", POISON)]).await;
    let server = app.pid();
    for _ in 0..3 {
        let refused = ann.get(&path).await.expect(422);
        assert!(text(&refused["error"]).contains("crash"), "{refused}");
    }
    assert_eq!(app.pid(), server);
    ann.get(&format!("/api/batches/{batch}")).await.expect(200);
    let suspects = app.admin().get("/api/suspects").await.expect(200);
    assert_eq!(suspects["suspects"], json!([]), "reading is no strike against the template");
}

/// Waits until all seats have a worker that runs.
async fn all_workers_run(app: &App) {
    eventually(PATIENCE, || async { (app.workers().len() == 2).then_some(()) }).await;
    let log = app.log();
    assert!(!log.contains("is crash-looping"), "{log}");
}
