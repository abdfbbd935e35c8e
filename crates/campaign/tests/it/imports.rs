//! Imports: dry and real, two at once, broken off; and the ten thousand recipients that come out again.

use std::fmt::Write;
use std::fs::File;

use serde_json::json;
use stampede_audience::Format;
use stampede_campaign::{ImportFile, Imported, Moved, NewSuppressions, Purpose, RecipientRow};
use stampede_model::CampaignId;
use stampede_model::campaign::{Channel, SkipReason, SuppressionReason};
use stampede_store::RecipientFilter;
use stampede_testkit::temp_dir;
use stampede_wire::campaigns::ImportReport;

use crate::stage::{Stage, campaign, fast, now, rows};

fn file(text: &str, purpose: Purpose) -> ImportFile {
    let folder = temp_dir();
    let path = folder.path().join("people.csv");
    std::fs::write(&path, text).unwrap();
    // It stays open when its folder is removed.
    let file = File::open(&path).unwrap();
    ImportFile { file, format: Format::Csv(None), charset: None, purpose }
}

fn people(count: usize) -> String {
    let mut text = "chat,name\n".to_owned();
    for number in 1..=count {
        writeln!(text, "{number},Guest {number}").unwrap();
    }
    text
}

async fn telegram(stage: &Stage) -> CampaignId {
    let token = json!({ "token": "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" });
    let account = stage.account_of(Channel::Telegram, json!({}), token, fast()).await;
    stage.campaign_with(campaign(&account), Vec::new()).await
}

