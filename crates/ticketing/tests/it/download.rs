//! Downloads: a PDF that is not current is made again; whole batches are one file.

use std::time::Duration;

use futures::TryStreamExt;
use stampede_model::{BatchId, Ticket, TicketId, TicketStatus};
use stampede_testkit::{eventually, pdf_is_sound, pdf_pages, pdf_text};
use stampede_ticketing::{BatchDownload, BatchFile, BatchFormat, Download, Extent};

use crate::stage::{PATIENCE, Stage, accepted, holder};

async fn downloaded(stage: &Stage, id: TicketId) -> Vec<u8> {
    eventually(PATIENCE, || async {
        let (ticket, event) = stage.ticketing.ticket_with_event(id).await.unwrap().unwrap();
        match stage.ticketing.download(ticket, &event).await.unwrap() {
            Download::Ready(_, bytes) => Ok(bytes),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

async fn read(file: BatchFile) -> Result<Vec<u8>, std::io::Error> {
    file.into_pieces(0..u64::MAX).map_ok(|piece| piece.to_vec()).try_concat().await
}

async fn batch_file(
    stage: &Stage,
    batch: BatchId,
    format: BatchFormat,
    extent: Extent,
) -> BatchDownload {
    let batch = stage.batch(batch).await;
    stage.ticketing.download_batch(batch, format, extent).await.unwrap()
}

fn ready(download: BatchDownload) -> BatchFile {
    match download {
        BatchDownload::Ready(file) => *file,
        _ => panic!("not ready"),
    }
}

#[tokio::test]
async fn a_pdf_that_is_missing_short_damaged_or_stale_is_made_again() {
    let mut stage = Stage::working().await;
    let (batch, tickets) = stage.place(&["Ann"]).await;
    stage.ended(batch).await;
    let (id, path) = (tickets[0], Ticket::pdf_path(tickets[0]));
    let pdf = downloaded(&stage, id).await;
    stage.files.delete(&path).await.unwrap();
    assert_eq!(downloaded(&stage, id).await, pdf, "missing");
    for (what, bytes) in [("short", pdf[..100].to_vec()), ("damaged", vec![0; pdf.len()])] {
        stage.files.put(&path, bytes).await.unwrap();
        assert_eq!(downloaded(&stage, id).await, pdf, "{what}");
    }
    let mut event = stage.event.clone();
    event.details.location = "Open Air Stage".to_owned();
    let seen = std::mem::replace(&mut event.updated_at, crate::stage::now());
    assert!(stage.store.update_event(&event, seen).await.unwrap());
    let ticket = stage.ticket(id).await;
    downloaded(&stage, id).await;
    let remade = stage.ticket(id).await;
    assert_ne!(remade.pdf.unwrap().fingerprint, ticket.pdf.unwrap().fingerprint, "stale");
    assert_eq!(stage.batch(batch).await.completed, 1);
    stage.stop().await;
}

#[tokio::test]
async fn a_download_does_not_deliver_a_ticket_that_is_issued_anew_meanwhile() {
    let mut stage = Stage::gated().await;
    let (batch, tickets) = stage.place(&["Ann"]).await;
    stage.at_the_gate(1).await;
    stage.compiler.let_pass(1);
    stage.ended(batch).await;
    let ticket = stage.ticket(tickets[0]).await;
    stage.files.delete(&Ticket::pdf_path(ticket.id)).await.unwrap();
    let asked = stage.ticketing.download(ticket.clone(), &stage.event);
    let issued_anew = async {
        stage.at_the_gate(2).await;
        stage.ticketing.reissue(ticket.id).await.unwrap();
        stage.compiler.let_pass(2);
    };
    let (answer, ()) = tokio::join!(asked, issued_anew);
    assert!(matches!(answer, Ok(Download::NotReady)), "{answer:?}");
    stage.stop().await;
}

#[tokio::test]
async fn a_file_is_promised_no_length_while_one_of_its_tickets_is_to_be_made_again() {
    let mut stage = Stage::working().await;
    let (batch, tickets) = stage.place(&["Ann", "Bob", "Eve"]).await;
    stage.ended(batch).await;
    let mut event = stage.event.clone();
    event.details.location = "Open Air Stage, far away from the city".to_owned();
    let seen = std::mem::replace(&mut event.updated_at, crate::stage::now());
    assert!(stage.store.update_event(&event, seen).await.unwrap());
    // The first ticket is renewed alone, as by somebody who downloads it.
    downloaded(&stage, tickets[0]).await;
    stage.ended(batch).await;
    let zip = ready(batch_file(&stage, batch, BatchFormat::Zip, Extent::Whole).await);
    assert_eq!((zip.version(), zip.length()), (None, None));
    let path = stage.folder.path().join("mixed.zip");
    std::fs::write(&path, read(zip).await.unwrap()).unwrap();
    let tested = std::process::Command::new("unzip").arg("-tq").arg(&path).output().unwrap();
    assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stdout));
    stage.stop().await;
}

#[tokio::test]
async fn a_pdf_that_is_not_there_says_why() {
    let stage = Stage::quiet().await;
    let (_, tickets) = stage.place(&["Ann", "Bob"]).await;
    let event = &stage.event;
    let pending = stage.ticket(tickets[0]).await;
    let answer = stage.ticketing.download(pending, event).await.unwrap();
    assert!(matches!(answer, Download::NotReady));
    let void = stage.ticketing.void(tickets[1], None).await.unwrap().done().unwrap();
    let answer = stage.ticketing.download(void, event).await.unwrap();
    assert!(matches!(answer, Download::Void));
}

/// A batch with two tickets that are made, one that is void and one that failed.
async fn mixed(stage: &Stage) -> (BatchId, Vec<TicketId>) {
    let mut order = stage.order(&["Ann", "Bob", "Eve", "Joe"]);
    order.lines[2].holder = holder("Eve", Some("BROKEN"));
    let (batch, tickets) = accepted(stage.ticketing.place(order).await.unwrap());
    stage.ended(batch).await;
    stage.ticketing.void(tickets[3], None).await.unwrap();
    stage.until(tickets[2], TicketStatus::Failed).await;
    (batch, tickets)
}

#[tokio::test]
async fn a_batch_is_one_file_without_its_void_and_failed_tickets() {
    let mut stage = Stage::working().await;
    let (batch, tickets) = mixed(&stage).await;

    let merged = ready(batch_file(&stage, batch, BatchFormat::MergedPdf, Extent::Whole).await);
    let named = format!("void: {}; failed: {}", tickets[3], tickets[2]);
    assert_eq!(merged.left_out(), Some(named.as_str()));
    let pdf = read(merged).await.unwrap();
    pdf_is_sound(&pdf);
    assert_eq!(pdf_pages(&pdf), 2);
    let text = pdf_text(&pdf);
    assert!(text.contains("Ann") && text.contains("Bob") && !text.contains("Joe"), "{text}");

    // One of its PDFs is lost; it is made again while the ZIP is written.
    stage.files.delete(&Ticket::pdf_path(tickets[1])).await.unwrap();
    let zip = eventually(PATIENCE, || async {
        match batch_file(&stage, batch, BatchFormat::Zip, Extent::Whole).await {
            BatchDownload::Ready(file) => Ok(*file),
            // The place of the download before is free a moment after its end.
            BatchDownload::TooMany => Err("too many downloads"),
            _ => panic!("not ready"),
        }
    })
    .await;
    let zip = read(zip).await.unwrap();
    let path = stage.folder.path().join("batch.zip");
    std::fs::write(&path, zip).unwrap();
    let script = "import sys, zipfile\n\
                  z = zipfile.ZipFile(sys.argv[1])\n\
                  assert z.testzip() is None\n\
                  print(z.namelist())\n\
                  print(z.read('left-out.txt').decode())";
    let output =
        std::process::Command::new("python3").args(["-c", script]).arg(&path).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    for (n, ticket) in tickets.iter().enumerate().take(2) {
        assert!(listed.contains(&format!("'ticket-000{}-{ticket}.pdf'", n + 1)), "{listed}");
    }
    assert!(listed.contains(&format!("{}.pdf: failed: ", tickets[2])), "{listed}");
    assert!(listed.contains(&format!("{}.pdf: void", tickets[3])), "{listed}");
    stage.stop().await;
}

#[tokio::test]
async fn a_batch_in_progress_says_when_to_ask_again() {
    let stage = Stage::quiet().await;
    let (batch, _) = stage.place(&["Ann", "Bob"]).await;
    let whole = batch_file(&stage, batch, BatchFormat::Zip, Extent::Whole).await;
    let BatchDownload::NotReady { missing: 2, total: 2, retry_after_s } = whole else {
        panic!("it should not be ready")
    };
    assert!((1..=60).contains(&retry_after_s));
    let partial = batch_file(&stage, batch, BatchFormat::MergedPdf, Extent::Partial).await;
    assert!(matches!(partial, BatchDownload::Nothing));
}

#[tokio::test]
async fn a_download_that_nobody_reads_keeps_its_place_and_is_broken_off_by_the_stop() {
    let mut stage = Stage::working().await;
    let names: Vec<String> = (0..60).map(|n| format!("Guest {n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (batch, _) = stage.place(&names).await;
    stage.ended(batch).await;
    let unread = ready(batch_file(&stage, batch, BatchFormat::Zip, Extent::Whole).await);
    let second = batch_file(&stage, batch, BatchFormat::Zip, Extent::Whole).await;
    assert!(matches!(second, BatchDownload::TooMany), "only one download fits in this test");
    // Nobody reads during the stop, and it does not wait for that.
    tokio::time::timeout(Duration::from_secs(5), stage.stop()).await.unwrap();
    assert!(read(unread).await.is_err(), "a part must not look like the whole");
}
