//! `/api/nodes`, `/api/cluster`, `/api/scaling/history`: the cluster, for administrators only.

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use serde_json::{Value, json};
use stampede_broker::{NodeEntry, WorkerEntry};
use stampede_cluster::{Command, ENTRY_LIVES};

use crate::app::App;
use crate::auth::Caller;
use crate::input::{Body, Fields};
use crate::problem::Problem;
use crate::query::{Nothing, Params};

/// The nodes that are there, each with its workers.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(Nothing): Params<Nothing>,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let registry = app.broker.registry(ENTRY_LIVES);
    let (nodes, workers) = (registry.nodes().await?, registry.workers().await?);
    let leader = app.broker.coordinator().await?.map(|leader| leader.node);
    let shown: Vec<Value> =
        nodes.iter().map(|node| shown(node, &workers, leader.as_deref())).collect();
    Ok(Json(json!({ "nodes": shown })))
}

fn shown(node: &NodeEntry, workers: &[WorkerEntry], leader: Option<&str>) -> Value {
    let mut stats = node.stats.clone();
    if let Some(stats) = stats.as_object_mut() {
        stats.remove("incarnation");
        let list = stats.remove("workerList").unwrap_or_else(|| json!([]));
        stats.insert("workerProcesses".to_owned(), with_heartbeats(list, workers));
        stats.insert("id".to_owned(), json!(node.name));
        stats.insert("queue".to_owned(), node.queue.clone());
        stats.insert("ageMs".to_owned(), json!(node.age.as_millis() as u64));
        stats.insert("isCoordinator".to_owned(), json!(leader == Some(node.name.as_str())));
    }
    stats
}

/// What the supervisor knows of its workers, with how long ago each said that it is there.
fn with_heartbeats(mut list: Value, workers: &[WorkerEntry]) -> Value {
    for worker in list.as_array_mut().into_iter().flatten() {
        let heartbeat = workers.iter().find(|entry| worker["id"] == entry.id.as_str());
        let age = json!(heartbeat.map(|entry| entry.age.as_millis() as u64));
        // Other software may write anything there.
        if let Some(worker) = worker.as_object_mut() {
            worker.insert("heartbeatMsAgo".to_owned(), age);
        }
    }
    list
}

/// The whole cluster: who coordinates, totals, jobs done, alerts.
pub(crate) async fn cluster(
    State(app): State<App>,
    caller: Caller,
    Params(Nothing): Params<Nothing>,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let decisions = app.broker.decisions();
    let leader = app.broker.coordinator().await?;
    let counters = app.broker.registry(ENTRY_LIVES).counters().await?;
    let done = |of: fn(&stampede_broker::Tallies) -> u64| counters.values().map(of).sum::<u64>();
    Ok(Json(json!({
        "coordinator": leader.as_ref().map(|leader| json!({
            "node": leader.node, "token": leader.token,
        })),
        "stats": decisions.stats().await?,
        "jobs": {
            "completed": done(|t| t.completed),
            "failed": done(|t| t.failed),
            "stalled": done(|t| t.stalled),
        },
        "alerts": decisions.alerts().await?,
    })))
}

/// The last 100 decisions, newest first.
pub(crate) async fn history(
    State(app): State<App>,
    caller: Caller,
    Params(Nothing): Params<Nothing>,
) -> Result<Json<Value>, Problem> {
    caller.must_administer()?;
    let (history, _) = app.broker.decisions().history().await?;
    Ok(Json(json!({ "history": history })))
}

/// Sends a command to a node, or to `all`: `{"action": "scale_up" | "scale_down" | "restart"}`, with
/// `count` if it is about more than one worker.
pub(crate) async fn command(
    State(app): State<App>,
    caller: Caller,
    Path(node): Path<String>,
    Body(body): Body,
) -> Result<(StatusCode, Json<Value>), Problem> {
    caller.must_administer()?;
    let mut fields = Fields::new(&body);
    fields.only(&["action", "count"]);
    fields.finish(Some(()))?;
    let refused = |reason: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, reason);
    let mut command = json!({
        "action": body.get("action"),
        "reason": format!("by {} over HTTP", caller.0.user),
    });
    if let Some(count) = body.get("count") {
        command["count"] = count.clone();
    }
    Command::parse(&command.to_string()).map_err(refused)?;
    if node != "all" {
        let nodes = app.broker.registry(ENTRY_LIVES).nodes().await?;
        if !nodes.iter().any(|entry| entry.name == node) {
            return Err(Problem::not_found("Node"));
        }
    }
    let heard = app.broker.decisions().command(&node, &command).await?;
    if heard == Some(0) {
        let detail = "nobody listens: the node runs no workers, or is cut off";
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    tracing::info!(user = caller.0.user, node, %command, "command sent");
    Ok((StatusCode::ACCEPTED, Json(json!({ "success": true, "heard": heard }))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_software_wrote_into_the_list_of_workers_is_shown_as_it_is() {
        let workers = [WorkerEntry {
            id: "a".to_owned(),
            active: Value::Null,
            heartbeat: Value::Null,
            age: std::time::Duration::from_millis(7),
        }];
        let list = json!([5, "x", null, ["a"], { "id": "a" }, { "id": 1 }]);
        let wanted = json!([
            5, "x", null, ["a"],
            { "id": "a", "heartbeatMsAgo": 7 },
            { "id": 1, "heartbeatMsAgo": null },
        ]);
        assert_eq!(with_heartbeats(list, &workers), wanted);
        assert_eq!(with_heartbeats(json!("none"), &workers), json!("none"));
    }
}
