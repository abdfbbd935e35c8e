//! Recipients that come, texts that they get, people who want no more.

use std::collections::BTreeMap;

use serde_json::json;
use stampede_campaign::{Imported, Moved, Previewed, Purpose, RecipientRow, Tested};
use stampede_model::campaign::{Content, Template};

use crate::stage::{Stage, campaign, fast, rows};

fn named(address: &str, name: &str) -> RecipientRow {
    let fields = BTreeMap::from([("name".to_owned(), name.to_owned())]);
    RecipientRow { address: address.to_owned(), fields, ..RecipientRow::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_and_bad_addresses_are_told_and_skipped() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 0).await;
    let refused = stage.campaigns.start(id, None, None).await.unwrap();
    assert!(matches!(refused, Moved::NotReady(_)), "{refused:?}");
    let mut list = rows(3);
    list.extend([rows(1).remove(0), RecipientRow::default()]);
    for purpose in [Purpose::DryRun, Purpose::Import] {
        let done = stage.campaigns.import_rows(id, list.clone(), purpose).await.unwrap();
        let Imported::Done(report) = done else { panic!("{done:?}") };
        let counted = (report.added, report.duplicates, report.invalid, report.rows);
        assert_eq!(counted, (3, 1, 1, 5), "{purpose:?}");
        assert_eq!((report.mistakes_total, report.mistakes[0].line), (1, Some(5)));
        assert_eq!(report.duplicate_rows[0].line, Some(4));
        let total = stage.contract(id).await.counts.total;
        assert_eq!(total, if purpose == Purpose::DryRun { 0 } else { 5 });
    }
    stage.started(id).await;
    let late = stage.campaigns.import_rows(id, rows(1), Purpose::Import).await.unwrap();
    assert!(matches!(late, Imported::WrongState(_)), "{late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_validated_previewed_tested_and_filled() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let mut new = campaign(&account);
    let text = Some("Hi {{ name }}: {{ unsubscribeUrl }}".to_owned());
    new.content = Content::Template(Template { text, ..Template::default() });
    let people = vec![named("ann@example.com", "Ann"), named("bob@example.com", "")];
    let id = stage.campaign_with(new, people).await;
    let validation = stage.campaigns.validate(id).await.unwrap().unwrap();
    assert!(validation.ok, "{validation:?}");
    assert_eq!((validation.to_send, validation.looked_at), (2, 2));
    assert_eq!(validation.empty_fields[0].positions, [2]);
    let Previewed::Done(preview) = stage.campaigns.preview(id, 1).await.unwrap() else {
        panic!("it has no mistakes");
    };
    assert!(preview.text.starts_with("Hi Ann: https://"), "{}", preview.text);
    let to = ["test@example.com".to_owned()];
    let Tested::Done(tested) = stage.campaigns.test_send(id, &to, None).await.unwrap() else {
        panic!("the account works");
    };
    assert_eq!((tested[0].outcome.as_str(), tested[0].address.as_str()), ("sent", to[0].as_str()));
    assert_eq!(stage.contract(id).await.counts.pending, 2, "the ledger does not know of it");
    let _worker = stage.work();
    stage.started(id).await;
    stage.completed(id).await;
    let received = stage.receiver.received();
    let to_ann = received
        .iter()
        .map(|request| request.json())
        .find(|body| body["recipient"]["address"] == "ann@example.com")
        .unwrap();
    let text = to_ann["message"]["text"].as_str().unwrap().to_owned();
    // The link in the message works, twice is once, and a forged one does not.
    let token = text.rsplit("/u/").next().unwrap();
    let seen = stage.campaigns.unsubscription(token).await.unwrap().unwrap();
    assert_eq!((seen.address.as_str(), seen.is_done), ("ann@example.com", false));
    for _ in 0..2 {
        assert!(stage.campaigns.unsubscribe(token).await.unwrap().unwrap().is_done);
    }
    let last = if token.ends_with('A') { "B" } else { "A" };
    let forged = format!("{}{last}", &token[..token.len() - 1]);
    assert!(stage.campaigns.unsubscribe(&format!("{forged}x")).await.unwrap().is_none());
    // Whoever unsubscribed is left out of the next campaign.
    let next = stage.campaign(&account, 0).await;
    let ann = vec![RecipientRow { message: Some("Hi".into()), ..named("ann@example.com", "") }];
    let done = stage.campaigns.import_rows(next, ann, Purpose::Import).await.unwrap();
    let Imported::Done(report) = done else { panic!("{done:?}") };
    assert_eq!((report.added, report.suppressed), (0, 1));
}
