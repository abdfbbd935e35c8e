//! A ticket proves itself: over HTTP, on the command line, and without any server.

use serde_json::{Value, json};
use stampede_testkit::{App, eventually, pdf_codes};

use crate::{PATIENCE, batch_ended, create_event, start, text};

/// An order of two tickets with their PDFs, and the token of the first.
struct Issued {
    app: App,
    event: String,
    tickets: Vec<String>,
    token: String,
}

async fn issued() -> Issued {
    let app = start(&[]).await;
    let event = create_event(&app).await;
    let order = app
        .order(json!({ "target": event, "quantity": 2, "name": "Ann Smith", "seat": "A-1" }))
        .await;
    batch_ended(&app, &text(&order["batchId"])).await;
    let tickets: Vec<String> = order["tickets"].as_array().unwrap().iter().map(text).collect();
    let mut issued = Issued { app, event, tickets, token: String::new() };
    issued.token = issued.printed_token().await;
    issued
}

impl Issued {
    /// What the QR code in the first ticket's present PDF says.
    async fn printed_token(&self) -> String {
        let path = format!("/api/tickets/{}/pdf", self.tickets[0]);
        let pdf = eventually(PATIENCE, || async {
            let answer = self.app.admin().get(&path).await;
            if answer.status == 200 { Ok(answer.bytes) } else { Err(answer.body.to_string()) }
        });
        let [code] = pdf_codes(&pdf.await).try_into().expect("one QR code");
        code
    }

    async fn verdict(&self, token: &str) -> Value {
        self.app.admin().post("/api/verify", &json!({ "token": token })).await.expect(200)
    }

    async fn assert_refused(&self, token: &str, genuine: bool, reason: &str) {
        let verdict = self.verdict(token).await;
        let shown = (&verdict["valid"], &verdict["genuine"], &verdict["reason"]);
        assert_eq!(shown, (&json!(false), &json!(genuine), &json!(reason)), "{verdict}");
    }

    fn keys(&self) -> String {
        format!("/api/events/{}/keys", self.event)
    }
}

#[tokio::test]
async fn a_ticket_proves_itself_by_http_by_command_and_offline() {
    let issued = issued().await;
    let (app, token) = (&issued.app, issued.token.as_str());
    let verdict = issued.verdict(token).await;
    assert_eq!((&verdict["genuine"], &verdict["valid"]), (&json!(true), &json!(true)), "{verdict}");
    assert_eq!(verdict["reason"], Value::Null);
    assert_eq!(verdict["event"]["id"], issued.event);
    let ticket = &verdict["ticket"];
    assert_eq!(ticket["id"], issued.tickets[0]);
    assert_eq!((&ticket["number"], &ticket["name"]), (&json!(1), &json!("Ann Smith")));

    let file = app.data_dir().join(format!("public/tickets/ticket-{}.pdf", issued.tickets[1]));
    for (given, number) in [(token, "0001"), (file.to_str().unwrap(), "0002")] {
        let (well, output) = app.command(&["verify", given]);
        assert!(well, "{output}");
        for part in ["GENUINE\n", "Opening Night", number, "Ann Smith", "A-1"] {
            assert!(output.contains(part), "{part:?} is not in: {output}");
        }
    }

    let (well, output) = app.command(&["verify", file.to_str().unwrap(), "--json"]);
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert!(well && answer["accepted"] == true, "{output}");
    assert_eq!(answer["tickets"][0]["ticket"]["number"], 2, "{output}");
    let (well, output) = app.command(&["verify", "nonsense", "--json"]);
    let answer: Value = serde_json::from_str(output.lines().next().unwrap()).unwrap();
    assert!(!well && answer["tickets"][0]["reason"] == "malformed", "{output}");

    let keys = app.data_dir().join("keys.json");
    std::fs::write(&keys, app.admin().get(&issued.keys()).await.bytes).unwrap();
    let offline = |given: &str| {
        // No database and no server: only the file.
        std::process::Command::new(crate::STAMPEDE)
            .args(["verify", given, "--keys"])
            .arg(&keys)
            .env_clear()
            .env("DATA_DIR", "/nowhere")
            .output()
            .unwrap()
    };
    let output = offline(token);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("GENUINE") && said.contains("0001"), "{said}");
    let output = offline(&token.replace(&token[140..], &token[..9]));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("NOT GENUINE"), "{said}");
}

