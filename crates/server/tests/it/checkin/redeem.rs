//! Scans that the server decides: reasons, nonces, undo, lists, re-entry, foreign events.

use serde_json::{Value, json};
use stampede_testkit::{Faults, temp_dir};

use super::{Hall, redeem, scan};
use crate::access::client;
use crate::text;

#[tokio::test]
async fn a_scan_is_answered_with_everything_that_the_door_needs() {
    let hall = Hall::open(2).await;
    let gate = json!({ "name": "North" });
    let path = format!("/api/events/{}/gates", hall.event);
    let gate = hall.ann().post(&path, &gate).await.expect(201);
    let (device, id) = hall.device("Phone 1").await;
    let body = json!({ "token": hall.tokens[0], "nonce": "n1", "gate": gate["id"] });
    let answer = scan(&device, body.clone()).await;
    assert_eq!((&answer["result"], &answer["ok"]), (&json!("ok"), &json!(true)), "{answer}");
    assert_eq!(answer["ticket"]["number"], 1);
    assert_eq!(
        (&answer["ticket"]["name"], &answer["ticket"]["seat"]),
        (&json!("Guest"), &json!("A-1"))
    );
    assert_eq!(answer["event"]["name"], "Opening Night");
    assert_eq!((&answer["list"], &answer["listName"]), (&json!(hall.event), &json!("Main")));
    assert_eq!((&answer["gate"], &answer["gateName"]), (&gate["id"], &json!("North")));
    assert_eq!((&answer["entries"], &answer["entriesAllowed"]), (&json!(1), &json!(1)));
    assert_eq!((&answer["inside"], &answer["replayed"]), (&json!(true), &json!(false)));

    let (south, _) = hall.device("Phone 2").await;
    let again = redeem(&south, &hall.tokens[0], "n1").await;
    assert_eq!((&again["result"], &again["ok"]), (&json!("already_redeemed"), &json!(false)));
    let previous = &again["previous"];
    assert_eq!((&previous["gateName"], &previous["device"]), (&json!("North"), &json!(id)));
    assert_eq!((&previous["scan"], &previous["at"]), (&answer["scan"], &answer["at"]));
    assert!(text(&again["detail"]).contains("North"), "{again}");

    let log = hall.log().await;
    let results: Vec<&Value> = log.iter().map(|scan| &scan["result"]).collect();
    assert_eq!(results, ["ok", "already_redeemed"]);
    assert_eq!((&log[0]["deviceName"], &log[0]["number"]), (&json!("Phone 1"), &json!(1)));
    // Without a nonce it is only a question.
    let question = json!({ "token": hall.tokens[1], "simulate": true });
    let answer = scan(&device, question).await;
    assert_eq!((&answer["result"], &answer["simulated"]), (&json!("ok"), &json!(true)));
    assert_eq!((hall.log().await.len(), &answer["scan"]), (2, &Value::Null));
}

