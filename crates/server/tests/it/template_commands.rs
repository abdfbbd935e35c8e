//! `stampede template`: what an organiser does with a template on their own machine.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use stampede_testkit::{pdf_is_sound, pdf_text, temp_dir};

use crate::{STAMPEDE, create_event, start};

fn template(arguments: &[&str]) -> Output {
    let mut command = Command::new(STAMPEDE);
    command.arg("template").args(arguments).env_clear().env("PATH", "/usr/bin:/bin");
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(text).unwrap()
}

fn new(dir: &Path, design: &str) {
    let made = template(&["new", &dir.display().to_string(), "--design", design]);
    assert!(made.status.success(), "{}", said(&made));
}

#[test]
fn every_design_is_a_beginning_that_works() {
    let folder = temp_dir();
    for design in ["a4", "stub", "badge"] {
        let dir = folder.path().join(design);
        new(&dir, design);
        let shown = dir.display().to_string();
        let checked = template(&["check", &shown]);
        assert!(checked.status.success(), "{}", said(&checked));
        assert!(said(&checked).contains("fine, stamped"), "{}", said(&checked));
        let out = dir.join("out.pdf").display().to_string();
        let event = r#"{"name": "Nacht der Museen"}"#;
        let ticket = r#"{"name": "Иван Петров", "seat": null}"#;
        let made = template(&["preview", &shown, "-o", &out, "--event", event, "--ticket", ticket]);
        assert!(made.status.success(), "{}", said(&made));
        let pdf = fs::read(&out).unwrap();
        pdf_is_sound(&pdf);
        let printed = pdf_text(&pdf);
        assert!(printed.contains("Иван Петров"), "{printed}");
        let out = dir.join("out.png").display().to_string();
        assert!(template(&["preview", &shown, "-o", &out]).status.success());
        assert!(fs::read(&out).unwrap().starts_with(b"\x89PNG"));
    }
    let again = template(&["new", &folder.path().join("a4").display().to_string()]);
    assert!(!again.status.success() && said(&again).contains("not empty"), "{}", said(&again));
    let unknown = template(&["new", "/tmp/x", "--design", "poster"]);
    assert!(said(&unknown).contains("a4, stub, badge"), "{}", said(&unknown));
}

#[test]
fn all_mistakes_are_shown_in_one_go() {
    let folder = temp_dir();
    let source = "#set text(fnt: \"Inter\")\n#image(\"logo.png\")\n#field(\"nmae\")\n#qr(40mm)\n";
    fs::write(folder.path().join("template.typ"), source).unwrap();
    let output = template(&["check", &folder.path().display().to_string()]);
    let said = said(&output);
    for place in
        ["--> template.typ:1:", "--> template.typ:2:", "--> template.typ:3:", "(3 mistakes)"]
    {
        assert!(said.contains(place), "{place} is not in: {said}");
    }
}

#[tokio::test]
async fn a_folder_is_published_as_a_template_and_then_as_its_revisions() {
    let app = start(&[("WORKER_MODE", "api")]).await;
    let event = create_event(&app).await;
    let dir = app.data_dir().join("my-ticket");
    new(&dir, "stub");
    let shown = dir.display().to_string();
    let publish = |more: &[&str]| app.command(&[&["template", "publish", &shown], more].concat());

    let (worked, told) = publish(&["--json", "--event", &event, "--note", "first"]);
    assert!(worked, "{told}");
    let answer: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    assert_eq!((&answer["name"], &answer["revision"]), (&json!("my-ticket"), &json!(1)));
    assert_eq!((&answer["event"], &answer["unchanged"]), (&json!(event), &json!(false)));
    let used = app.admin().get(&format!("/api/events/{event}")).await.expect(200);
    assert_eq!(used["template"]["id"], answer["id"], "{used}");

    let (worked, told) = publish(&[]);
    assert!(worked && told.contains("is unchanged, still revision 1"), "{told}");
    let file = dir.join("template.typ");
    let source = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{source}\nSee you there")).unwrap();
    let (worked, told) = publish(&["--event", &event, "--pin"]);
    assert!(worked && told.contains("published \"my-ticket\", revision 2"), "{told}");
    let used = app.admin().get(&format!("/api/events/{event}")).await.expect(200);
    assert_eq!(used["template"], json!({ "id": answer["id"], "revision": 2 }), "{used}");

    fs::write(&file, "#nope").unwrap();
    let (worked, told) = publish(&[]);
    assert!(!worked && told.contains("--> template.typ:1:2"), "{told}");
    assert!(told.contains("nothing was published"), "{told}");
    fs::write(&file, source).unwrap();
    let (worked, told) = publish(&["--event", "no-such-event"]);
    assert!(
        !worked && told.contains("nothing was published, for there is no such event"),
        "{told}"
    );
    let (worked, told) = publish(&["--id", "0190f0aa-0000-7000-8000-000000000000"]);
    assert!(!worked && told.contains("Template not found"), "{told}");
    // Two of the same name: nobody guesses.
    let another = json!({ "name": "my-ticket", "design": "a4" });
    app.admin().post("/api/templates", &another).await.expect(201);
    let (worked, told) = publish(&[]);
    assert!(!worked && told.contains("say with --id which one"), "{told}");
}

#[test]
fn a_mistake_is_shown_with_its_line_and_a_caret() {
    let folder = temp_dir();
    fs::write(folder.path().join("template.typ"), "= Title\n\n#field(\"nmae\")\n").unwrap();
    let dir = folder.path().display().to_string();
    for command in ["check", "preview"] {
        let output = template(&[command, &dir]);
        assert_eq!(output.status.code(), Some(1));
        let said = said(&output);
        assert!(said.contains("--> template.typ:3:"), "{said}");
        assert!(said.contains("3 | #field(\"nmae\")\n") && said.contains('^'), "{said}");
        assert!(said.contains("hint:"), "{said}");
    }
    assert!(!folder.path().join("preview.pdf").exists());
    let values = template(&["check", &dir, "--event", "{\"startsAt\": \"soon\"}"]);
    assert!(said(&values).contains("event.startsAt must be a time"), "{}", said(&values));
    let nothing = template(&["check", "/nowhere"]);
    assert!(said(&nothing).contains("/nowhere"), "{}", said(&nothing));
}

/// Ended with the test.
struct Watch(Child);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn watching_follows_the_files_and_survives_mistakes() {
    let folder = temp_dir();
    let source = folder.path().join("template.typ");
    let saying = |word: &str| format!("{word} #field(\"name\")\n#qr(40mm)");
    fs::write(&source, saying("First")).unwrap();
    let mut watch = Watch(
        Command::new(STAMPEDE)
            .args(["template", "watch", &folder.path().display().to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut lines = BufReader::new(watch.0.stdout.take().unwrap()).lines();
    let mut wait_for = |part: &str| {
        let found = lines.by_ref().map(Result::unwrap).find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("it ended without {part:?}"))
    };
    let preview = folder.path().join("preview.pdf");
    wait_for("watching");
    wait_for("fine, stamped");
    assert!(pdf_text(&fs::read(&preview).unwrap()).contains("First"));
    fs::write(&source, "#field(").unwrap();
    wait_for("as it was");
    assert!(pdf_text(&fs::read(&preview).unwrap()).contains("First"), "the last good one stays");
    fs::write(&source, saying("Second")).unwrap();
    wait_for("fine, stamped");
    assert!(pdf_text(&fs::read(&preview).unwrap()).contains("Second"));
}
