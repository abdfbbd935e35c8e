//! `stampede campaigns` and `stampede accounts`.

use serde_json::{Value, json};

use super::text;
use crate::start;

#[tokio::test]
async fn the_command_line_leads_from_a_file_to_a_report() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let run = |arguments: &[&str]| {
        let (done, output) = app.command(arguments);
        assert!(done, "{arguments:?}: {output}");
        output
    };
    let made = run(&[
        "accounts",
        "create",
        "fast",
        "--channel",
        "console",
        "--limit",
        "10000",
        "--per",
        "1s",
    ]);
    assert_eq!(made.trim(), "fast");
    assert!(run(&["accounts", "check", "fast"]).len() > 1);
    let listed = run(&["accounts", "list"]);
    assert!(listed.contains("console") && listed.contains("10000 in 1 s"), "{listed}");

    let file = app.data_dir().join("guests.csv");
    let rows =
        "phone,name\n+4915100000001,Ann\n+4915100000002,Bob\n+4915100000001,Ann again\n,Eve\n";
    std::fs::write(&file, rows).unwrap();
    let file = file.display().to_string();
    let create = ["campaigns", "create", &file, "--account", "fast", "--name", "Doors"];
    let made = run(&[&create[..], &["--text", "Hello {{ name }}"]].concat());
    assert!(made.contains("2 recipients") && made.contains("1 duplicates"), "{made}");
    assert!(made.contains("line 5"), "the wrong row has its line: {made}");
    let id = made.lines().last().unwrap().to_owned();
    assert!(run(&["campaigns", "validate", &id]).contains("2 get a message"));
    assert!(run(&["campaigns", "preview", &id, "2"]).contains("Hello Bob"));
    let html = app.data_dir().join("mail.html").display().to_string();
    std::fs::write(&html, "<p>Hello {{ nam }}</p>").unwrap();
    let mail = ["--template", &html, "--subject", "Doors", "--text", "Hello {{ name }}"];
    let doubted = run(&[&create[..], &mail].concat());
    assert!(doubted.contains("html") && doubted.contains("did you mean name?"), "{doubted}");
    let content = app.data_dir().join("mail.json").display().to_string();
    std::fs::write(&content, r#"{"subject": "Doors", "text": "Hello {{ name }}"}"#).unwrap();
    run(&[&create[..], &["--template", &content]].concat());
    let (done, told) =
        app.command(&[&create[..], &["--template", &content, "--text", "x"]].concat());
    assert!(!done && told.contains("leave out --text"), "{told}");
    let watched = run(&["campaigns", "start", &id, "--watch"]);
    assert!(watched.contains("completed: 2 sent"), "{watched}");
    let report: Value =
        serde_json::from_str(run(&["campaigns", "report", &id, "--json"]).trim()).unwrap();
    assert_eq!(report["contract"]["counts"]["sent"], 2, "{report}");
    let csv = app.data_dir().join("report.csv").display().to_string();
    run(&["campaigns", "report", &id, "--csv", &csv]);
    let total = report["contract"]["counts"]["total"].as_u64().unwrap() as usize;
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), total + 1);
    let list = run(&["campaigns", "list", "--state", "completed"]);
    assert!(list.contains("Doors") && list.contains("100 %"), "{list}");
    assert!(run(&["campaigns", "recipients", &id, "--state", "sent"]).contains("+4915100000002"));
    assert!(run(&["campaigns", "unknown", &id]).contains("no such recipients"));
    for wrong in ["pause", "resume", "cancel"] {
        let (done, told) = app.command(&["campaigns", wrong, &id]);
        assert!(!done && told.contains("the campaign is completed"), "{wrong}: {told}");
    }
    run(&["campaigns", "delete", &id]);
    run(&["accounts", "delete", "fast"]);
    let (done, told) = app.command(&["campaigns", "show", &id]);
    assert!(!done && told.contains("not found"), "{told}");
}

