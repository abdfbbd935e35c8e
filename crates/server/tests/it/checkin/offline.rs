//! Scans that devices decided without a network, sent later.

use std::time::Duration;

use serde_json::{Value, json};
use stampede_model::Timestamp;
use stampede_testkit::Client;

use super::{Hall, redeem};
use crate::text;

/// A moment some seconds ago by a clock that is wrong by so many seconds.
fn ago(seconds: i64, wrong_by: i64) -> String {
    let moved = Duration::from_secs((seconds - wrong_by).unsigned_abs());
    let now = Timestamp::now();
    let at = if seconds >= wrong_by { now - moved } else { now + moved };
    at.to_string()
}

async fn upload(device: &Client, wrong_by: i64, scans: &[Value]) -> Value {
    let body = json!({ "deviceNow": ago(0, wrong_by), "unsent": 0, "scans": scans });
    device.post("/api/checkin/scans", &body).await.expect(200)
}

fn let_in(token: &str, nonce: &str, at: String) -> Value {
    json!({ "nonce": nonce, "token": token, "kind": "entry", "at": at, "offline": true, "verdict": "ok" })
}

#[tokio::test]
async fn guests_let_in_twice_are_conflicts_on_both_sides_in_any_order() {
    let hall = Hall::open(2).await;
    let (north, _) = hall.device("North").await;
    let (south, _) = hall.device("South").await;
    for (token, first, second) in
        [(&hall.tokens[0], &north, &south), (&hall.tokens[1], &south, &north)]
    {
        let answer = upload(first, 0, &[let_in(token, &token[100..], ago(100, 0))]).await;
        assert_eq!(answer["results"][0]["result"], "ok", "{answer}");
        let answer = upload(second, 0, &[let_in(token, &token[100..], ago(200, 0))]).await;
        let result = &answer["results"][0];
        assert_eq!(
            (&result["result"], &result["conflict"]),
            (&json!("already_redeemed"), &json!(true))
        );
        let again = upload(second, 0, &[let_in(token, &token[100..], ago(200, 0))]).await;
        assert_eq!(again["results"][0]["replayed"], true);
    }
    let path = format!("/api/events/{}/conflicts", hall.event);
    let conflicts = hall.ann().get(&path).await.expect(200);
    let conflicts = conflicts["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), 2, "{conflicts:?}");
    for pair in conflicts {
        assert_eq!(pair["scan"]["conflictsWith"], pair["other"]["id"], "{pair}");
        assert_eq!(pair["other"]["conflictsWith"], pair["scan"]["id"], "{pair}");
    }
    let statistics = hall.statistics().await;
    assert_eq!((&statistics["conflicts"], &statistics["inside"]), (&json!(2), &json!(4)));
}

#[tokio::test]
async fn a_device_whose_clock_is_a_day_off_is_understood() {
    let hall = Hall::open(3).await;
    for (number, wrong_by) in [(0, -86_400), (1, 86_400)] {
        let (device, id) = hall.device("Phone").await;
        let token = &hall.tokens[number];
        let scans = [
            json!({ "nonce": "out", "token": token, "kind": "exit", "at": ago(60, wrong_by),
                    "offline": true, "verdict": "ok" }),
            let_in(token, "in", ago(600, wrong_by)),
        ];
        let answer = upload(&device, wrong_by, &scans).await;
        let results: Vec<&Value> =
            answer["results"].as_array().unwrap().iter().map(|r| &r["result"]).collect();
        assert_eq!(results, ["ok", "ok"], "the earlier moment first: {answer}");
        assert_eq!(answer["results"][0]["nonce"], "out", "in the order of the request");
        let path = format!("/api/events/{}/scans?device={id}", hall.event);
        let log = hall.ann().get(&path).await.expect(200);
        let came = &log["scans"][1];
        let at: Timestamp = text(&came["at"]).parse().unwrap();
        let age = Timestamp::now().duration_since(at).as_secs();
        assert!((595..700).contains(&age), "{age} {came}");
        assert_eq!(came["offline"], true);
    }
}

#[tokio::test]
async fn uploads_are_checked_as_a_whole_and_taken_one_by_one() {
    let hall = Hall::open(3).await;
    let (device, id) = hall.device("Phone").await;
    assert_eq!(redeem(&device, &hall.tokens[0], "a").await["result"], "ok");
    let refused = json!({ "nonce": "b", "token": hall.tokens[1], "kind": "entry", "at": ago(9, 0),
                          "offline": true, "verdict": "not_on_list" });
    let nonsense = let_in("nonsense", "c", ago(8, 0));
    let scans = [let_in(&hall.tokens[0], "a", ago(10, 0)), refused, nonsense];
    let answer = upload(&device, 0, &scans).await;
    let told: Vec<(String, bool, bool)> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (text(&r["result"]), r["replayed"] == true, r["conflict"] == true))
        .collect();
    let wanted = [("ok", true, false), ("not_on_list", false, false), ("malformed", false, true)];
    assert_eq!(told, wanted.map(|(word, a, b)| (word.to_owned(), a, b)));
    let devices = hall.ann().get(&format!("/api/events/{}/devices", hall.event)).await.expect(200);
    let seen = devices["devices"].as_array().unwrap().iter().find(|d| d["id"] == id.as_str());
    assert_eq!(seen.unwrap()["unsent"], 0);
    for (body, field) in [
        (json!({ "scans": [] }), "deviceNow"),
        (json!({ "deviceNow": ago(0, 0), "scans": [{}] }), "scans[0].nonce"),
        (
            json!({ "deviceNow": ago(0, 0), "scans": [let_in("t", "n", "yesterday".into())] }),
            "scans[0].at",
        ),
        (json!({ "deviceNow": ago(0, 0), "scans": vec![json!({}); 1_001] }), "scans"),
    ] {
        let problem = device.post("/api/checkin/scans", &body).await.expect(422);
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
}

#[tokio::test]
async fn a_thousand_scans_are_one_upload() {
    let hall = Hall::open(1_000).await;
    let (device, _) = hall.device("Phone").await;
    let scans: Vec<Value> = hall
        .tokens
        .iter()
        .enumerate()
        .map(|(number, token)| let_in(token, &number.to_string(), ago(1_000 - number as i64, 0)))
        .collect();
    let answer = upload(&device, 0, &scans).await;
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 1_000);
    assert!(results.iter().all(|result| result["result"] == "ok"));
    assert_eq!(hall.statistics().await["inside"], 1_000);
}