#[tokio::test]
async fn a_nonce_is_answered_as_before_even_if_the_ticket_was_voided_since() {
    let hall = Hall::open(2).await;
    let (device, _) = hall.device("Phone").await;
    let first = redeem(&device, &hall.tokens[0], "n").await;
    let path = format!("/api/tickets/{}", hall.tickets[0]);
    hall.app.admin().patch(&path, &json!({ "status": "void" })).await.expect(200);
    let mut again = redeem(&device, &hall.tokens[0], "n").await;
    assert_eq!(again["replayed"].take(), true);
    again["replayed"] = json!(false);
    assert_eq!(again, first);
    assert_eq!(redeem(&device, &hall.tokens[0], "m").await["result"], "void");

    let other = json!({ "token": hall.tokens[1], "nonce": "n" });
    let problem = device.post("/api/checkin/redeem", &other).await.expect(422);
    assert_eq!(problem["code"], "nonce_used", "{problem}");
    for (body, field) in [
        (json!({ "token": hall.tokens[1] }), "nonce"),
        (json!({ "token": hall.tokens[1], "nonce": "a b" }), "nonce"),
        (json!({ "token": hall.tokens[1], "nonce": "x".repeat(65) }), "nonce"),
        (json!({ "nonce": "x" }), "token"),
        (json!({ "nonce": "x", "token": "t", "ticketId": hall.tickets[0] }), "ticketId"),
        (json!({ "nonce": "x", "token": "t", "kind": "sideways" }), "kind"),
        (json!({ "nonce": "x", "token": "t", "list": "nonsense" }), "list"),
        (json!({ "nonce": "x", "token": "t", "gaet": "x" }), "gaet"),
    ] {
        let problem = device.post("/api/checkin/redeem", &body).await.expect(422);
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    for (field, code) in [("list", "unknown_list"), ("gate", "unknown_gate")] {
        let mut body = json!({ "token": hall.tokens[1], "nonce": "y" });
        body[field] = json!(unknown);
        let problem = device.post("/api/checkin/redeem", &body).await.expect(422);
        assert_eq!(problem["code"], code, "{problem}");
    }
}

#[tokio::test]
async fn what_is_no_valid_ticket_is_refused_with_its_reason() {
    let mut hall = Hall::open(3).await;
    let (device, _) = hall.device("Phone").await;
    let path = format!("/api/tickets/{}/reissue", hall.tickets[1]);
    hall.app.admin().post(&path, &json!({})).await.expect(200);
    hall.app.admin().delete(&format!("/api/tickets/{}", hall.tickets[2])).await.expect(204);
    let token = hall.tokens[0].clone();
    let altered = format!("{}{}", &token[..148], if token.ends_with('A') { "C" } else { "A" });
    let other = crate::create_event(&hall.app).await;
    let foreign = hall.sell(&other, 1).await.remove(0);
    for (token, reason) in [
        (hall.tokens[1].as_str(), "superseded"),
        (&hall.tokens[2], "unknown"),
        (&altered, "forged"),
        ("hello", "malformed"),
        (&foreign, "wrong_event"),
    ] {
        let answer = redeem(&device, token, reason).await;
        assert_eq!(answer["result"], reason, "{answer}");
        assert!(answer["scan"].is_string(), "every attempt is logged: {answer}");
        if reason == "wrong_event" {
            assert_eq!(answer["ticket"], Value::Null);
            assert_eq!(answer["event"]["id"], hall.event, "nothing of the other event: {answer}");
        }
    }
    let path = format!("/api/events/{}/keys/1", hall.event);
    hall.app.admin().delete(&path).await.expect(200);
    assert_eq!(redeem(&device, &hall.tokens[0], "r").await["result"], "revoked_key");
    let statistics = hall.statistics().await;
    assert_eq!(statistics["refused"], 6);
    assert_eq!(statistics["byReason"]["wrong_event"], 1, "{statistics}");
}

#[tokio::test]
async fn keys_admit_only_where_they_may() {
    let mut hall = Hall::open(1).await;
    let bobs = client(&hall.app, "organiser", "bob");
    let other = bobs.post("/api/events", &json!({ "name": "Bob's" })).await.expect(201);
    let other = text(&other["id"]);
    let foreign = hall.sell(&other, 1).await.remove(0);
    let (device, _) = hall.device("Phone").await;
    // A scanner of one event: not even with the other event as target.
    let body = json!({ "token": foreign, "nonce": "1", "target": other });
    device.post("/api/checkin/redeem", &body).await.expect(403);
    device.get(&format!("/api/checkin/bundle?target={other}")).await.expect(403);
    device.get(&format!("/api/events/{}/scans", hall.event)).await.expect(403);
    device.get(&format!("/api/tickets/{}", hall.tickets[0])).await.expect(403);
    // A scanner of all of Ann's events: tickets of Bob's are wrong here, without any detail.
    let scanner = client(&hall.app, "scanner", "ann");
    let answer = redeem(&scanner, &foreign, "2").await;
    assert_eq!(answer["result"], "wrong_event");
    assert_eq!((&answer["event"], &answer["ticket"]), (&Value::Null, &Value::Null), "{answer}");
    assert_eq!(redeem(&scanner, &hall.tokens[0], "3").await["result"], "ok");
    let viewer = client(&hall.app, "viewer", "ann");
    let body = json!({ "token": hall.tokens[0], "nonce": "4" });
    viewer.post("/api/checkin/redeem", &body).await.expect(403);
    viewer.get(&format!("/api/events/{}/scans", hall.event)).await.expect(200);
    bobs.get(&format!("/api/events/{}/scans", hall.event)).await.expect(403);
    let path = format!("/api/events/{}/lists", hall.event);
    viewer.post(&path, &json!({ "name": "Mine" })).await.expect(403);
    bobs.post(&path, &json!({ "name": "Mine" })).await.expect(403);
    let me = device.get("/api/checkin/me").await.expect(200);
    assert_eq!((&me["role"], &me["events"][0]["id"]), (&json!("scanner"), &json!(hall.event)));
    assert_eq!(
        (me["events"].as_array().unwrap().len(), &me["device"]["name"]),
        (1, &json!("Phone"))
    );
}

#[tokio::test]
async fn a_scan_can_be_undone_by_its_device_and_by_the_organiser() {
    let hall = Hall::open(2).await;
    let (north, _) = hall.device("North").await;
    let (south, _) = hall.device("South").await;
    let first = redeem(&north, &hall.tokens[0], "n").await;
    let undo = async |client: &stampede_testkit::Client, body: Value| {
        client.post("/api/checkin/undo", &body).await
    };
    let theirs = undo(&south, json!({ "scan": first["scan"] })).await.expect(409);
    assert_eq!(theirs["code"], "not_yours");
    undo(&south, json!({ "nonce": "n" })).await.expect(404);
    let reason = json!({ "nonce": "n", "reason": "wrong ticket" });
    for _ in 0..2 {
        let undone = undo(&north, reason.clone()).await.expect(200);
        assert_eq!(
            (&undone["undone"], &undone["scan"]["note"]),
            (&json!(true), &json!("wrong ticket"))
        );
    }
    let late = redeem(&north, &hall.tokens[0], "n").await;
    assert_eq!((&late["result"], &late["ok"]), (&json!("ok"), &json!(false)), "undone since");
    assert!(late["undoneAt"].is_string(), "{late}");
    let back = redeem(&south, &hall.tokens[0], "s").await;
    assert_eq!((&back["result"], &back["entries"]), (&json!("ok"), &json!(1)));
    let refused = redeem(&north, &hall.tokens[0], "x").await;
    let nothing = undo(&north, json!({ "scan": refused["scan"] })).await.expect(409);
    assert_eq!(nothing["code"], "nothing_to_undo");
    undo(&hall.ann(), json!({ "scan": back["scan"] })).await.expect(200);
    let statistics = hall.statistics().await;
    assert_eq!((&statistics["inside"], &statistics["entries"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn a_device_may_undo_for_fifteen_minutes_and_the_organiser_later() {
    let folder = temp_dir();
    let clock = Faults::of_disk(folder.path());
    let hall = Hall::open_with(2, &clock.environment(), None).await;
    let (device, _) = hall.device("Phone").await;
    for (number, nonce) in ["a", "b"].iter().enumerate() {
        assert_eq!(redeem(&device, &hall.tokens[number], nonce).await["result"], "ok");
    }
    let undo = async |minutes: i64, nonce: &str| {
        clock.change(|wrong| wrong.clock_ms = minutes * 60_000);
        device.post("/api/checkin/undo", &json!({ "nonce": nonce })).await
    };
    undo(14, "a").await.expect(200);
    let late = undo(16, "b").await.expect(409);
    assert_eq!(late["code"], "too_late", "{late}");
    undo(16, "a").await.expect(200);
    let second = hall.log().await[1]["id"].clone();
    hall.ann().post("/api/checkin/undo", &json!({ "scan": second })).await.expect(200);
    assert_eq!(hall.statistics().await["inside"], 0);
}

/// Whoever sets a phone's clock does not open the doors.
#[tokio::test]
async fn a_scan_is_decided_by_the_servers_clock_whatever_the_devices_says() {
    let hall = Hall::open(1).await;
    let (device, _) = hall.device("Phone").await;
    let hour = std::time::Duration::from_secs(3_600);
    let now = stampede_model::Timestamp::now();
    let main = format!("/api/lists/{}", hall.event);
    let scan_at = async |nonce: &str, at: stampede_model::Timestamp| {
        let body = json!({ "token": hall.tokens[0], "nonce": nonce, "at": at });
        text(&scan(&device, body).await["result"])
    };
    hall.ann().patch(&main, &json!({ "opensAt": now + hour })).await.expect(200);
    assert_eq!(scan_at("a", now + 24 * hour).await, "not_yet");
    let opened = json!({ "opensAt": now - hour, "closesAt": now + hour });
    hall.ann().patch(&main, &opened).await.expect(200);
    assert_eq!(scan_at("b", now - 24 * hour).await, "ok");
    let scans = hall.log().await;
    let logged: stampede_model::Timestamp = text(&scans[1]["at"]).parse().unwrap();
    assert!(logged.duration_since(now).as_secs().abs() < 300, "{scans:?}");
}

#[tokio::test]
async fn lists_say_who_may_enter_when_and_how_often() {
    let mut hall = Hall::open(1).await;
    let event = hall.event.clone();
    let ann = hall.ann();
    let lists = format!("/api/events/{event}/lists");
    let vip = json!({ "name": "VIP", "seats": ["vip*"], "entries": 2 });
    let vip = ann.post(&lists, &vip).await.expect(201);
    let later = json!({ "name": "Later", "opensAt": "2999-01-01T00:00:00Z" });
    let later = ann.post(&lists, &later).await.expect(201);
    let (device, _) = hall.device("Phone").await;
    let on = |list: &Value, token: &str, nonce: &str| json!({ "token": token, "nonce": nonce, "list": list["id"] });
    let token = hall.tokens[0].clone();
    assert_eq!(scan(&device, on(&vip, &token, "1")).await["result"], "not_on_list");
    assert_eq!(scan(&device, on(&later, &token, "2")).await["result"], "not_yet");
    let path = format!("/api/lists/{}", text(&later["id"]));
    let closed = json!({ "opensAt": null, "closesAt": "2020-01-01T00:00:00Z" });
    ann.patch(&path, &closed).await.expect(200);
    assert_eq!(scan(&device, on(&later, &token, "3")).await["result"], "expired");
    let wrong = json!({ "opensAt": "2021-01-01T00:00:00Z" });
    let problem = ann.patch(&path, &wrong).await.expect(422);
    assert_eq!(problem["errors"][0]["field"], "closesAt", "{problem}");

    // The built-in list can be changed: re-entry.
    let main = format!("/api/lists/{event}");
    ann.patch(&main, &json!({ "reentry": true })).await.expect(200);
    let step = async |kind: &str, nonce: &str| {
        let body = json!({ "token": token, "nonce": nonce, "kind": kind });
        text(&scan(&device, body).await["result"])
    };
    let mut results = Vec::new();
    for (number, kind) in ["exit", "entry", "entry", "exit", "exit", "entry"].iter().enumerate() {
        results.push(step(kind, &format!("r{number}")).await);
    }
    assert_eq!(results, ["not_inside", "ok", "already_redeemed", "ok", "not_inside", "ok"]);
    let more = hall.sell(&event, 1).await.remove(0);
    let batch = ann.get(&format!("/api/tickets/{}", hall.tickets[1])).await.expect(200);
    let only = json!({ "name": "Second order", "batches": [batch["batchId"]] });
    let only = ann.post(&lists, &only).await.expect(201);
    assert_eq!(scan(&device, on(&only, &token, "b1")).await["result"], "not_on_list");
    assert_eq!(scan(&device, on(&only, &more, "b2")).await["result"], "ok");
    let all = ann.get(&lists).await.expect(200);
    let names: Vec<&Value> = all["lists"].as_array().unwrap().iter().map(|l| &l["name"]).collect();
    assert_eq!(names, ["Main", "VIP", "Later", "Second order"]);
    ann.delete(&format!("/api/lists/{}", text(&vip["id"]))).await.expect(204);
    ann.delete(&format!("/api/lists/{}", text(&vip["id"]))).await.expect(404);
    let problem = ann.delete(&main).await.expect(409);
    assert_eq!(problem["code"], "built_in", "{problem}");
    let kept = ann.get(&lists).await.expect(200);
    assert_eq!(kept["lists"][0]["reentry"], true, "the built-in list stays as it was: {kept}");
    // An event goes with everything that belongs to it.
    ann.delete(&format!("/api/events/{event}?force=true")).await.expect(204);
    device.get("/api/checkin/me").await.expect(401);
}
