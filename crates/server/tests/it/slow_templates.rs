//! One organiser's slow templates do not starve others: workers and previews are shared fairly.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use stampede_testkit::{App, Client};

use crate::access::client;
use crate::{assert_all_ready, batch_ended, start, text};

/// A template that reads its ticket and takes its time, for each ticket anew.
const SLOW: &str = "#set page(width: 120mm, height: 80mm)\n\
    #let rest = ticket(\"name\").len()\n\
    #for n in range(300000) { rest = calc.rem(rest * 31 + n, 65521) }\n\
    #rest #qr(40mm)\n";

async fn event_with_template(client: &Client, source: &str) -> String {
    let body = json!({ "name": "Own", "files": { "template.typ": source } });
    let template = client.post("/api/templates", &body).await.expect(201)["id"].take();
    let event = json!({ "name": "Opening Night", "template": template });
    text(&client.post("/api/events", &event).await.expect(201)["id"])
}

/// Orders tickets with different names: no two are typeset from memory.
async fn ordered(client: &Client, event: &str, quantity: usize) -> String {
    let holders: Vec<Value> =
        (0..quantity).map(|n| json!({ "name": format!("Guest {n}") })).collect();
    let order = json!({ "target": event, "holders": holders });
    text(&client.post("/api/tickets", &order).await.expect(200)["batchId"])
}

async fn completed(app: &App, batch: &str) -> u64 {
    let batch = app.admin().get(&format!("/api/batches/{batch}")).await.expect(200);
    batch["completed"].as_u64().unwrap()
}

#[tokio::test]
async fn a_slow_template_of_one_organiser_does_not_hold_up_the_tickets_of_another() {
    let app = start(&[]).await;
    let (ann, bob) = (client(&app, "organiser", "ann"), client(&app, "organiser", "bob"));
    let slow = event_with_template(&ann, SLOW).await;
    let quick = event_with_template(&bob, "Hello #field(\"name\") #qr(40mm)").await;
    let many = ordered(&ann, &slow, 100).await;
    let started = Instant::now();
    let few = ordered(&bob, &quick, 20).await;
    assert_all_ready(&app, &few, 20).await;
    let (waited, meanwhile) = (started.elapsed(), completed(&app, &many).await);
    println!("20 tickets took {waited:?} beside 100 slow ones, of which {meanwhile} were made");
    // In the order of the queue, at least 68 of the hundred would be made before the first of the twenty begins.
    assert!(meanwhile < 50, "{meanwhile} slow tickets came before");
    assert!(waited < Duration::from_secs(30), "{waited:?}");
}

#[tokio::test]
async fn slow_tickets_of_two_organisers_take_turns() {
    let app = start(&[]).await;
    let (ann, bob) = (client(&app, "organiser", "ann"), client(&app, "organiser", "bob"));
    let (first, second) =
        (event_with_template(&ann, SLOW).await, event_with_template(&bob, SLOW).await);
    let many = ordered(&ann, &first, 80).await;
    let few = ordered(&bob, &second, 10).await;
    batch_ended(&app, &few).await;
    let meanwhile = completed(&app, &many).await;
    println!("10 slow tickets were made beside {meanwhile} of another organiser");
    assert!(meanwhile < 60, "{meanwhile} of the other organiser came before");
}

#[tokio::test]
async fn slow_downloads_of_one_organiser_do_not_hold_up_the_preview_of_another() {
    let app = start(&[]).await;
    let (ann, bob) = (client(&app, "organiser", "ann"), client(&app, "organiser", "bob"));
    // Slower still: a preview that waits for such a ticket must stand out on a busy machine.
    let event = event_with_template(&ann, &SLOW.replace("300000", "600000")).await;
    let batch = ordered(&ann, &event, 12).await;
    assert_all_ready(&app, &batch, 12).await;
    let draft = json!({ "files": { "template.typ": "Hello #field(\"name\") #qr(40mm)" } });
    let path = format!("/api/batches/{batch}/pdf");
    let begun = Instant::now();
    assert_eq!(ann.get(&path).await.status, 200);
    let of_one_ticket = begun.elapsed() / 12;
    // Each of them typesets twelve tickets, one after the other.
    let mut downloads = Box::pin(join_all((0..16).map(|_| ann.get(&path))));
    let previewed = async {
        let mut took = Vec::new();
        for _ in 0..7 {
            let started = Instant::now();
            let preview = bob.post("/api/templates/preview", &draft).await;
            assert_eq!(preview.status, 200, "{}", preview.body);
            took.push(started.elapsed());
        }
        took.sort();
        took
    };
    let took = tokio::select! {
        _ = &mut downloads => panic!("the downloads ended first"),
        took = previewed => took,
    };
    println!("previews took {took:?}, the typesetting of a slow ticket {of_one_ticket:?}");
    // With slow tickets in both places of the compiler, a preview would wait for one of them. The first previews come
    // while the downloads begin, hence the median.
    assert!(took[3] < of_one_ticket / 2, "{took:?}, and a slow ticket {of_one_ticket:?}");
}
