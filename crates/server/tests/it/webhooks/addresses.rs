//! Addresses inside our networks are never reached: not by a name, not after the rules have changed.

use serde_json::json;
use stampede_testkit::Receiver;

use super::{HERE, becomes, sent_test, webhook};
use crate::{start, text};

#[tokio::test]
async fn a_name_that_leads_here_is_refused_when_it_is_connected_to() {
    // `localhost.` names are refused when the webhook is made; the name of this machine is like any other.
    let app = start(&[("WORKER_COUNT", "1"), ("WEBHOOK_ALLOW_PRIVATE", "192.0.2.1")]).await;
    let receiver = Receiver::start().await;
    let admin = app.admin();
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.0.0.1", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/", receiver.port());
        let problem = admin.post("/api/webhooks", &json!({ "url": url })).await.expect(422);
        assert!(text(&problem["detail"]).contains("not public"), "{problem}");
    }
    let (id, _) = webhook(&admin, json!({ "url": "http://ip6-localhost:3000/" })).await;
    let path = sent_test(&admin, &id).await;
    let log = becomes(&admin, &path, "attempts", 1).await;
    let error = text(&log["lastError"]);
    // Whether the machine knows the name or not: nothing is connected to, and no address is told.
    assert!(error.contains("not public") || error.contains("cannot be resolved"), "{error}");
    assert!(!error.contains("::1"));
}

#[tokio::test]
async fn a_rule_that_has_changed_counts_for_webhooks_that_exist() {
    let mut app = start(&[HERE, ("WORKER_COUNT", "1")]).await;
    let receiver = Receiver::start().await;
    let (id, _) = webhook(&app.admin(), json!({ "url": receiver.url("/") })).await;
    sent_test(&app.admin(), &id).await;
    receiver.has(1).await;
    app.stop().await;
    app.start_again(&[("WEBHOOK_ALLOW_PRIVATE", "")]).await;
    let path = sent_test(&app.admin(), &id).await;
    let log = becomes(&app.admin(), &path, "attempts", 1).await;
    assert!(text(&log["lastError"]).contains("not public"), "{log}");
    assert_eq!(receiver.received().len(), 1);
}
