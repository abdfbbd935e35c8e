//! Placing orders.

use stampede_model::{BatchStatus, TicketStatus};
use stampede_testkit::pdf_text;
use stampede_ticketing::{Download, OrderRequest, Placement, Reconciler, Strictness};

use crate::stage::{Stage, accepted, holder, marked, now};

#[tokio::test]
async fn an_order_is_placed_made_and_downloaded() {
    let mut stage = Stage::working().await;
    let (batch, tickets) = stage.place(&["Ann", "Bob"]).await;
    let ended = stage.ended(batch).await;
    assert_eq!((ended.completed, ended.status()), (2, BatchStatus::Completed));
    for (ticket, name) in tickets.iter().zip(["Ann", "Bob"]) {
        let (ticket, event) = stage.ticketing.ticket_with_event(*ticket).await.unwrap().unwrap();
        assert_eq!(ticket.processed_by.as_deref(), Some("worker-1"));
        assert_eq!(ticket.owner, "ann", "it belongs to the owner of the event");
        let Download::Ready(pdf, bytes) = stage.ticketing.download(ticket, &event).await.unwrap()
        else {
            panic!("not ready")
        };
        assert!(pdf.matches(&bytes));
        assert!(pdf_text(&bytes).contains(name));
    }
    let status = stage.ticketing.batch_status(&ended).await.unwrap();
    assert_eq!((status.counters.completed, status.pending, status.tickets), (2, 0, Some(tickets)));
    assert_eq!(status.queue_stats.unwrap().completed, 2);
    stage.stop().await;
}

#[tokio::test]
async fn the_same_idempotency_key_is_one_order() {
    let stage = Stage::quiet().await;
    let order = |request: &str| OrderRequest {
        idempotency: marked("click", request),
        ..stage.order(&["Ann"])
    };
    let first = accepted(stage.ticketing.place(order("one ticket")).await.unwrap());
    let again = accepted(stage.ticketing.place(order("one ticket")).await.unwrap());
    assert_eq!(first, again);
    let other = stage.ticketing.place(order("two tickets")).await.unwrap();
    assert!(matches!(other, Placement::KeyOfAnotherOrder), "{other:?}");
    assert_eq!(stage.batch(first.0).await.total, 1);
}

#[tokio::test]
async fn an_order_for_a_deleted_event_writes_nothing() {
    let stage = Stage::quiet().await;
    stage.ticketing.delete_event(stage.event.id, None).await.unwrap();
    let placed = stage.ticketing.place(stage.order(&["Ann"])).await.unwrap();
    assert!(matches!(placed, Placement::NoSuchEvent), "{placed:?}");
}

#[tokio::test]
async fn a_strict_order_is_refused_for_what_would_not_come_out_well() {
    let stage = Stage::quiet().await;
    let mut order = stage.order(&["Ann", "x"]);
    order.lines[1].holder = holder("Ra \u{13000}\u{E000}", None);
    let Placement::Accepted { warnings, tickets, .. } =
        stage.ticketing.place(order.clone()).await.unwrap()
    else {
        panic!("refused")
    };
    let listed = warnings.listed(&tickets);
    assert_eq!(listed.tickets_with_warnings, Some(1));
    assert_eq!((listed.warnings[0].index, listed.warnings[0].ticket), (Some(2), Some(tickets[1])));
    order.strictness = Strictness::Strict;
    let refused = stage.ticketing.place(order).await.unwrap();
    let Placement::RefusedByWarnings(warnings) = refused else { panic!("{refused:?}") };
    assert!(warnings.refusal().starts_with("1 tickets would not come out well"));
    assert_eq!(warnings.listed(&[]).warnings[0].ticket, None);
}

#[tokio::test]
async fn an_order_without_redis_is_kept_and_made_when_redis_is_back() {
    let mut stage = Stage::quiet().await;
    stage.redis.kill();
    let (batch, tickets) = stage.place(&["Ann", "Bob"]).await;
    assert_eq!(stage.batch(batch).await.pending(), 2, "the order is accepted all the same");
    stage.redis.start_again().await;
    stage.work().await;
    let reconciler = Reconciler::new(stage.ticketing.clone());
    stampede_testkit::eventually(crate::stage::PATIENCE, || async {
        let _ = reconciler.pass(now()).await?;
        match stage.has_job(tickets[0]) {
            true => Ok(()),
            false => Err("no job yet".to_owned()),
        }
    })
    .await;
    assert_eq!(stage.ended(batch).await.completed, 2);
    assert_eq!(stage.ticket(tickets[1]).await.status, TicketStatus::Completed);
    stage.stop().await;
}

#[tokio::test]
async fn stopping_waits_until_a_committed_order_is_on_the_queue() {
    let mut stage = Stage::quiet().await;
    let names: Vec<String> = (0..500).map(|n| format!("Guest {n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_, tickets) = stage.place(&names).await;
    stage.stop().await;
    assert!(stage.has_job(tickets[0]) && stage.has_job(tickets[499]));
}
