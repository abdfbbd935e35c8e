//! `/api/nodes`, `/api/cluster`, `/api/scaling/history`: the cluster. Viewers of everybody see it, administrators operate it.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use stampede_broker::{NodeEntry, Tallies, WorkerEntry};
use stampede_cluster::{Command, ENTRY_LIVES};
use stampede_wire::Paged;
use stampede_wire::cluster::{
    ActiveWorker, ClusterView, CommandSent, Coordinator, History, JobTotals, NodeCommand,
    NodeStats, NodeView, Nodes, QueueMetrics, WorkerHeartbeat,
};

use crate::app::App;
use crate::auth::{Admin, Overseer};
use crate::body::Body;
use crate::describe::{Accepted, Located};
use crate::forms::{Mistakes, Text, Whole, form};
use crate::input::Id;
use crate::page::Page;
use crate::problem::{Code, Problem};
use crate::query::{Nothing, Params};
use crate::trace::Audited;
use stampede_audit::{Kind, Subject};

/// The nodes that are alive, each with its workers.
pub(crate) async fn list(
    State(app): State<App>,
    _: Overseer,
    Params(page): Params<Page>,
) -> Result<Json<Paged<Nodes>>, Problem> {
    let registry = app.broker.registry(ENTRY_LIVES);
    let nodes = registry.nodes().await?;
    let workers: Vec<WorkerEntry<ActiveWorker, WorkerHeartbeat>> = registry.workers().await?;
    let ages: HashMap<String, u64> =
        workers.into_iter().map(|worker| (worker.id, worker.age.as_millis() as u64)).collect();
    let leader = app.broker.coordinator().await?.map(|leader| leader.node);
    let nodes = nodes.into_iter().map(|node| shown(node, &ages, leader.as_deref()));
    let name = |node: &NodeView| node.id.clone();
    Ok(Json(page.cut(nodes.collect(), name, |nodes| Nodes { nodes })))
}

/// A node, with the age of each worker's heartbeat.
fn shown(
    node: NodeEntry<NodeStats, QueueMetrics>,
    heartbeats: &HashMap<String, u64>,
    leader: Option<&str>,
) -> NodeView {
    let is_coordinator = leader == Some(node.name.as_str());
    let mut view = NodeView::new(node.name, node.stats, node.age.as_millis() as u64);
    view.is_coordinator = is_coordinator;
    view.queue = node.queue;
    for worker in view.workers_mut() {
        let age = worker.id.as_ref().and_then(|id| heartbeats.get(id));
        worker.heartbeat_ms_ago = Some(age.copied());
    }
    view
}

/// The whole cluster: the coordinator, totals, ended jobs, alerts.
pub(crate) async fn cluster(
    State(app): State<App>,
    _: Overseer,
    Params(Nothing): Params<Nothing>,
) -> Result<Json<ClusterView>, Problem> {
    let decisions = app.broker.decisions();
    let leader = app.broker.coordinator().await?;
    let counters = app.broker.registry(ENTRY_LIVES).counters().await?;
    let done = |of: fn(&Tallies) -> u64| counters.values().map(of).sum::<u64>();
    Ok(Json(ClusterView {
        coordinator: leader.map(|leader| Coordinator { node: leader.node, token: leader.token }),
        stats: decisions.stats().await?,
        jobs: JobTotals {
            completed: done(|t| t.completed),
            failed: done(|t| t.failed),
            stalled: done(|t| t.stalled),
        },
        alerts: decisions.alerts().await?,
    }))
}

/// The last 100 decisions, newest first.
pub(crate) async fn history(
    State(app): State<App>,
    _: Overseer,
    Params(Nothing): Params<Nothing>,
) -> Result<Json<History>, Problem> {
    let (history, _) = app.broker.decisions().history().await?;
    Ok(Json(History { history }))
}

form! {
    /// `POST /api/nodes/{id}/commands`.
    pub(crate) struct CommandForm {
        /// `scale_up`, `scale_down` or `restart`.
        action: Text<200> = "action" required,
        /// Workers more or fewer; 1 if absent.
        count: Whole = "count",
    }
}

/// Sends a command to a node, or to `all`: `{"action": "scale_up" | "scale_down" | "restart"}`, and `count` for more
/// than one worker.
pub(crate) async fn command(
    State(app): State<App>,
    admin: Admin,
    Id(node): Id<String>,
    Body(form, _held): Body<CommandForm>,
) -> Result<Audited<Located<Accepted<CommandSent>>>, Problem> {
    let mut mistakes = Mistakes::default();
    mistakes.only(&form);
    let action = mistakes.value(form.action).map(|Text(action)| action);
    let count = mistakes.value(form.count).map(|Whole(count)| count);
    let reason = Some(format!("by {} over HTTP", admin.0.user));
    let command = NodeCommand { action, count, reason, ..NodeCommand::default() };
    let command = mistakes.finish(Some(command))?;
    Command::read(&command).map_err(|reason| Problem::new(Code::Invalid, reason))?;
    if node != "all" {
        let nodes = app.broker.registry(ENTRY_LIVES).nodes::<NodeStats, QueueMetrics>().await?;
        if !nodes.iter().any(|entry| entry.name == node) {
            return Err(Problem::not_found("Node", &node));
        }
    }
    let noted = admin.begin_new(&app, Subject::of(Kind::Node, &node)).await?;
    let heard = app.broker.decisions().command(&node, &command).await?;
    if heard == Some(0) {
        let detail = "nobody listens: the node runs no workers, or is cut off";
        return Err(Problem::new(Code::Conflict, detail));
    }
    tracing::info!(user = admin.0.user, node, ?command, "command sent");
    let sent = Accepted(CommandSent { success: true, heard });
    Ok(noted.after(&command).answer(Located("/api/nodes".to_owned(), sent)))
}