#[tokio::test]
async fn what_is_not_ours_is_refused_with_a_reason() {
    let issued = issued().await;
    let token = &issued.token;
    let swapped = |at: usize| {
        let other = if &token[at..=at] == "A" { "B" } else { "A" };
        format!("{}{other}{}", &token[..at], &token[at + 1..])
    };
    issued.assert_refused(&swapped(60), false, "forged").await;
    issued.assert_refused(&swapped(38), false, "forged").await;
    issued.assert_refused(&swapped(10), false, "unknown_event").await;
    for text in ["", "hello", &token[..148], &token.to_lowercase(), &issued.tickets[0]] {
        issued.assert_refused(text, false, "malformed").await;
    }
    let elsewhere = create_event(&issued.app).await;
    let question = json!({ "token": token, "target": elsewhere });
    let verdict = issued.app.admin().post("/api/verify", &question).await.expect(200);
    assert_eq!(verdict["reason"], "foreign_event");
    for body in [json!({}), json!({ "token": 7 }), json!({ "token": token, "target": "x" })] {
        issued.app.admin().post("/api/verify", &body).await.expect(422);
    }

    let other = issued.app.data_dir().join("letter.pdf");
    std::fs::write(&other, "Dear Sir or Madam").unwrap();
    for (given, message) in [
        (other.to_str().unwrap(), "is not a PDF"),
        ("/no/such.pdf", "there is no file"),
        (token, "GENUINE"),
    ] {
        assert!(issued.app.command(&["verify", given]).1.contains(message), "{given}");
    }
}

#[tokio::test]
async fn paper_of_a_changed_or_withdrawn_ticket_is_refused() {
    let issued = issued().await;
    let path = format!("/api/tickets/{}", issued.tickets[0]);
    issued.app.admin().patch(&path, &json!({ "price": 12 })).await.expect(200);
    assert_eq!(issued.verdict(&issued.token).await["valid"], true, "a price admits nobody else");
    issued.app.admin().patch(&path, &json!({ "name": "Bob" })).await.expect(200);
    issued.assert_refused(&issued.token, true, "superseded").await;
    let second = issued.printed_token().await;
    assert_eq!(issued.verdict(&second).await["ticket"]["name"], "Bob");

    let reissued =
        issued.app.admin().post(&format!("{path}/reissue"), &json!({})).await.expect(200);
    assert_eq!((&reissued["generation"], &reissued["number"]), (&json!(3), &json!(1)));
    issued.assert_refused(&second, true, "superseded").await;
    let third = issued.printed_token().await;
    assert_eq!(issued.verdict(&third).await["valid"], true);
    issued.app.admin().patch(&path, &json!({ "status": "void" })).await.expect(200);
    issued.assert_refused(&third, true, "void").await;
    let (well, output) = issued.app.command(&["verify", &third]);
    assert!(!well && output.contains("NOT VALID: genuine, but the ticket is void"), "{output}");
    issued.app.admin().post(&format!("{path}/reissue"), &json!({})).await.expect(409);
    issued.app.admin().delete(&path).await.expect(204);
    issued.assert_refused(&third, true, "unknown_ticket").await;
}

#[tokio::test]
async fn keys_are_rotated_without_harm_and_revoked_with_effect() {
    let issued = issued().await;
    let (app, keys) = (&issued.app, issued.keys());
    let key = app.admin().post(&keys, &json!({})).await.expect(201);
    assert_eq!((&key["kid"], text(&key["publicKey"]).len()), (&json!(2), 64));
    let listed = app.admin().get(&keys).await.expect(200);
    assert_eq!((&listed["signing"], listed["keys"].as_array().unwrap().len()), (&json!(2), 2));
    assert!(!listed.to_string().contains("seed"), "{listed}");
    assert_eq!(issued.verdict(&issued.token).await["valid"], true);
    assert_eq!(issued.printed_token().await, issued.token, "what was printed stays as it is");

    let revoked = app.admin().delete(&format!("{keys}/1")).await.expect(200);
    assert_eq!((&revoked["signing"], &revoked["ticketsToHandOutAgain"]), (&json!(2), &json!(2)));
    issued.assert_refused(&issued.token, false, "revoked_key").await;
    let anew = issued.printed_token().await;
    assert_eq!(issued.verdict(&anew).await["token"]["kid"], 2);
    for unknown in ["9", "x", "-1", "99999999999"] {
        app.admin().delete(&format!("{keys}/{unknown}")).await.expect(404);
    }
}

#[tokio::test]
async fn keys_and_verdicts_are_the_owners_own() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let client = |role: &str, user: &str| {
        let (made, key) = app.command(&["token", "create", "--role", role, "--user", user]);
        assert!(made, "{key}");
        app.client(key.trim())
    };
    let (ann, bob) = (client("organiser", "ann"), client("organiser", "bob"));
    let viewer = client("viewer", "ann");
    let event = ann.post("/api/events", &json!({ "name": "Ann's night" })).await.expect(201);
    let keys = format!("/api/events/{}/keys", text(&event["id"]));
    let id: stampede_model::EventId = text(&event["id"]).parse().unwrap();
    let token = stampede_model::Signer::new(id, 1, &[1; 32]).sign(1, 1).to_string();
    let question = json!({ "token": token });

    bob.get(&keys).await.expect(403);
    bob.post(&keys, &json!({})).await.expect(403);
    bob.delete(&format!("{keys}/1")).await.expect(403);
    bob.post("/api/verify", &question).await.expect(403);
    viewer.get(&keys).await.expect(200);
    assert_eq!(viewer.post("/api/verify", &question).await.expect(200)["reason"], "forged");
    viewer.post(&keys, &json!({})).await.expect(403);
    viewer.delete(&format!("{keys}/1")).await.expect(403);
    ann.post(&keys, &json!({})).await.expect(201);
}
