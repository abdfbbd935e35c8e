//! Bounces and complaints of mail that come later.

use serde_json::json;
use stampede_testkit::MailServer;

use super::{HERE, SECRET, completed, ledger, organiser, receipt, text, verb};
use crate::start;

#[tokio::test]
async fn bounces_and_complaints_are_signed_and_suppress() {
    let server = MailServer::start().await;
    let app = start(&[HERE, ("WORKER_COUNT", "1")]).await;
    let ann = organiser(&app, "ann");
    let url = format!("smtp://127.0.0.1:{}?tls=none", server.port());
    let other_secret = "whsec_AAAAsBQIhrscChlQIMV+b5sSYspob7oD";
    for (id, secret) in [("mail", SECRET), ("mail2", other_secret)] {
        let account = json!({
            "id": id, "channel": "smtp", "settings": { "url": url, "from": "News <news@example.org>" },
            "credentials": { "bounceSecret": secret },
            "pacing": { "limit": { "max": 1_000, "perMs": 1_000 } },
        });
        ann.post("/api/accounts", &account).await.expect(201);
    }
    let to = |name: &str| json!({ "email": format!("{name}@example.org"), "message": "Hello" });
    let body = json!({ "accountId": "mail", "name": "N", "recipients": [to("ann"), to("bob"), to("kim")] });
    let made = ann.post("/api/contracts", &body).await.expect(201);
    let path = format!("/api/contracts/{}", text(&made["id"]));
    verb(&ann, &path, "start").await.expect(200);
    completed(&ann, &path).await;
    let rows = ledger(&ann, &path).await;
    let (hook, row) = ("/hooks/bounces/mail", |n: usize| rows[n]["id"].clone());
    let hard = json!({ "recipient": row(0), "type": "hard" });

    let unsigned = app.stranger().post(hook, &hard).await.expect(401);
    assert_eq!(unsigned["code"], "wrong_signature", "{unsigned}");
    receipt(&app, hook, "b1", &hard, other_secret).await.expect(401);
    let foreign = receipt(&app, "/hooks/bounces/mail2", "b1", &hard, other_secret).await;
    assert_eq!(foreign.expect(200)["applied"], 0, "the row of another account");
    assert_eq!(ledger(&ann, &path).await, rows);
    for account in ["mail", "mail2"] {
        let list = ann.get(&format!("/api/suppressions?account={account}")).await.expect(200);
        assert_eq!(list["suppressions"], json!([]), "{account}");
    }

    for applied in [1, 0] {
        let told = receipt(&app, hook, "b1", &hard, SECRET).await.expect(200);
        assert_eq!(told["applied"], applied, "{told}");
    }
    let soft = json!({ "recipient": row(1), "type": "soft" });
    assert_eq!(receipt(&app, hook, "b2", &soft, SECRET).await.expect(200)["applied"], 1);
    let complaint = json!({ "email": "kim@example.org", "type": "complaint" });
    assert_eq!(receipt(&app, hook, "b3", &complaint, SECRET).await.expect(200)["suppressed"], 1);
    for wrong in [json!({ "type": "hard" }), json!({ "email": "a@example.org", "type": "x" })] {
        receipt(&app, hook, "b4", &wrong, SECRET).await.expect(400);
    }
    let found: Vec<(String, Option<String>)> = ledger(&ann, &path)
        .await
        .iter()
        .map(|row| (text(&row["status"]), row["code"].as_str().map(str::to_owned)))
        .collect();
    let failed = |code: &str| ("failed".to_owned(), Some(code.to_owned()));
    assert_eq!(found, [failed("bounce"), failed("soft_bounce"), ("sent".to_owned(), None)]);
    let list = ann.get("/api/suppressions?account=mail").await.expect(200);
    let mut suppressed: Vec<(String, String)> = list["suppressions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["address"]), text(&one["reason"])))
        .collect();
    suppressed.sort();
    let wanted = [("ann@example.org", "bounce"), ("kim@example.org", "complaint")];
    assert_eq!(suppressed, wanted.map(|(address, why)| (address.to_owned(), why.to_owned())));
}
