//! `stampede template`: what an organiser does with a template on their own machine.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use stampede_testkit::{pdf_is_sound, pdf_text, temp_dir};

use crate::STAMPEDE;

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
