//! Messages on Redis channels are announcements, whichever crate publishes them.

use serde_json::json;
use stampede_broker::{Broker, Config, Subscription};
use stampede_testkit::{Redis, temp_dir};
use stampede_wire::announcement::Announcement;

use crate::{PATIENCE, batch_ended, create_event, start, text};

const TEMPLATE: &str = r#"
#let t = json("ticket.json")
#if t.seat == "BROKEN" { panic("no such seat") }
#t.name
"#;

struct Heard {
    channel: &'static str,
    messages: Subscription,
}

impl Heard {
    async fn on(broker: &Broker, channel: &'static str) -> Self {
        let messages = broker.subscribe(&[channel.to_owned()]).await.unwrap();
        Self { channel, messages }
    }

    async fn next(&mut self) -> Announcement {
        let message = tokio::time::timeout(PATIENCE, self.messages.next()).await;
        let message = message.expect(self.channel).expect(self.channel);
        let announcement = Announcement::parse(self.channel, &message)
            .unwrap_or_else(|error| panic!("{}: {error}: {message}", self.channel));
        assert_eq!(announcement.channel(), self.channel);
        announcement
    }
}

#[tokio::test]
async fn an_order_and_its_dead_letter_are_announced() {
    let folder = temp_dir();
    let template = folder.path().join("ticket.typ");
    std::fs::write(&template, TEMPLATE).unwrap();
    let redis = Redis::start().await;
    let url = redis.url();
    let broker = Broker::connect(&Config::new(&url)).await.unwrap();
    let mut started = Heard::on(&broker, "worker:started").await;
    let mut created = Heard::on(&broker, "batch:created").await;
    let mut completed = Heard::on(&broker, "ticket:completed").await;
    let mut failed = Heard::on(&broker, "ticket:failed").await;
    let mut letters = Heard::on(&broker, "queue:dead-letter").await;

    let template = template.display().to_string();
    let app = start(&[("TICKET_TEMPLATE", &template), ("REDIS_URL", &url)]).await;
    let event = create_event(&app).await;
    let holders = json!([{ "name": "Ann" }, { "name": "Bob", "seat": "BROKEN" }]);
    let order = app.order(json!({ "target": event, "holders": holders })).await;
    let batch = text(&order["batchId"]);
    let [made, broken] = [0, 1].map(|index| text(&order["tickets"][index]));
    batch_ended(&app, &batch).await;

    let Announcement::WorkerStarted(worker) = started.next().await else { panic!() };
    assert!(worker.worker_id.starts_with(&worker.instance_id), "{worker:?}");
    let Announcement::BatchCreated(told) = created.next().await else { panic!() };
    assert_eq!((told.batch_id.to_string(), told.quantity), (batch.clone(), 2));
    let Announcement::TicketCompleted(told) = completed.next().await else { panic!() };
    assert_eq!((told.ticket_id.to_string(), told.completed_count), (made, Some(1)));
    let Announcement::TicketFailed(told) = failed.next().await else { panic!() };
    assert_eq!((told.batch_id.to_string(), told.ticket_id.to_string()), (batch, broken.clone()));
    let Announcement::DeadLetter(told) = letters.next().await else { panic!() };
    assert_eq!((told.queue.as_str(), told.name.as_str()), ("tickets", "generate-pdf"));
    assert_eq!(told.job_id, broken);
    assert!(told.reason.contains("no such seat"), "{told:?}");
}
