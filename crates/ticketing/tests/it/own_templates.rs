//! Templates of organisers: one of them must not stop the process that serves everybody, nor the tickets of others.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use stampede_broker::Broker;
use stampede_model::{BatchId, Event};
use stampede_press::Press;
use stampede_testkit::{pdf_is_sound, pdf_pages, pdf_text};
use stampede_ticketing::{BatchDownload, BatchFormat, Error, Extent, Strictness};

use crate::compiler::{COLD, STAMPED};
use crate::stage::{Stage, accepted};

/// Places an order of so many tickets for this event.
async fn placed(stage: &Stage, event: &Event, tickets: usize) -> BatchId {
    let names: Vec<String> = (0..tickets).map(|n| format!("Guest {n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    accepted(stage.ticketing.place(stage.order_for(event, &names)).await.unwrap()).0
}

async fn merged(stage: &Stage, batch: BatchId) -> Result<BatchDownload, Error> {
    let batch = stage.batch(batch).await;
    stage.ticketing.download_batch(batch, BatchFormat::MergedPdf, Extent::Whole).await
}

/// The name that the template of this event has among suspects.
async fn name_of(stage: &Stage, event: &Event) -> String {
    let files = stampede_model::TemplateFiles::new(
        [("template.typ".to_owned(), crate::compiler::TEMPLATE.as_bytes().to_vec())].into(),
    );
    let press = Press::new(stage.store.clone(), stage.compiler.clone(), files.unwrap());
    format!("template:{}:{}", event.owner, press.revision_of(event).await.unwrap())
}

async fn set_aside(broker: &Broker, name: &str) {
    for _ in 0..3 {
        broker.suspects().strike(name, "it crashed").await.unwrap();
    }
}

#[tokio::test]
async fn a_merged_pdf_with_an_organisers_template_is_made_by_the_compiler() {
    let mut stage = Stage::working().await;
    let event = stage.own_event("ann", STAMPED).await;
    let batch = placed(&stage, &event, 130).await;
    assert_eq!(stage.ended(batch).await.completed, 130);
    let BatchDownload::Ready(file) = merged(&stage, batch).await.unwrap() else {
        panic!("not ready")
    };
    let pdf: Vec<u8> =
        file.into_pieces(0..u64::MAX).map_ok(|piece| piece.to_vec()).try_concat().await.unwrap();
    assert_eq!(stage.compiler.pieces.load(Ordering::SeqCst), 2, "a hundred tickets, and the rest");
    pdf_is_sound(&pdf);
    assert_eq!(pdf_pages(&pdf), 130);
    let text = pdf_text(&pdf);
    for (n, page) in text.split('\u{c}').take(130).enumerate() {
        assert!(page.contains(&format!("Guest {n:03}")), "{n}: {page}");
    }
    stage.stop().await;
}

#[tokio::test]
async fn a_template_that_is_set_aside_is_refused_for_its_owner_alone() {
    let mut stage = Stage::working().await;
    let anns = stage.own_event("ann", STAMPED).await;
    let bobs = stage.own_event("bob", STAMPED).await;
    let batches = (placed(&stage, &anns, 3).await, placed(&stage, &bobs, 3).await);
    stage.ended(batches.0).await;
    stage.ended(batches.1).await;
    set_aside(&stage.broker, &name_of(&stage, &anns).await).await;

    let refused = stampede_testkit::eventually(crate::stage::PATIENCE, || async {
        match merged(&stage, batches.0).await {
            Err(error) => Ok(error),
            Ok(_) => Err("the view of Redis is a second old"),
        }
    })
    .await;
    assert!(matches!(&refused, Error::Unprintable(why) if why.contains("set aside")), "{refused}");
    // An order that is strict is refused; another one is accepted, and its tickets fail.
    let mut strict = stage.order_for(&anns, &["Ann"]);
    strict.strictness = Strictness::Strict;
    let refused = stage.ticketing.place(strict).await.unwrap_err();
    assert!(refused.to_string().contains("set aside"), "{refused}");
    let batch = placed(&stage, &anns, 2).await;
    assert_eq!(stage.ended(batch).await.failed, 2);

    // The same files, another owner.
    let batch = placed(&stage, &bobs, 2).await;
    assert_eq!(stage.ended(batch).await.completed, 2);
    assert!(matches!(merged(&stage, batches.1).await, Ok(BatchDownload::Ready(_))));
    stage.stop().await;
}

#[tokio::test]
async fn a_template_that_memory_has_forgotten_need_not_prove_itself_again() {
    let mut stage = Stage::working().await;
    let first = stage.own_event("ann", STAMPED).await;
    let batch = placed(&stage, &first, 5).await;
    stage.ended(batch).await;
    assert_eq!(stage.compiler.apart.load(Ordering::SeqCst), 1, "the first of its tickets");
    // More templates than are kept in memory.
    for n in 0..33 {
        let mut other = stage.event.clone();
        other.details.name = format!("Night {n}");
        let seen = stage.store.event(other.id).await.unwrap().unwrap().updated_at;
        other.updated_at = crate::stage::now();
        assert!(stage.store.update_event(&other, seen).await.unwrap());
        stage.event = other.clone();
        let batch = placed(&stage, &other, 1).await;
        stage.ended(batch).await;
    }
    let batch = placed(&stage, &first, 5).await;
    stage.ended(batch).await;
    assert_eq!(stage.compiler.apart.load(Ordering::SeqCst), 1);
    stage.stop().await;
}

#[tokio::test]
async fn a_template_that_is_not_compiled_yet_holds_no_slots() {
    let mut stage = Stage::quiet().await;
    // The order is checked with another template, so that a worker is the first to need this one.
    let mut checked = stage.own_event("ann", COLD).await;
    checked.details.template = None;
    let slow = placed(&stage, &checked, 300).await;
    stage.work().await;
    let quick = stage.own_event("bob", STAMPED).await;
    let quick = placed(&stage, &quick, 30).await;
    assert_eq!(stage.ended(quick).await.completed, 30, "they pass while Ann's wait");
    assert_eq!(stage.batch(slow).await.completed, 0);

    stage.compiler.cold.add_permits(1);
    let compiled = Instant::now();
    assert_eq!(stage.ended(slow).await.completed, 300);
    let took = compiled.elapsed();
    assert!(took < Duration::from_secs(15), "they come back soon: {took:?}");
    stage.stop().await;
}
