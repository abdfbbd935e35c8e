//! Editing, reissuing, voiding, deleting, verifying.

use stampede_model::{Refusal, TicketStatus};
use stampede_ticketing::{Edit, EventDeletion, Reissue, Strictness, TicketPatch, verification};

use crate::stage::Stage;

fn renamed(name: &str) -> TicketPatch {
    TicketPatch { name: Some(name.to_owned()), ..TicketPatch::default() }
}

#[tokio::test]
async fn an_edit_that_changes_nothing_leaves_the_pdf_alone() {
    let mut stage = Stage::working().await;
    let (batch, tickets) = stage.place(&["Ann"]).await;
    stage.ended(batch).await;
    let edit = stage.ticketing.edit(tickets[0], &renamed("Ann"), Strictness::Lenient, None).await;
    assert!(matches!(edit.unwrap(), Edit::Same(_)));
    let edit = stage.ticketing.edit(tickets[0], &renamed("Bob"), Strictness::Lenient, None).await;
    let Edit::Done(ticket, warnings) = edit.unwrap() else { panic!("not edited") };
    assert!(ticket.status == TicketStatus::Pending && warnings.is_empty());
    assert_eq!(stage.ended(batch).await.completed, 1);
    stage.stop().await;
}

#[tokio::test]
async fn a_void_ticket_cannot_be_changed() {
    let stage = Stage::quiet().await;
    let (batch, tickets) = stage.place(&["Ann"]).await;
    stage.ticketing.void(tickets[0], None).await.unwrap();
    assert!(!stage.has_job(tickets[0]), "its job is taken off the queue");
    assert_eq!(stage.mirrored(batch)["voided"], 1);
    let edit = stage.ticketing.edit(tickets[0], &renamed("Bob"), Strictness::Lenient, None).await;
    assert!(matches!(edit.unwrap(), Edit::Void));
    assert!(matches!(stage.ticketing.reissue(tickets[0]).await.unwrap(), Reissue::Void));
    let unknown = stampede_model::TicketId::generate();
    let edit = stage.ticketing.edit(unknown, &renamed("Bob"), Strictness::Lenient, None).await;
    assert!(matches!(edit.unwrap(), Edit::NotFound));
    assert!(matches!(stage.ticketing.reissue(unknown).await.unwrap(), Reissue::NotFound));
    assert!(stage.ticketing.void(unknown, None).await.unwrap().done().is_none());
}

#[tokio::test]
async fn the_paper_before_a_reissue_is_refused() {
    let mut stage = Stage::working().await;
    let (batch, tickets) = stage.place(&["Ann"]).await;
    stage.ended(batch).await;
    let old = stage.store.token(&stage.ticket(tickets[0]).await).await.unwrap().to_string();
    let verdict = stage.ticketing.verify(&old, None).await.unwrap();
    assert_eq!(verdict.refusal, None);
    let Reissue::Done(ticket) = stage.ticketing.reissue(tickets[0]).await.unwrap() else {
        panic!("not issued again")
    };
    assert_eq!(ticket.generation, 2);
    let verdict = stage.ticketing.verify(&old, None).await.unwrap();
    assert_eq!(verdict.refusal, Some(Refusal::Superseded));
    let answer = verification(&verdict);
    assert!(answer.genuine && !answer.valid && answer.reason.as_deref() == Some("superseded"));
    let foreign = stage.ticketing.verify(&old, Some(stampede_model::EventId::generate())).await;
    assert_eq!(foreign.unwrap().refusal, Some(Refusal::ForeignEvent));
    let nonsense = stage.ticketing.verify("nonsense", None).await.unwrap();
    assert_eq!(nonsense.refusal, Some(Refusal::Malformed));
    stage.ended(batch).await;
    stage.stop().await;
}

#[tokio::test]
async fn deleting_leaves_neither_file_nor_job() {
    let mut stage = Stage::working().await;
    let (batch, tickets) = stage.place(&["Ann", "Bob"]).await;
    stage.ended(batch).await;
    stage.ticketing.delete_ticket(tickets[0], None).await.unwrap();
    let path = stampede_model::Ticket::pdf_path(tickets[0]);
    assert_eq!(stage.files.size(&path).await.unwrap(), None);
    assert!(!stage.has_job(tickets[0]));
    assert_eq!(stage.mirrored(batch)["tickets"], serde_json::json!([tickets[1]]));

    let event = stage.event.id;
    let kept = stage.ticketing.delete_event(event, None).await.unwrap();
    assert_eq!(kept, EventDeletion::HasTickets(1));
    stage.ticketing.delete_event_with_tickets(event, None).await.unwrap();
    assert!(stage.ticketing.event(event).await.unwrap().is_none());
    let path = stampede_model::Ticket::pdf_path(tickets[1]);
    stampede_testkit::eventually(crate::stage::PATIENCE, || async {
        let left = stage.files.size(&path).await.map_err(|e| e.to_string())?.is_some();
        match left || stage.has_job(tickets[1]) {
            true => Err("something is left"),
            false => Ok(()),
        }
        .map_err(str::to_owned)
    })
    .await;
    assert_eq!(stage.ticketing.delete_event(event, None).await.unwrap(), EventDeletion::NotFound);
    stage.stop().await;
}
