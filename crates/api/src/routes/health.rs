//! `GET /health`: the process answers; administrators also see the node. `GET /ready`: the node can do its work. Both
//! need no key, because balancers have none, and strangers learn nothing else from them.
//!
//! Nodes that only work answer these two routes, `GET /metrics` and nothing else ([`health_router`]).

use std::time::Duration;

use axum::extract::{FromRef, State};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use stampede_broker::{Broker, ConnectionState};
use stampede_cluster::NodeHandle;
use stampede_identity::Identity;
use stampede_model::Principal;
use stampede_store::Store;
use stampede_ticketing::Ticketing;
use stampede_wire::cluster::{Health, Readiness, UpOrDown};

use crate::app::App;
use crate::auth::{self, Anyone, MaybeCaller};
use crate::describe::ReadyOrNot;
use crate::metrics::MetricsPage;
use crate::problem::{Code, Problem};
use crate::rate_limits::RateLimits;
use crate::routes::metrics;
use crate::storage_check::StorageCheck;

/// A dependency that does not answer within this time is down.
const PATIENCE: Duration = Duration::from_secs(2);

/// The parts of a node whose health is shown.
#[derive(Clone)]
pub struct Vitals {
    /// Who is asking.
    pub identity: Identity,
    /// How often addresses may send wrong keys.
    pub rates: RateLimits,
    /// Records.
    pub store: Store,
    /// Orders and tickets, with the storage of PDFs.
    pub ticketing: Ticketing,
    /// The last check of both.
    pub storage: StorageCheck,
    /// Redis.
    pub broker: Broker,
    /// This node.
    pub node: NodeHandle,
    /// What it counts.
    pub metrics: MetricsPage,
}

impl FromRef<App> for Vitals {
    fn from_ref(app: &App) -> Self {
        Self {
            identity: app.identity.clone(),
            rates: app.rates.clone(),
            store: app.store.clone(),
            ticketing: app.ticketing.clone(),
            storage: app.storage.clone(),
            broker: app.broker.clone(),
            node: app.node.clone(),
            metrics: app.metrics.clone(),
        }
    }
}

/// The routes of a node that only works.
pub(crate) fn health_router(vitals: Vitals) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/ready", get(ready_to_work))
        .route("/metrics", get(metrics::show_worker))
        .fallback(async || {
            let detail =
                "this node only works: it knows /health, /ready and /metrics, other nodes have the API";
            Problem::new(Code::NotFound, detail)
        })
        .with_state(vitals)
}

/// `GET /health`.
pub(crate) async fn health(
    State(vitals): State<Vitals>,
    MaybeCaller(headers, from): MaybeCaller,
) -> Result<Json<Health>, Problem> {
    let asking = auth::principal(&vitals.identity, &vitals.rates, &headers, from);
    let sees_all = |who: Principal| who.reads_everything() && !who.scope.is_limited();
    let is_told = match tokio::time::timeout(PATIENCE, asking).await {
        Ok(Ok(principal)) => principal.is_some_and(sees_all),
        // An invalid key is refused; a database that is away says nothing about this process.
        Ok(Err(problem)) if problem.is_about_the_key() => return Err(problem),
        Ok(Err(_)) | Err(_) => false,
    };
    Ok(Json(Health { status: "ok".to_owned(), node: is_told.then(|| vitals.node.health()) }))
}

/// `GET /ready`.
pub(crate) async fn ready(State(vitals): State<Vitals>, _: Anyone) -> ReadyOrNot {
    readiness(&vitals, None).await
}

/// `GET /ready` of a node that only works: a worker must run.
async fn ready_to_work(State(vitals): State<Vitals>) -> ReadyOrNot {
    let running = vitals.node.running_workers();
    readiness(&vitals, Some(running)).await
}

async fn readiness(vitals: &Vitals, workers: Option<usize>) -> ReadyOrNot {
    let (storage, redis) = tokio::join!(
        vitals.storage.state(&vitals.store, &vitals.ticketing, PATIENCE),
        tokio::time::timeout(PATIENCE, vitals.broker.ping()),
    );
    let state = vitals.broker.connection_state();
    // A Redis that answers but accepts no writes counts as down.
    let redis = matches!(redis, Ok(Ok(()))) && state == ConnectionState::Connected;
    // A node with the API takes orders and serves the PDFs that are there, even if no others can be written.
    let works = workers.is_none_or(|running| running > 0 && storage.files.is_ok());
    let (status, overall) = if storage.database.is_ok() && redis && works {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready")
    };
    let (redis_down_seconds, redis_reason) = match state {
        ConnectionState::Away { duration, reason } => (Some(duration.as_secs()), Some(reason)),
        _ => (None, None),
    };
    let body = Readiness {
        status: overall.to_owned(),
        database: storage.database.is_ok().into(),
        redis: redis.into(),
        files: Some(storage.files.is_ok().into()),
        workers: workers.map(|running| UpOrDown::from(running > 0)),
        redis_down_seconds,
        redis_reason,
        database_reason: storage.database.err(),
        files_reason: storage.files.err(),
    };
    ReadyOrNot(status, body)
}
