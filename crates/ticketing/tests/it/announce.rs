//! Announcements, and `batch:{id}`, as readers outside see them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use serde_json::json;
use stampede_testkit::{Redis, eventually};
use stampede_wire::announcement::Announcement;

use crate::stage::{PATIENCE, Stage, accepted, holder};

/// redis-cli that listens on channels.
struct Listener {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Listener {
    fn subscribe(redis: &Redis, channels: &[&str]) -> Self {
        let mut child = Command::new("redis-cli")
            .args(["-p", &redis.port().to_string(), "SUBSCRIBE"])
            .args(channels)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)))
        });
        let listener = Self { child, lines };
        for _ in 0..3 * channels.len() {
            listener.line();
        }
        listener
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// The next message, as the type that it is.
    fn next(&self) -> Announcement {
        assert_eq!(self.line(), "message");
        let channel = self.line();
        Announcement::parse(&channel, &self.line()).unwrap()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_completions_and_failures_are_announced() {
    let mut stage = Stage::quiet().await;
    let channels = ["batch:created", "ticket:completed", "ticket:failed"];
    let listener = Listener::subscribe(&stage.redis, &channels);
    let mut order = stage.order(&["Ann", "Bob"]);
    order.lines[1].holder = holder("Bob", Some("BROKEN"));
    let (batch, tickets) = accepted(stage.ticketing.place(order).await.unwrap());
    let Announcement::BatchCreated(created) = listener.next() else { panic!("not created") };
    assert_eq!((created.batch_id, created.user_id.as_str(), created.quantity), (batch, "ann", 2));
    stage.work().await;
    let Announcement::TicketCompleted(completed) = listener.next() else { panic!("not completed") };
    assert_eq!((completed.batch_id, completed.ticket_id), (batch, tickets[0]));
    assert_eq!((completed.worker_id.as_str(), completed.completed_count), ("worker-1", Some(1)));
    assert!(completed.pdf_path.ends_with(&format!("tickets/ticket-{}.pdf", tickets[0])));
    let Announcement::TicketFailed(failed) = listener.next() else { panic!("not failed") };
    assert_eq!((failed.ticket_id, failed.worker_id.as_str()), (tickets[1], "worker-1"));
    assert!(failed.error.contains("no such seat"), "{}", failed.error);
    let mirrored = eventually(PATIENCE, || async {
        let mirrored = stage.mirrored(batch);
        match mirrored["status"] == "completed_with_errors" {
            true => Ok(mirrored),
            false => Err(mirrored.to_string()),
        }
    })
    .await;
    assert_eq!(mirrored["tickets"], json!(tickets));
    assert_eq!((&mirrored["completed"], &mirrored["failed"]), (&json!(1), &json!(1)));
    assert_eq!(mirrored["userId"], "ann");
    stage.stop().await;
}

#[tokio::test]
async fn the_stop_writes_the_last_state_of_a_batch() {
    let mut stage = Stage::working().await;
    let (batch, _) = stage.place(&["Ann"]).await;
    stage.ended(batch).await;
    stage.stop().await;
    assert_eq!(stage.mirrored(batch)["status"], "completed");
}
