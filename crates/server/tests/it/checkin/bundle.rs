//! Bundles: what a scanner needs without a network; `stampede verify` reads them too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use stampede_testkit::Client;
use stampede_wire::checkin::bundle::Bundle;
use stampede_wire::checkin::packed::{unpack_bitmap, unpack_generations, unpack_serials};

use super::{Hall, redeem};
use crate::STAMPEDE;

async fn bundle(device: &Client, since: Option<u64>) -> Bundle {
    let query = since.map(|since| format!("?since={since}")).unwrap_or_default();
    let answer = device.get(&format!("/api/checkin/bundle{query}")).await.expect(200);
    let bundle: Bundle = serde_json::from_value(answer).unwrap();
    assert!(bundle.is_whole());
    bundle
}

/// What a scanner remembers.
#[derive(Debug, Default, PartialEq)]
struct Memory {
    seq: u64,
    void: BTreeSet<u32>,
    generations: BTreeMap<u32, u32>,
    admitted: BTreeMap<String, BTreeSet<u32>>,
    keys: Value,
}

impl Memory {
    fn learn(&mut self, bundle: &Bundle) {
        if bundle.full {
            *self = Self::default();
        }
        self.seq = bundle.seq;
        self.void.extend(unpack_serials(&bundle.voided).unwrap());
        self.generations.extend(unpack_generations(&bundle.generations).unwrap());
        for (list, serials) in &bundle.admitted {
            let known = self.admitted.entry(list.to_string()).or_default();
            known.extend(unpack_serials(serials).unwrap());
        }
        for (list, serials) in &bundle.readmitted {
            let known = self.admitted.entry(list.to_string()).or_default();
            for serial in unpack_serials(serials).unwrap() {
                known.remove(&serial);
            }
        }
        self.admitted.retain(|_, serials| !serials.is_empty());
        let void = &self.void;
        self.generations.retain(|serial, _| !void.contains(serial));
        self.keys = json!(bundle.keys);
    }
}

#[tokio::test]
async fn changes_on_top_of_a_bundle_are_the_next_bundle() {
    let mut hall = Hall::open(8).await;
    let (device, _) = hall.device("Phone").await;
    let mut known = Memory::default();
    known.learn(&bundle(&device, None).await);
    let admin = hall.app.admin();
    for step in 0..4 {
        let scan = redeem(&device, &hall.tokens[step], &format!("a{step}")).await;
        let ticket = |number: usize| format!("/api/tickets/{}", hall.tickets[number]);
        match step {
            0 => drop(admin.patch(&ticket(5), &json!({ "status": "void" })).await.expect(200)),
            1 => {
                let undo = json!({ "scan": scan["scan"] });
                admin.post("/api/checkin/undo", &undo).await.expect(200);
                admin.post(&format!("{}/reissue", ticket(6)), &json!({})).await.expect(200);
            }
            2 => {
                let path = format!("/api/events/{}/keys", hall.event);
                admin.post(&path, &json!({})).await.expect(201);
                admin.delete(&format!("{path}/1")).await.expect(200);
            }
            _ => {
                let event = hall.event.clone();
                hall.sell(&event, 2).await;
            }
        }
        let changes = bundle(&device, Some(known.seq)).await;
        assert!(!changes.full && changes.since == Some(known.seq));
        known.learn(&changes);
        let all = bundle(&device, None).await;
        let mut fresh = Memory::default();
        fresh.learn(&all);
        assert_eq!(known, fresh, "step {step}");
        assert_eq!(changes.capacity, all.capacity);
    }
    // A list for some tickets has its members; changing a list gives everything again.
    let list = json!({ "name": "VIP", "seats": ["vip*"] });
    hall.ann().post(&format!("/api/events/{}/lists", hall.event), &list).await.expect(201);
    let all = bundle(&device, Some(known.seq)).await;
    assert!(all.full && all.since.is_none());
    let members: Vec<Option<Vec<u32>>> = all
        .lists
        .iter()
        .map(|list| list.members.as_ref().map(|members| unpack_bitmap(members).unwrap()))
        .collect();
    assert_eq!(members, [None, Some(Vec::new())]);
    assert_eq!(all.device.unwrap().name, "Phone");
}

