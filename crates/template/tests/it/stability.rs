//! Equal input, equal bytes: in one process, in threads, in another process.

use std::process::Command;

use stampede_model::TicketDocument;
use stampede_template::{Template, Typesetter};

use crate::{pdf, ticket};

/// Tells the child process of the test below where to leave its PDF.
const CHILD: &str = "STAMPEDE_TEMPLATE_TEST_PDF";

#[test]
fn two_typesetters_make_the_same_bytes() {
    assert_eq!(pdf(&ticket()), pdf(&ticket()));
}

#[test]
fn another_process_makes_the_same_bytes() {
    if let Ok(path) = std::env::var(CHILD) {
        return std::fs::write(path, pdf(&ticket())).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("child.pdf");
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stability::another_process_makes_the_same_bytes"])
        .env(CHILD, &path)
        .status()
        .unwrap();
    assert!(status.success());
    // A warm cache must not show in the bytes either.
    pdf(&TicketDocument { name: "Somebody Else".into(), ..ticket() });
    assert!(std::fs::read(path).unwrap() == pdf(&ticket()));
}

#[test]
fn threads_share_a_typesetter_and_do_not_mix_tickets_up() {
    let shared = Typesetter::new(Template::default_ticket());
    let document = |i: u32| TicketDocument { index: i, name: format!("Guest {i}"), ..ticket() };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let shared = shared.clone();
            scope.spawn(move || {
                for i in (0..12).map(|i| thread * 100 + i) {
                    let alone = Typesetter::new(Template::default_ticket());
                    assert!(shared.render(&document(i)) == alone.render(&document(i)));
                }
            });
        }
    });
}

#[test]
fn different_tickets_make_different_bytes() {
    assert_ne!(pdf(&ticket()), pdf(&TicketDocument { id: "other".into(), ..ticket() }));
}

/// Tells the child process of the test below where to leave its blob.
const BLOB_CHILD: &str = "STAMPEDE_TEMPLATE_TEST_BLOB";

#[test]
fn another_process_compiles_and_stamps_the_same_bytes() {
    let made = || -> Vec<u8> {
        let mut all = Vec::new();
        for design in stampede_template::shipped() {
            let event = stampede_template::EventData::sample();
            let published = stampede_template::compile(&design.bundle, &event).unwrap();
            all.extend(&published.blob);
            all.extend(crate::stamp_ticket(&published, &ticket()));
            all.extend(
                stampede_template::typeset(&crate::slow(&design.bundle), &ticket()).unwrap(),
            );
        }
        all
    };
    if let Ok(path) = std::env::var(BLOB_CHILD) {
        return std::fs::write(path, made()).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blobs");
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stability::another_process_compiles_and_stamps_the_same_bytes"])
        .env(BLOB_CHILD, &path)
        .status()
        .unwrap();
    assert!(status.success());
    assert!(std::fs::read(path).unwrap() == made());
    assert!(made() == made(), "a warm cache shows");
}
