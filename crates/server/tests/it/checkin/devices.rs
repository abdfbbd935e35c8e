//! Devices: enrolled with a code that works once, revoked at once.

use serde_json::json;

use super::{Hall, redeem};
use crate::text;

#[tokio::test]
async fn a_device_is_enrolled_once_and_a_revoked_one_is_refused_at_once() {
    let hall = Hall::open(2).await;
    let path = format!("/api/events/{}/devices", hall.event);
    let ann = hall.ann();
    let made = ann.post(&path, &json!({ "name": "Phone 1" })).await.expect(201);
    let (shown, code) = (text(&made["key"]), text(&made["enrolCode"]));
    assert_eq!(made["enrolUrl"], format!("/gate#enrol={code}"));
    assert_eq!(redeem(&hall.app.client(&shown), &hall.tokens[0], "1").await["result"], "ok");

    let stranger = hall.app.stranger();
    let wrong = stranger.post("/api/checkin/enrol", &json!({ "code": "WRONG" })).await.expect(404);
    assert_eq!(wrong["code"], "wrong_code");
    // Typed by hand: in small letters, with spaces.
    let typed = format!("{} {}", &code[..8].to_lowercase(), &code[8..]);
    let enrolled = stranger.post("/api/checkin/enrol", &json!({ "code": typed })).await.expect(200);
    assert_eq!(enrolled["device"]["id"], made["device"]["id"]);
    stranger.post("/api/checkin/enrol", &json!({ "code": code })).await.expect(404);
    let fresh = hall.app.client(&text(&enrolled["key"]));
    let again = json!({ "token": hall.tokens[0], "nonce": "1" });
    hall.app.client(&shown).post("/api/checkin/redeem", &again).await.expect(401);
    let replayed = redeem(&fresh, &hall.tokens[0], "1").await;
    assert_eq!((&replayed["result"], &replayed["replayed"]), (&json!("ok"), &json!(true)));

    let device = text(&made["device"]["id"]);
    let listed = ann.get(&path).await.expect(200);
    assert!(listed["devices"][0]["lastSeenAt"].is_string(), "{listed}");
    hall.app
        .client(&text(&enrolled["key"]))
        .delete(&format!("/api/devices/{device}"))
        .await
        .expect(403);
    ann.delete(&format!("/api/devices/{device}")).await.expect(204);
    let body = json!({ "token": hall.tokens[1], "nonce": "2" });
    fresh.post("/api/checkin/redeem", &body).await.expect(401);
    let listed = ann.get(&path).await.expect(200);
    assert!(listed["devices"][0]["revokedAt"].is_string(), "{listed}");
    assert_eq!(hall.log().await.len(), 1);

    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    for field in ["gate", "list"] {
        let mut body = json!({ "name": "Phone 2" });
        body[field] = json!(unknown);
        let problem = ann.post(&path, &body).await.expect(422);
        assert_eq!(problem["errors"][0]["field"], field);
    }
    let past = json!({ "name": "Phone 2", "expiresAt": "2020-01-01T00:00:00Z" });
    ann.post(&path, &past).await.expect(422);
}

#[tokio::test]
async fn wrong_codes_cost() {
    let hall = Hall::open(1).await;
    let stranger = hall.app.stranger();
    let mut statuses = Vec::new();
    for number in 0..65 {
        let code = json!({ "code": format!("GUESS{number}") });
        statuses.push(stranger.post("/api/checkin/enrol", &code).await.status);
    }
    assert_eq!((statuses[0], statuses[64]), (404, 429), "{statuses:?}");
    // A right code works all the same.
    let path = format!("/api/events/{}/devices", hall.event);
    let made = hall.ann().post(&path, &json!({ "name": "Phone" })).await.expect(201);
    stranger.post("/api/checkin/enrol", &json!({ "code": made["enrolCode"] })).await.expect(200);
}

#[tokio::test]
async fn a_device_whose_answer_was_lost_gets_the_same_key_again() {
    let hall = Hall::open(1).await;
    let ann = hall.ann();
    let path = format!("/api/events/{}/devices", hall.event);
    let made = ann.post(&path, &json!({ "name": "Phone" })).await.expect(201);
    let stranger = hall.app.stranger();
    let with = |nonce: &str| json!({ "code": made["enrolCode"], "nonce": nonce });
    let short = stranger.post("/api/checkin/enrol", &with("short")).await.expect(422);
    assert_eq!(short["errors"][0]["field"], "nonce");
    let nonce = "a-nonce-of-this-phone";
    let first = stranger.post("/api/checkin/enrol", &with(nonce)).await.expect(200);
    let again = stranger.post("/api/checkin/enrol", &with(nonce)).await.expect(200);
    assert_eq!((&first["key"], &first["device"]["id"]), (&again["key"], &again["device"]["id"]));
    stranger.post("/api/checkin/enrol", &with("a-nonce-of-another-phone")).await.expect(404);
    stranger.post("/api/checkin/enrol", &json!({ "code": made["enrolCode"] })).await.expect(404);
    let phone = hall.app.client(&text(&first["key"]));
    phone.get("/api/checkin/me").await.expect(200);
    ann.delete(&format!("/api/devices/{}", text(&made["device"]["id"]))).await.expect(204);
    stranger.post("/api/checkin/enrol", &with(nonce)).await.expect(404);
}
