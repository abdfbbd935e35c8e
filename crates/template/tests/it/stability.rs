//! Equal input, equal bytes: in one process, in threads, in another process.

use std::process::Command;

use stampede_model::TicketDocument;
use stampede_template::{EventData, compile, shipped, typeset};

use crate::{a4, slow, stamp_ticket, ticket};

/// Tells the child process of the test below where to leave what it made.
const CHILD: &str = "STAMPEDE_TEMPLATE_TEST_MADE";

/// Blob, stamped and typeset ticket of every design.
fn made() -> Vec<u8> {
    let mut all = Vec::new();
    for design in shipped() {
        let published = compile(&design.bundle, &EventData::sample()).unwrap();
        all.extend(&published.blob);
        all.extend(stamp_ticket(&published, &ticket()));
        all.extend(typeset(&slow(&design.bundle), &ticket()).unwrap());
    }
    all
}

#[test]
fn another_process_makes_the_same_bytes() {
    if let Ok(path) = std::env::var(CHILD) {
        return std::fs::write(path, made()).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made");
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stability::another_process_makes_the_same_bytes"])
        .env(CHILD, &path)
        .status()
        .unwrap();
    assert!(status.success());
    // A warm cache must not show in the bytes either.
    a4(&TicketDocument { name: "Somebody Else".into(), ..ticket() });
    assert!(std::fs::read(path).unwrap() == made());
    assert!(made() == made(), "a warm cache shows");
}

#[test]
fn threads_do_not_mix_tickets_up() {
    let document = |i: u32| TicketDocument { index: i, name: format!("Guest {i}"), ..ticket() };
    let alone: Vec<_> = (0..12).map(|i| a4(&document(i))).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let alone = &alone;
            scope.spawn(move || {
                // Every thread begins elsewhere, so that they meet in all orders.
                for i in (0..12).map(|i| (i + 3 * thread) % 12) {
                    assert!(a4(&document(i)) == alone[i as usize], "ticket {i}");
                }
            });
        }
    });
}

#[test]
fn different_tickets_make_different_bytes() {
    let [stamped, typeset] = a4(&ticket());
    let other = a4(&TicketDocument { id: "other".into(), ..ticket() });
    assert_ne!(stamped, other[0]);
    assert_ne!(typeset, other[1]);
}
