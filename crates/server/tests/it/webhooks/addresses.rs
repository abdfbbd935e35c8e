//! Addresses inside our networks are never reached: not by a name, not after the rules have changed.

use std::net::IpAddr;

use serde_json::json;
use stampede_testkit::Receiver;

use super::{HERE, becomes, sent_test, webhook};
use crate::{start, text};

/// A name of this machine that leads to an address that is not public, and that address.
fn name_of_this_machine() -> (String, IpAddr) {
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap();
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else { continue };
        let is_here = match address {
            IpAddr::V4(address) => address.is_loopback() || address.is_private(),
            IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
        };
        let mut names = words.filter(|name| *name != "localhost" && !name.ends_with(".localhost"));
        if let (true, Some(name)) = (is_here, names.next()) {
            return (name.to_owned(), address);
        }
    }
    panic!("this test needs a name in /etc/hosts: add a line such as `127.0.0.1 this-machine`");
}

#[tokio::test]
async fn a_name_that_leads_here_is_refused_when_it_is_connected_to() {
    let app = start(&[("WORKER_COUNT", "1"), ("WEBHOOK_ALLOW_PRIVATE", "192.0.2.1")]).await;
    let receiver = Receiver::start().await;
    let admin = app.admin();
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.0.0.1", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/", receiver.port());
        let problem = admin.post("/api/webhooks", &json!({ "url": url })).await.expect(422);
        assert!(text(&problem["detail"]).contains("not public"), "{problem}");
    }
    // Names of `localhost` are refused when the webhook is made; the name of this machine is like any other.
    let (name, address) = name_of_this_machine();
    let url = format!("http://{name}:{}/", receiver.port());
    let (id, _) = webhook(&admin, json!({ "url": url })).await;
    let path = sent_test(&admin, &id).await;
    let log = becomes(&admin, &path, "attempts", 1).await;
    let error = text(&log["lastError"]);
    assert!(error.contains("not public"), "{name}: {error}");
    assert!(!error.contains(&address.to_string()), "no address is told: {error}");
    assert!(receiver.received().is_empty());
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
