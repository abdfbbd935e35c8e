//! `stampede order`: a file of guests from the command line.

use stampede_testkit::temp_dir;

use super::orders;
use crate::{create_event, start};

#[tokio::test]
async fn a_guest_list_is_ordered_from_the_command_line() {
    let app = start(&[]).await;
    let (event, folder) = (create_event(&app).await, temp_dir());
    let (file, zip) = (folder.path().join("guests.csv"), folder.path().join("tickets.zip"));
    let (file_name, zip_name) = (file.display().to_string(), zip.display().to_string());
    std::fs::write(&file, "Guest;Seat;Shoes\nAnn;A1;1\nZoë;A2;2\n").unwrap();
    let (well, told) = app.command(&["order", &event, &file_name, "--dry-run", "--price", "5"]);
    assert!(well, "{told}");
    for part in ["semicolon", "Guest", "(ignored)", "line 3: Zoë | – | A2", "2 tickets, 10.00 EUR"]
    {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    assert_eq!(orders(&app, &event).await, 0);
    let (well, told) = app.command(&["order", &event, &file_name, "--zip", &zip_name]);
    assert!(
        well && told.contains("Ordered 2 tickets") && told.contains("2 ready, 0 failed"),
        "{told}"
    );
    assert!(told.contains("warning: Shoes was ignored"), "{told}");
    let tested = std::process::Command::new("unzip").arg("-tq").arg(&zip).status().unwrap();
    assert!(tested.success());

    std::fs::write(&file, "name,email\nAnn,x\n,eve@example.org\nBob,y\u{1b}[2J\n").unwrap();
    let (well, told) = app.command(&["order", &event, &file_name]);
    assert!(!well && told.contains("line 2: email must be an e-mail address"), "{told}");
    assert!(
        told.contains("line 3: name is missing") && told.contains("nothing was ordered"),
        "{told}"
    );
    assert!(!told.contains('\u{1b}'), "no text of a person reaches the terminal as it is");
    let (well, told) = app.command(&["order", &event, "guests.doc"]);
    assert!(!well && told.contains("guests.doc"), "{told}");
    let (well, told) = app.command(&["order", "no-event", &file_name]);
    assert!(!well && told.contains("not found"), "{told}");
    assert_eq!(orders(&app, &event).await, 1);
}

#[test]
fn the_benchmark_of_uploads_prints_its_figures_as_one_json_object() {
    let output = std::process::Command::new(crate::STAMPEDE)
        .args(["bench", "upload", "--tickets", "300", "--json"])
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(report["tickets"], 300);
    for name in ["acceptedSeconds", "othersWaitedSeconds", "madeSeconds", "zipMb"] {
        assert!(report[name].as_f64().unwrap() > 0.0, "{report}");
    }
    assert!(report["orderMb"].as_f64().unwrap() < 100.0, "{report}");
    assert!(report["zipMemoryMb"].as_f64().unwrap() < 100.0, "{report}");
}
