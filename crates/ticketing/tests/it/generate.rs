//! Generating tickets, and what may happen to them meanwhile.

use stampede_broker::Presence;
use stampede_model::{BatchStatus, Ticket, TicketStatus};
use stampede_testkit::{eventually, pdf_text};
use stampede_ticketing::{Edit, Strictness, TicketPatch};

use crate::stage::{PATIENCE, Stage, holder};

#[tokio::test]
async fn a_ticket_voided_while_it_is_made_stays_void_and_leaves_no_file() {
    let mut stage = Stage::gated().await;
    let (batch, tickets) = stage.place(&["Ann"]).await;
    stage.at_the_gate(1).await;
    let voided = stage.ticketing.void(tickets[0], None).await.unwrap().done().unwrap();
    assert_eq!(voided.status, TicketStatus::Void);
    stage.compiler.let_pass(1);
    // The job looks again, finds the ticket void and ends.
    let queue = stage.broker.queue("tickets").await.unwrap();
    let id = tickets[0].to_string();
    eventually(PATIENCE, || async {
        let presence = queue.presence(&[&id]).await.map_err(|e| e.to_string())?;
        if presence[0] != Presence::Live { Ok(()) } else { Err(format!("{presence:?}")) }
    })
    .await;
    let ended = stage.ended(batch).await;
    assert_eq!((ended.voided, ended.completed), (1, 0));
    assert_eq!(stage.files.size(&Ticket::pdf_path(tickets[0])).await.unwrap(), None);
    stage.stop().await;
}

#[tokio::test]
async fn a_ticket_edited_while_it_is_made_stays_pending_until_the_new_text_is_printed() {
    let mut stage = Stage::gated().await;
    let (batch, tickets) = stage.place(&["Before"]).await;
    stage.at_the_gate(1).await;
    let patch = TicketPatch { name: Some("After".to_owned()), ..TicketPatch::default() };
    let edit = stage.ticketing.edit(tickets[0], &patch, Strictness::Lenient, None).await.unwrap();
    assert!(matches!(edit, Edit::Done(..)), "{edit:?}");
    stage.compiler.let_pass(1);
    // The first PDF is not recorded: the job comes back for the new text.
    stage.at_the_gate(2).await;
    assert_eq!(stage.ticket(tickets[0]).await.status, TicketStatus::Pending);
    stage.compiler.let_pass(1);
    stage.ended(batch).await;
    let bytes = stage.files.get(&Ticket::pdf_path(tickets[0])).await.unwrap().unwrap();
    assert!(pdf_text(&bytes).contains("After"));
    assert_eq!(stage.batch(batch).await.completed, 1, "counted once");
    stage.stop().await;
}

#[tokio::test]
async fn a_ticket_that_cannot_be_made_fails_and_is_made_after_an_edit() {
    let mut stage = Stage::working().await;
    let mut order = stage.order(&["Ann", "Bob"]);
    order.lines[1].holder = holder("Bob", Some("BROKEN"));
    let (batch, tickets) = crate::stage::accepted(stage.ticketing.place(order).await.unwrap());
    let ended = stage.ended(batch).await;
    assert_eq!(ended.status(), BatchStatus::CompletedWithErrors);
    let failed = stage.ticket(tickets[1]).await;
    assert_eq!(failed.status, TicketStatus::Failed);
    assert!(failed.error.unwrap().contains("no such seat"));

    let patch = TicketPatch { seat: Some(None), ..TicketPatch::default() };
    stage.ticketing.edit(tickets[1], &patch, Strictness::Lenient, None).await.unwrap();
    stage.until(tickets[1], TicketStatus::Completed).await;
    assert_eq!(stage.ended(batch).await.status(), BatchStatus::Completed);
    stage.stop().await;
}

#[tokio::test]
async fn a_job_that_comes_back_says_how_to_stop_it() {
    let stage = Stage::quiet().await;
    let (_, tickets) = stage.place(&["Ann"]).await;
    let jobs = stampede_broker::JobList::default()
        .with::<stampede_ticketing::GenerateTicket>(stage.ticketing.clone());
    let id = tickets[0].to_string();
    let note = jobs.comes_back("tickets", &id).await.unwrap();
    assert!(note.contains(&format!("PATCH /api/tickets/{id}")), "{note}");
    assert!(jobs.all_come_back("tickets").unwrap().contains("pause the queue"));
    stage.ticketing.void(tickets[0], None).await.unwrap();
    assert_eq!(jobs.comes_back("tickets", &id).await, None, "a void ticket gets no new job");
    assert_eq!(jobs.comes_back("tickets", "no-ticket").await, None);
}