async fn import(stage: &Stage, id: CampaignId, text: &str, purpose: Purpose) -> ImportReport {
    match stage.campaigns.import_file(id, file(text, purpose)).await.unwrap() {
        Imported::Done(report) => *report,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_what_the_import_then_does() {
    let stage = Stage::start().await;
    let id = telegram(&stage).await;
    import(&stage, id, &people(3), Purpose::Import).await;
    let new = NewSuppressions {
        owner: "ann".to_owned(),
        account: None,
        addresses: vec!["2".to_owned(), "5".to_owned(), "2300".to_owned()],
        reason: SuppressionReason::Manual,
        by: "ann".to_owned(),
        country: None,
    };
    stage.campaigns.suppress(new).await.unwrap();
    // More than two pieces; repeated in another piece, in the same one, and once more.
    let mut text = people(2_400);
    text += "7,Again\n2300,Again\nnobody,No chat\n9999,New\n9999,New again\n7,Once more\n,Nobody\n";
    let dry = import(&stage, id, &text, Purpose::DryRun).await;
    assert_eq!(stage.contract(id).await.counts.total, 3, "nothing is written");
    let real = import(&stage, id, &text, Purpose::Import).await;
    assert_eq!(dry, ImportReport { dry_run: true, ..real.clone() });
    let counted = (real.rows, real.added, real.duplicates, real.suppressed, real.invalid);
    assert_eq!(counted, (2_407, 2_396, 7, 2, 2));
    let ledger = stage.ledger(id).await;
    let last = ledger.last().unwrap();
    assert_eq!(
        (last.line, last.address.as_str()),
        (Some(2_408), ""),
        "a row without an address is kept, too"
    );
    assert_eq!(
        (last.skipped, last.detail.as_deref()),
        (Some(SkipReason::Invalid), Some("is missing"))
    );
    let lines: Vec<_> = real.duplicate_rows.iter().map(|row| (row.line, row.first_line)).collect();
    let wanted = [(2, 2), (3, 3), (4, 4), (2_402, 8), (2_403, 2_301), (2_406, 2_405), (2_407, 8)];
    assert_eq!(lines, wanted.map(|(line, first)| (Some(line), Some(first))));
    let again = import(&stage, id, &text, Purpose::DryRun).await;
    assert_eq!((again.added, again.suppressed, again.duplicates), (0, 0, 2_405));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_refused_adds_nothing_and_tells_all_of_its_mistakes() {
    let stage = Stage::start().await;
    let id = telegram(&stage).await;
    for (text, told) in [
        ("chat,telegram,tz\n1,2,Mars\n".to_owned(), "two columns hold the address"),
        (format!("{}nobody,x\n5,\"never closed\n", people(2_000)), "is never closed"),
    ] {
        let done = stage.campaigns.import_file(id, file(&text, Purpose::Import)).await.unwrap();
        let Imported::Mistaken(report) = done else { panic!("{done:?}") };
        assert_eq!((report.mistakes_total, report.added), (2, 0));
        assert!(report.mistakes[0].message.contains(told), "{:?}", report.mistakes);
        assert_eq!(stage.contract(id).await.counts.total, 0, "what was added is removed");
    }
    assert_eq!(import(&stage, id, &people(1), Purpose::Import).await.added, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_imports_at_the_same_time_none_is_half() {
    let stage = Stage::start().await;
    let id = telegram(&stage).await;
    let text = people(3_000);
    let (one, two) = tokio::join!(
        stage.campaigns.import_file(id, file(&text, Purpose::Import)),
        stage.campaigns.import_file(id, file(&text, Purpose::Import)),
    );
    let mut done = 0;
    for imported in [one.unwrap(), two.unwrap()] {
        match imported {
            Imported::Done(report) => {
                assert_eq!(report.rows, 3_000);
                done += 1;
            }
            Imported::Busy => {}
            other => panic!("{other:?}"),
        }
    }
    let counts = stage.contract(id).await.counts;
    assert!(done > 0);
    assert_eq!((counts.pending, counts.total), (3_000, done * 3_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_is_broken_off_is_undone_and_never_half() {
    let stage = Stage::start().await;
    let id = telegram(&stage).await;
    let (campaigns, large) = (stage.campaigns.clone(), file(&people(200_000), Purpose::Import));
    let importing = tokio::spawn(async move { campaigns.import_file(id, large).await });
    stage.until(id, |contract| contract.counts.total > 0).await;
    importing.abort();
    assert!(importing.await.unwrap_err().is_cancelled());
    let refused = stage.campaigns.start(id, None, None).await.unwrap();
    assert!(matches!(refused, Moved::NotReady(_) | Moved::Importing), "{refused:?}");
    for purpose in [Purpose::DryRun, Purpose::Import] {
        let busy = stage.campaigns.import_file(id, file(&people(1), purpose)).await.unwrap();
        assert!(matches!(busy, Imported::Busy), "{busy:?}");
    }
    // As the reconciler does, which waits longer.
    let later = now() + std::time::Duration::from_secs(1);
    assert_eq!(stage.store.undo_dead_imports(later).await.unwrap(), 1);
    assert_eq!(stage.contract(id).await.counts.total, 0);
    assert_eq!(import(&stage, id, &people(5), Purpose::Import).await.added, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_the_database_refuses_is_undone_at_once() {
    let stage = Stage::start().await;
    let id = telegram(&stage).await;
    stage.sql(
        "CREATE TRIGGER refused BEFORE INSERT ON campaign_recipients WHEN NEW.address = '1500' \
         BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
    let failed = stage.campaigns.import_file(id, file(&people(3_000), Purpose::Import)).await;
    assert!(failed.is_err(), "{failed:?}");
    let mut list = rows(2_000);
    for (row, number) in list.iter_mut().zip(1..) {
        row.address = format!("{number}");
    }
    let failed = stage.campaigns.import_rows(id, list, Purpose::Import).await;
    assert!(failed.is_err(), "{failed:?}");
    let contract = stage.contract(id).await;
    assert_eq!(contract.counts.total, 0, "the first piece is removed");
    stage.sql("DROP TRIGGER refused");
    assert_eq!(import(&stage, id, &people(3), Purpose::Import).await.added, 3, "none is open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_that_runs_takes_no_file_not_even_dry() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 2).await;
    stage.started(id).await;
    for purpose in [Purpose::DryRun, Purpose::Import] {
        let refused = stage.campaigns.import_file(id, file(&people(3), purpose)).await.unwrap();
        assert!(matches!(refused, Imported::WrongState(_)), "{refused:?}");
    }
    assert_eq!(stage.contract(id).await.counts.total, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_recipients_come_out_in_their_order_and_in_small_pieces() {
    let stage = Stage::start().await;
    let account = stage.account(json!({}), fast()).await;
    let id = stage.campaign(&account, 0).await;
    let mut list = rows(10_000);
    let formula = "=HYPERLINK(\"http://x\")".to_owned();
    list[6] = RecipientRow { address: formula, ..list[6].clone() };
    stage.campaigns.import_rows(id, list, Purpose::Import).await.unwrap();

    let mut csv = stage.campaigns.report_csv(id).await.unwrap().unwrap();
    let (mut bytes, mut pieces, mut longest) = (Vec::new(), 0, 0);
    while let Some(piece) = csv.next().await {
        let piece = piece.unwrap();
        (pieces, longest) = (pieces + 1, longest.max(piece.len()));
        bytes.extend(piece);
    }
    assert!(pieces >= 20 && longest < 200_000, "{pieces} pieces, {longest} bytes");
    let text = String::from_utf8(bytes).unwrap();
    let positions = text.lines().skip(1).map(|line| line.split(',').next().unwrap().to_owned());
    assert!(positions.eq((1..=10_000).map(|position: u64| position.to_string())));
    let formula = text.lines().nth(7).unwrap();
    assert!(formula.contains("\"'=HYPERLINK(\"\"http://x\"\")\""), "{formula}");

    let (mut after, mut positions) = (None, Vec::new());
    loop {
        let filter = RecipientFilter::default();
        let page = stage.campaigns.recipients(id, &filter, after, 100).await.unwrap();
        positions.extend(page.recipients.iter().map(|recipient| recipient.position));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert!(positions.into_iter().eq(1..=10_000));
}
