//! Clusters of real processes on one machine: nodes that share Redis, PostgreSQL and a folder.

mod burst;
mod coordination;
mod crash_loop;
mod live;
mod making_way;
mod names;
mod partition;
mod redis_cli;
mod replaced_binary;
mod stopping;
mod whole;
mod worker_health;

use std::time::Duration;

use serde_json::{Value, json};
use stampede_testkit::{App, Client, Postgres, Redis, TempDir, eventually, temp_dir};

use crate::{PATIENCE, start, text};

/// How long the cluster may take to notice something.
const NOTICED: Duration = Duration::from_secs(30);

/// What the nodes of a cluster share.
pub(crate) struct Cluster {
    redis: Redis,
    postgres: Postgres,
    database: String,
    public: TempDir,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let (redis, postgres) = tokio::join!(Redis::start(), Postgres::start());
        let database = postgres.url();
        Self { redis, postgres, database, public: temp_dir() }
    }

    /// Starts a node that reaches everything directly.
    pub(crate) async fn node(&self, name: &str, mode: &str, settings: &[(&str, &str)]) -> App {
        let redis = self.redis.url();
        self.node_through(name, mode, &redis, &self.database, settings).await
    }

    /// Starts a node that reaches Redis and PostgreSQL at these addresses.
    async fn node_through(
        &self,
        name: &str,
        mode: &str,
        redis: &str,
        database: &str,
        settings: &[(&str, &str)],
    ) -> App {
        let public = self.public.path().display().to_string();
        let mut all = vec![
            ("SERVER_NAME", name),
            ("WORKER_MODE", mode),
            ("WORKER_COUNT", "1"),
            ("REDIS_URL", redis),
            ("DATABASE_URL", database),
            ("PUBLIC_PATH", public.as_str()),
            ("TICKET_KEY_SECRET", "0123456789abcdef0123456789abcdef"),
        ];
        for (setting, value) in settings {
            all.retain(|(known, _)| known != setting);
            all.push((setting, value));
        }
        start(&all).await
    }

    /// Runs redis-cli and returns what it prints.
    fn redis_cli(&self, arguments: &[&str]) -> String {
        self.redis.cli(arguments)
    }
}

/// An event made through any address of the API.
async fn event_at(client: &Client) -> String {
    let event = json!({ "name": "Opening Night", "location": "Main Hall", "currency": "EUR" });
    text(&client.post("/api/events", &event).await.expect(201)["id"])
}

async fn batch(client: &Client, id: &str) -> Result<Value, String> {
    let answer = client.try_get(&format!("/api/batches/{id}")).await?;
    if answer.status == 200 { Ok(answer.body) } else { Err(answer.body.to_string()) }
}

/// Waits until at least so many tickets of a batch are made, for as long as it goes on: how long that
/// takes says how busy this machine is.
async fn made(client: &Client, id: &str, count: u64) -> Value {
    let mut before = 0;
    loop {
        let (made, batch) = eventually(PATIENCE, || async {
            let batch = batch(client, id).await?;
            match batch["completed"].as_u64() {
                Some(made) if made >= count || made > before => Ok((made, batch)),
                _ => Err(batch.to_string()),
            }
        })
        .await;
        if made >= count {
            return batch;
        }
        before = made;
    }
}

/// Waits until a batch has ended, and checks that every ticket was made, once.
async fn all_made(client: &Client, id: &str, total: u64) {
    let batch = made(client, id, total).await;
    assert_eq!(
        (&batch["total"], &batch["completed"], &batch["failed"], &batch["status"]),
        (&json!(total), &json!(total), &json!(0), &json!("completed")),
        "{batch}"
    );
}

/// The nodes as the API shows them, by name.
async fn nodes(client: &Client) -> Result<Vec<Value>, String> {
    let answer = client.try_get("/api/nodes").await?;
    let nodes = answer.body["nodes"].as_array().cloned();
    nodes.ok_or_else(|| format!("{} {}", answer.status, answer.body))
}

/// Waits until a node looks like this; returns it.
async fn node_becomes(client: &Client, name: &str, looks: impl Fn(&Value) -> bool) -> Value {
    eventually(NOTICED, || async {
        let nodes = nodes(client).await?;
        let node = nodes.into_iter().find(|node| node["id"] == name);
        match node {
            Some(node) if looks(&node) => Ok(node),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

/// Waits until another node than this coordinates; returns its name.
async fn coordinator_other_than(client: &Client, former: &str) -> String {
    eventually(NOTICED, || async {
        let answer = client.try_get("/api/cluster").await?;
        match answer.body["coordinator"]["node"].as_str() {
            Some(node) if node != former => Ok(node.to_owned()),
            _ => Err(answer.body["coordinator"].to_string()),
        }
    })
    .await
}
