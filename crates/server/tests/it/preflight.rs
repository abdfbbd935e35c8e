//! What would not come out well is told before the first ticket is made.

use serde_json::{Value, json};

use crate::{batch_ended, create_event, start, text};

/// A letter of a script that no font of ours has.
const HIEROGLYPH: &str = "𓀀";

fn order(event: &str, strict: bool) -> Value {
    json!({
        "target": event,
        "strict": strict,
        "holders": [
            { "name": "Ann" },
            { "name": format!("Ra {HIEROGLYPH}") },
            { "name": "محمد علي" },
            { "name": "W".repeat(200) },
        ],
    })
}

#[tokio::test]
async fn an_order_is_accepted_with_warnings_for_each_ticket() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let placed = app.order(order(&event, false)).await;
    let warnings = placed["warnings"].as_array().unwrap();
    assert_eq!(placed["ticketsWithWarnings"], 2, "{placed}");
    let glyphs = &warnings[0];
    assert_eq!((&glyphs["kind"], &glyphs["field"]), (&json!("missing_glyphs"), &json!("name")));
    assert_eq!((&glyphs["index"], &glyphs["ticket"]), (&json!(2), &placed["tickets"][1]));
    assert!(
        text(&glyphs["message"]).contains(HIEROGLYPH) || text(&glyphs["message"]).contains("13000")
    );
    assert!(
        warnings.iter().any(|warning| warning["kind"] == "does_not_fit" && warning["index"] == 4)
    );
    let fine = app.order(json!({ "target": event, "name": "Ann" })).await;
    assert!(fine.get("warnings").is_none(), "{fine}");
}

#[tokio::test]
async fn a_strict_order_with_warnings_is_refused_with_all_of_them() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let refused = app.admin().post("/api/tickets", &order(&event, true)).await.expect(422);
    assert_eq!(refused["ticketsWithWarnings"], 2, "{refused}");
    assert!(refused["warnings"].as_array().unwrap().len() >= 2);
    assert!(text(&refused["error"]).contains("ticket 2"), "{refused}");
    let kept = app.admin().get("/api/tickets").await.expect(200);
    assert_eq!(kept["tickets"], json!([]));
    let fine = json!({ "target": event, "strict": true, "name": "Ann" });
    app.admin().post("/api/tickets", &fine).await.expect(200);
}

#[tokio::test]
async fn a_changed_ticket_is_checked_like_an_order() {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "name": "Ann" })).await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let path = format!("/api/tickets/{}", text(&order["tickets"][0]));
    let strange = format!("Ra {HIEROGLYPH}");

    let strict = json!({ "name": strange, "strict": true });
    let refused = app.admin().patch(&path, &strict).await.expect(422);
    assert_eq!(refused["ticketsWithWarnings"], 1, "{refused}");
    assert_eq!(refused["warnings"][0]["kind"], "missing_glyphs");
    assert_eq!(app.admin().get(&path).await.expect(200)["name"], "Ann");

    let changed = app.admin().patch(&path, &json!({ "name": strange })).await.expect(200);
    assert_eq!((&changed["name"], &changed["ticketsWithWarnings"]), (&json!(strange), &json!(1)));
    let warning = &changed["warnings"][0];
    assert_eq!((&warning["kind"], &warning["index"]), (&json!("missing_glyphs"), &json!(1)));
    assert_eq!(warning["ticket"], changed["id"]);

    let fine = json!({ "name": "Bob", "strict": true });
    let changed = app.admin().patch(&path, &fine).await.expect(200);
    assert!(changed.get("warnings").is_none(), "{changed}");
    app.admin().patch(&path, &json!({ "name": "Bob", "strict": "yes" })).await.expect(422);
}
