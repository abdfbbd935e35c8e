//! Blocked tickets over HTTP: refused at the door, in bundles and by `stampede verify`, until the block is lifted.

use serde_json::{Value, json};

use super::{Hall, redeem};
use crate::STAMPEDE;
use crate::access::client;

#[tokio::test]
async fn a_blocked_ticket_is_refused_everywhere_until_the_block_is_lifted() {
    let hall = Hall::open(2).await;
    let (device, _) = hall.device("Phone").await;
    let ann = hall.ann();
    let path = format!("/api/tickets/{}/block", hall.tickets[0]);
    let blocks = format!("/api/events/{}/blocks", hall.event);
    let block = ann.put(&path, &json!({ "reason": "not paid" })).await.expect(200);
    assert_eq!((&block["number"], &block["reason"]), (&json!(1), &json!("not paid")), "{block}");
    let listed = ann.get(&blocks).await.expect(200);
    assert_eq!(listed["blocks"], json!([block]));

    let answer = redeem(&device, &hall.tokens[0], "1").await;
    assert_eq!((&answer["result"], &answer["ok"]), (&json!("blocked"), &json!(false)), "{answer}");
    assert_eq!(redeem(&device, &hall.tokens[1], "2").await["result"], "ok");
    let verdict = ann.post("/api/verify", &json!({ "token": hall.tokens[0] })).await.expect(200);
    assert_eq!((&verdict["reason"], &verdict["genuine"]), (&json!("blocked"), &json!(true)));
    assert_eq!(verdict["valid"], false);

    let (_, said) = verify_by_bundle(&hall, &device, None).await;
    assert_eq!(said["tickets"][0]["reason"], "blocked", "{said}");
    assert_eq!(hall.statistics().await["byReason"]["blocked"], 1);

    client(&hall.app, "organiser", "bob").delete(&path).await.expect(404);
    device.put(&path, &json!({})).await.expect(403);
    let problem = ann.put(&path, &json!({ "reasons": "x" })).await.expect(422);
    assert_eq!(problem["errors"][0]["field"], "reasons", "{problem}");
    for _ in 0..2 {
        ann.delete(&path).await.expect(204);
    }
    assert_eq!(ann.get(&blocks).await.expect(200)["blocks"], json!([]));
    assert_eq!(redeem(&device, &hall.tokens[0], "3").await["result"], "ok");
    let (well, said) = verify_by_bundle(&hall, &device, None).await;
    assert!(well, "{said}");
    let unknown = "/api/tickets/01890a5d-ac96-774b-bcce-b302099a8057/block";
    ann.put(unknown, &json!({})).await.expect(404);
}

/// What `stampede verify` says of the first ticket by a bundle of now, of which only so many bytes arrived.
async fn verify_by_bundle(
    hall: &Hall,
    device: &stampede_testkit::Client,
    arrived: Option<usize>,
) -> (bool, Value) {
    let file = hall.app.data_dir().join("bundle.json");
    let mut bytes = device.get("/api/checkin/bundle").await.bytes;
    bytes.truncate(arrived.unwrap_or(bytes.len()));
    std::fs::write(&file, bytes).unwrap();
    let output = std::process::Command::new(STAMPEDE)
        .args(["verify", &hall.tokens[0], "--json", "--keys"])
        .arg(&file)
        .env_clear()
        .env("DATA_DIR", "/nowhere")
        .output()
        .unwrap();
    (output.status.success(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}

#[tokio::test]
async fn a_bundle_that_was_cut_off_proves_nothing() {
    let hall = Hall::open(1).await;
    let (device, _) = hall.device("Phone").await;
    let length = device.get("/api/checkin/bundle").await.bytes.len();
    let (well, said) = verify_by_bundle(&hall, &device, None).await;
    assert!(well, "the whole bundle: {said}");
    for arrived in [0, 1, length / 4, length / 2, length - 80, length - 1] {
        let (well, said) = verify_by_bundle(&hall, &device, Some(arrived)).await;
        assert!(!well && said.is_null(), "{arrived} of {length} bytes: {said}");
    }
}

/// Guests show whatever their phones hold.
#[tokio::test]
async fn codes_of_other_systems_are_malformed_and_logged_once_each() {
    let hall = Hall::open(1).await;
    let (device, _) = hall.device("Phone").await;
    let codes = [
        "",
        "https://tickets.example/t/42?s=9f8e7d",
        "WIFI:T:WPA;S:Hall;P:secret;;",
        "BEGIN:VCARD\nVERSION:3.0\nFN:Ann\nEND:VCARD",
        "HC1:6BFOXN%TS3DH0YOJ58S S-W5HDC *M0II5XHC9B5G2+$N IOP-IA%NFQGRJPC%OQHIZC4.OI1RM8ZA.A5:S9MKN4NN3F85",
        "M1DOE/JOHN            EABC123 FRAJFKAB 0123 326J012A0025 100",
        "e9w6vcuqpnd7yttnxkvw4nw3hbcnv7mb",
        &"A".repeat(149),
        &"\u{0}".repeat(149),
        &"Ж".repeat(2_000),
    ];
    for (number, code) in codes.iter().enumerate() {
        let answer = redeem(&device, code, &format!("n{number}")).await;
        let wanted = if number == 7 { "unknown" } else { "malformed" };
        assert_eq!(answer["result"], wanted, "{code:?}: {answer}");
        assert_eq!(answer["ticket"], Value::Null);
    }
    assert_eq!(hall.log().await.len(), codes.len());
}