#[tokio::test]
async fn a_paused_campaign_is_told_by_its_watcher() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let admin = app.admin();
    let path = super::campaign(&admin, "console", 30).await;
    let id = path.rsplit('/').next().unwrap();
    let (done, told) = app.command(&["campaigns", "start", id]);
    assert!(done && told.contains("running"), "{told}");
    super::until(&admin, &path, |contract| contract["counts"]["sent"] == 20).await;
    let (done, told) = app.command(&["campaigns", "pause", id]);
    assert!(done && told.contains("paused; 0 messages in flight"), "{told}");
    let (done, told) = app.command(&["campaigns", "watch", id]);
    assert!(!done && told.contains("the campaign is paused"), "{told}");
    let (done, told) = app.command(&["campaigns", "cancel", id]);
    assert!(done && told.contains("cancelled"), "{told}");
    let shown = admin.get(&path).await.expect(200);
    assert_eq!(
        (text(&shown["status"]), &shown["counts"]["skipped"]),
        ("cancelled".into(), &json!(10))
    );
}

#[tokio::test]
async fn unknown_and_failed_recipients_are_settled_on_the_command_line() {
    let app = start(&[("WORKER_COUNT", "1")]).await;
    let admin = app.admin();
    // Nobody knows of any message whether it arrived.
    let account = json!({
        "id": "dark", "channel": "console", "settings": { "unknown": 1.0 },
        "pacing": { "limit": { "max": 100_000, "perMs": 1_000 } },
    });
    admin.post("/api/accounts", &account).await.expect(201);
    let path = super::campaign(&admin, "dark", 4).await;
    let id = path.rsplit('/').next().unwrap();
    super::verb(&admin, &path, "start").await.expect(200);
    super::completed(&admin, &path).await;
    let ids: Vec<String> =
        super::ledger(&admin, &path).await.iter().map(|row| text(&row["id"])).collect();
    let run = |arguments: &[&str]| {
        let (done, output) = app.command(&[&["campaigns"], arguments].concat());
        assert!(done, "{arguments:?}: {output}");
        output
    };
    let listed = run(&["unknown", id]);
    assert!((0..4).all(|n| listed.contains(&format!("+4915100{n:06}"))), "{listed}");
    for (wrong, told) in [
        (vec!["--action", "sent"], "give --recipient with an id, or --all"),
        (vec!["--action", "guess", "--all"], "[possible values: resend, sent, failed]"),
        (vec!["--all"], "--action"),
    ] {
        let (done, output) = app.command(&[&["campaigns", "unknown", id], &wrong[..]].concat());
        assert!(!done && output.contains(told), "{wrong:?}: {output}");
    }
    let counts = async |wanted: [u64; 4]| {
        let contract = admin.get(&path).await.expect(200);
        let found = ["unknown", "sent", "failed", "pending"];
        let found = found.map(|state| super::number(&contract, state));
        assert_eq!(found, wanted, "{contract}");
        text(&contract["status"])
    };
    let sent = run(&["unknown", id, "--action", "sent", "--recipient", &ids[0]]);
    assert!(sent.contains("1 recipients"), "{sent}");
    counts([3, 1, 0, 0]).await;
    let both = ["--recipient", &ids[1], "--recipient", &ids[2]];
    let failed = run(&[&["unknown", id, "--action", "failed"], &both[..]].concat());
    assert!(failed.contains("2 recipients"), "{failed}");
    counts([1, 1, 2, 0]).await;
    let known = json!({ "settings": { "unknown": null } });
    admin.patch("/api/accounts/dark", &known).await.expect(200);
    let again = run(&["unknown", id, "--action", "resend", "--all"]);
    assert!(again.contains("1 recipients"), "{again}");
    assert_eq!(counts([0, 1, 2, 1]).await, "paused");
    let one = run(&["retry-failed", id, "--recipient", &ids[1]]);
    assert!(one.contains("1 recipients"), "{one}");
    counts([0, 1, 1, 2]).await;
    assert!(run(&["retry-failed", id]).contains("1 recipients"));
    assert_eq!(counts([0, 1, 0, 3]).await, "paused");
    run(&["resume", id]);
    super::completed(&admin, &path).await;
    counts([0, 4, 0, 0]).await;
}

#[tokio::test]
async fn the_doctor_knows_campaigns() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    super::campaign(&app.admin(), "console", 3).await;
    let (_, told) = app.command(&["doctor"]);
    assert!(told.contains("counters of all batches and campaigns are right"), "{told}");
}
