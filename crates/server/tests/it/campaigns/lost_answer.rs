//! A worker is killed between the answer of the provider and the commit of what it said: nobody knows, so nothing is sent again.
//!
//! ```text
//!   message arrives ──▶ PostgreSQL is frozen ──▶ answered ──▶ kill -9 of the worker ──▶ PostgreSQL goes on ──▶ unknown
//! ```
//! No commit gets through while the database is frozen, however fast the worker is.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use stampede_testkit::{
    Answer, App, Client, Postgres, Provider, Reply, eventually, hub_signature, kill, send,
    whatsapp_receipts,
};

use super::recorder::limited;
use super::{HERE, TICKET_SECRET, campaign, completed, ledger, number, organiser, text, verb};
use crate::{PATIENCE, start};

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const APP_SECRET: &str = "0123456789abcdef0123456789abcdef";
const PHONE_NUMBER: &str = "106540352242922";
/// A receipt settles its recipient before it is answered: within this time.
const SETTLED: Duration = Duration::from_secs(1);

/// A server whose database is frozen as soon as its provider gets a message.
struct Lost {
    app: App,
    ann: Client,
    provider: Provider,
    postgres: Arc<Mutex<Postgres>>,
}

impl Lost {
    async fn start(reply: Reply) -> Self {
        let postgres = Postgres::start().await;
        let database = postgres.url();
        let postgres = Arc::new(Mutex::new(postgres));
        let frozen = postgres.clone();
        let provider = Provider::start(move |_| {
            frozen.lock().unwrap().freeze();
            reply.clone()
        })
        .await;
        let api = provider.url();
        let settings = [
            HERE,
            ("WORKER_COUNT", "1"),
            ("DATABASE_URL", database.as_str()),
            TICKET_SECRET,
            ("WHATSAPP_API_URL", api.as_str()),
        ];
        let app = start(&settings).await;
        let ann = organiser(&app, "ann");
        Self { app, ann, provider, postgres }
    }

    /// Sends one message whose answer is lost with the worker; returns the campaign and its recipient.
    async fn lose(&self, account: &str) -> (String, Value) {
        let path = campaign(&self.ann, account, 1).await;
        verb(&self.ann, &path, "start").await.expect(200);
        eventually(PATIENCE, || async { (self.provider.answered() == 1).then_some(()) }).await;
        self.app.workers().into_iter().for_each(kill);
        self.postgres.lock().unwrap().thaw();
        let ended = completed(&self.ann, &path).await;
        assert_eq!((number(&ended, "unknown"), number(&ended, "sent")), (1, 0), "{ended}");
        let row = ledger(&self.ann, &path).await.remove(0);
        assert_eq!(row["status"], "unknown", "{row}");
        (path, row)
    }

    /// Nobody sends what may have been sent: also when everything is started again.
    async fn assert_sent_once(&mut self) {
        self.app.kill_everything();
        self.app.start_again(&[]).await;
        assert_eq!(self.provider.asked().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_answer_was_lost_is_unknown_and_never_sent_again() {
    let mut lost = Lost::start(Reply::Json(200, json!({}))).await;
    let account = json!({
        "id": "hook", "channel": "webhook", "settings": { "url": lost.provider.url() },
        "credentials": { "secret": SECRET }, "pacing": limited(100, Duration::from_secs(1)),
    });
    lost.ann.post("/api/accounts", &account).await.expect(201);
    let (path, row) = lost.lose("hook").await;
    lost.assert_sent_once().await;
    // It stays so until a person says what became of it.
    assert_eq!(ledger(&lost.ann, &path).await, [row]);
    let sent = json!({ "action": "sent", "all": true });
    let settled = lost.ann.post(&format!("{path}/unknown"), &sent).await.expect(200);
    assert_eq!(settled["recipients"], 1, "{settled}");
    let contract = lost.ann.get(&path).await.expect(200);
    assert_eq!((number(&contract, "unknown"), number(&contract, "sent")), (0, 1), "{contract}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_of_whatsapp_settles_a_message_whose_answer_was_lost() {
    let accepted = json!({ "messaging_product": "whatsapp", "messages": [{ "id": "wamid.1" }] });
    let mut lost = Lost::start(Reply::Json(200, accepted)).await;
    let account = json!({
        "id": "wa", "channel": "whatsapp", "settings": { "phoneNumberId": PHONE_NUMBER },
        "credentials": { "accessToken": "EAAG-token-of-a-test-0123456789", "appSecret": APP_SECRET, "verifyToken": "our-verify-token" },
        "pacing": limited(100, Duration::from_secs(1)),
    });
    lost.ann.post("/api/accounts", &account).await.expect(201);
    let (path, row) = lost.lose("wa").await;
    let id = text(&row["id"]);
    let message = lost.provider.asked().remove(0).json();
    assert_eq!(message["biz_opaque_callback_data"], json!(id), "{message}");

    let body = whatsapp_receipts(PHONE_NUMBER, &[(&id, "wamid.1", "delivered", None)]);
    let forged = hub_signature("fedcba9876543210fedcba9876543210", &body);
    receipt(&lost.app, &forged, &body).await.expect(401);
    assert_eq!(ledger(&lost.ann, &path).await, [row]);

    let begun = Instant::now();
    let told = receipt(&lost.app, &hub_signature(APP_SECRET, &body), &body).await.expect(200);
    let took = begun.elapsed();
    assert_eq!(told["applied"], 1, "{told}");
    // What it says is committed before the answer: nothing is waited for.
    let settled = lost.ann.get(&format!("{path}/recipients/{id}")).await.expect(200);
    assert_eq!(settled["status"], "delivered", "{settled}");
    assert!(took < SETTLED, "a receipt settled an unknown message after {took:?}");
    println!("a receipt settled an unknown message after {took:?}");
    let contract = lost.ann.get(&path).await.expect(200);
    assert_eq!((number(&contract, "unknown"), number(&contract, "delivered")), (0, 1));
    lost.assert_sent_once().await;
}

/// Posts a receipt as Meta does.
async fn receipt(app: &App, signature: &str, body: &str) -> Answer {
    let request = app.stranger().request(Method::POST, "/hooks/whatsapp/wa");
    let request = request.header("x-hub-signature-256", signature);
    send(request.header("content-type", "application/json").body(body.to_owned())).await
}