#[tokio::test]
async fn the_command_refuses_void_superseded_and_revoked_tickets_by_a_bundle() {
    let hall = Hall::open(4).await;
    let (device, _) = hall.device("Phone").await;
    let admin = hall.app.admin();
    let ticket = |number: usize| format!("/api/tickets/{}", hall.tickets[number]);
    admin.patch(&ticket(1), &json!({ "status": "void" })).await.expect(200);
    admin.post(&format!("{}/reissue", ticket(2)), &json!({})).await.expect(200);
    let file = hall.app.data_dir().join("bundle.json");
    let verify = |token: &str| {
        let output = std::process::Command::new(STAMPEDE)
            .args(["verify", token, "--json", "--keys"])
            .arg(&file)
            .env_clear()
            .env("DATA_DIR", "/nowhere")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer: Value = serde_json::from_str(&said).unwrap_or(Value::Null);
        (output.status.success(), answer["tickets"][0].clone(), error)
    };
    let save = async |query: &str| {
        let answer = device.get(&format!("/api/checkin/bundle{query}")).await;
        std::fs::write(&file, &answer.bytes).unwrap();
        answer.bytes
    };
    let bytes = save("").await;
    for (number, reason) in [(0, Value::Null), (1, json!("void")), (2, json!("superseded"))] {
        let (well, answer, error) = verify(&hall.tokens[number]);
        assert_eq!((well, &answer["reason"]), (reason.is_null(), &reason), "{answer} {error}");
        assert_eq!(answer["checkedWith"], "bundle");
    }
    admin.delete(&format!("/api/events/{}/keys/1", hall.event)).await.expect(200);
    save("").await;
    let (well, answer, _) = verify(&hall.tokens[3]);
    assert_eq!((well, &answer["reason"]), (false, &json!("revoked_key")), "{answer}");
    // Changes alone, and what was cut or altered, are refused.
    save("?since=1").await;
    assert!(verify(&hall.tokens[0]).2.contains("only changes"));
    let altered = String::from_utf8(bytes).unwrap();
    let altered = altered.replace("\"voided\":\"", "\"voided\":\"AQE=\",\"was\":\"");
    std::fs::write(&file, altered).unwrap();
    let (well, _, error) = verify(&hall.tokens[0]);
    assert!(!well && error.contains("cut or altered"), "{error}");
}

/// Tickets of the event whose bundle is measured; `STAMPEDE_BUNDLE_TICKETS=100000` measures a large one.
fn many() -> usize {
    let given = std::env::var("STAMPEDE_BUNDLE_TICKETS").ok();
    given.and_then(|number| number.parse().ok()).unwrap_or(1_000)
}

#[tokio::test]
#[allow(clippy::print_stderr)]
async fn the_bundle_of_a_large_event_is_small_enough_for_a_phone() {
    let (hall, many) = (Hall::open(1).await, many());
    let (device, _) = hall.device("Phone").await;
    let order = json!({ "target": hall.event, "quantity": many - 1, "name": "Guest" });
    hall.app.order(order).await;
    let size = async || device.get("/api/checkin/bundle").await.bytes.len();
    let before = size().await;
    assert!(before < 2_000, "{before} bytes before the doors open");
    let (mut inside, mut after) = (0, String::new());
    while inside < many * 3 / 5 {
        let path = format!("/api/tickets?target={}&limit=1000{after}", hall.event);
        let page = hall.app.admin().get(&path).await.expect(200);
        after = format!("&after={}", page["next"].as_str().unwrap_or_default());
        let now = stampede_model::Timestamp::now();
        let scans: Vec<Value> = page["tickets"].as_array().unwrap()[..]
            .iter()
            .take(many * 3 / 5 - inside)
            .map(|ticket| {
                json!({ "nonce": ticket["id"], "ticketId": ticket["id"], "at": now, "verdict": "ok" })
            })
            .collect();
        inside += scans.len();
        let upload = json!({ "deviceNow": now, "scans": scans });
        device.post("/api/checkin/scans", &upload).await.expect(200);
    }
    let full = size().await;
    let seq = bundle(&device, None).await.seq;
    let changes = device.get(&format!("/api/checkin/bundle?since={seq}")).await.bytes.len();
    eprintln!(
        "{many} tickets: {before} bytes, {full} with {inside} guests inside, {changes} without changes"
    );
    // A byte and a third for each guest, because most numbers differ by less than 128.
    assert!(full < before + inside * 3 / 2 + 1_000, "{full} bytes for {inside} guests");
    assert!(changes < 2_000, "{changes} bytes");
}
