//! What other software reads in Redis: channels and `batch:{id}` (W5), seen with redis-cli.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use stampede_testkit::{Redis, eventually};

use crate::{batch_ended, create_event, start, text};

pub(crate) struct Listener {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Listener {
    /// Subscribes and returns when the subscription stands.
    pub(crate) fn subscribe(redis: &Redis, channels: &[&str]) -> Self {
        let mut child = Command::new("redis-cli")
            .args(["-p", &redis.port().to_string(), "SUBSCRIBE"])
            .args(channels)
            .stdout(Stdio::piped())
            .spawn()
            .expect("redis-cli comes with redis-server: apt-get install redis-server");
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
        self.lines.recv_timeout(Duration::from_secs(60)).expect("a line from redis-cli")
    }

    pub(crate) fn message(&self) -> (String, Value) {
        assert_eq!(self.line(), "message");
        let channel = self.line();
        (channel, serde_json::from_str(&self.line()).unwrap())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn get(redis: &Redis, key: &str) -> Value {
    serde_json::from_str(&redis.cli(&["GET", key])).unwrap_or(Value::Null)
}

#[tokio::test]
async fn orders_and_tickets_are_announced_as_seed_000_does() {
    let redis = Redis::start().await;
    let url = redis.url();
    let app = start(&[("REDIS_URL", &url)]).await;
    let listener = Listener::subscribe(&redis, &["batch:created", "ticket:completed"]);
    let event = create_event(&app).await;
    let order = app.order(json!({ "target": event, "quantity": 2, "name": "Ann" })).await;
    let batch_id = text(&order["batchId"]);
    let mut messages = [listener.message(), listener.message(), listener.message()];
    messages.sort_by(|a, b| a.0.cmp(&b.0));

    let (channel, created) = &messages[0];
    assert_eq!(channel, "batch:created");
    assert_eq!(created, &json!({ "batchId": batch_id, "userId": "admin", "quantity": 2 }));
    for (channel, completed) in &messages[1..] {
        assert_eq!(channel, "ticket:completed");
        assert_eq!(completed["batch_id"], batch_id);
        assert!(
            text(&completed["pdf_path"])
                .ends_with(&format!("tickets/ticket-{}.pdf", text(&completed["ticket_id"])))
        );
        assert!(text(&completed["worker_id"]).contains("-worker-"));
        assert!(completed["completed_count"].is_u64());
    }

    batch_ended(&app, &batch_id).await;
    let mirror = eventually(Duration::from_secs(10), || async {
        let mirror = get(&redis, &format!("batch:{batch_id}"));
        if mirror["status"] == "completed" { Ok(mirror) } else { Err(mirror.to_string()) }
    })
    .await;
    assert_eq!(
        (&mirror["total"], &mirror["completed"], &mirror["failed"]),
        (&json!(2), &json!(2), &json!(0))
    );
    assert_eq!(mirror["tickets"], order["tickets"]);
    assert_eq!(mirror["userId"], "admin");
}
