//! `GET /health`: the process lives; for administrators also what it is. `GET /ready`: it can do its
//! work. Both are open to everybody, for balancers have no key, so they say no more than that.
//!
//! Nodes that only work answer these two and nothing else ([`health_router`]).

use std::time::Duration;

use axum::extract::{FromRef, State};
use axum::routing::get;
use axum::{Json, Router};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use stampede_broker::{Broker, ConnectionState};
use stampede_cluster::NodeHandle;
use stampede_model::Role;
use stampede_store::Store;

use crate::app::App;
use crate::auth;
use crate::problem::Problem;

/// A dependency that does not answer within this time is down.
const PATIENCE: Duration = Duration::from_secs(2);

/// What has to be known to say how a node is.
#[derive(Clone)]
pub struct Vitals {
    /// Records.
    pub store: Store,
    /// Redis.
    pub broker: Broker,
    /// The node this is.
    pub node: NodeHandle,
}

impl FromRef<App> for Vitals {
    fn from_ref(app: &App) -> Self {
        Self { store: app.store.clone(), broker: app.broker.clone(), node: app.node.clone() }
    }
}

/// For a node that only works: how it is, and nothing else.
pub(crate) fn health_router(vitals: Vitals) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/ready", get(ready_to_work))
        .fallback(async || {
            let detail =
                "this node only works: it knows /health and /ready, other nodes have the API";
            Problem::new(StatusCode::NOT_FOUND, detail)
        })
        .with_state(vitals)
}

pub(crate) async fn health(
    State(vitals): State<Vitals>,
    headers: HeaderMap,
) -> Result<Json<Value>, Problem> {
    let mut health = json!({ "status": "ok" });
    let asking = auth::principal(&vitals.store, &headers);
    let admin = match tokio::time::timeout(PATIENCE, asking).await {
        Ok(Ok(principal)) => principal.is_some_and(|principal| principal.role == Role::Admin),
        // A key that nobody knows is worth a word; a database that is away does not make this process ill.
        Ok(Err(problem)) if problem.is_unauthorized() => return Err(problem),
        Ok(Err(_)) | Err(_) => false,
    };
    if let (true, Some(health), Value::Object(node)) =
        (admin, health.as_object_mut(), vitals.node.health())
    {
        health.insert("version".to_owned(), json!(env!("CARGO_PKG_VERSION")));
        health.extend(node);
    }
    Ok(Json(health))
}

pub(crate) async fn ready(State(vitals): State<Vitals>) -> (StatusCode, Json<Value>) {
    readiness(&vitals, None).await
}

/// The same where nothing but work is done: there must be somebody who does it.
async fn ready_to_work(State(vitals): State<Vitals>) -> (StatusCode, Json<Value>) {
    let running = vitals.node.health()["workers"]["running"].as_u64().unwrap_or(0);
    readiness(&vitals, Some(running)).await
}

async fn readiness(vitals: &Vitals, workers: Option<u64>) -> (StatusCode, Json<Value>) {
    let (store, redis) = tokio::join!(
        tokio::time::timeout(PATIENCE, vitals.store.ping()),
        tokio::time::timeout(PATIENCE, vitals.broker.ping()),
    );
    let word = |up: bool| if up { "up" } else { "down" };
    let state = vitals.broker.connection_state();
    // One that answers and takes nothing does not help either.
    let redis = matches!(redis, Ok(Ok(()))) && state == ConnectionState::Connected;
    let store = matches!(store, Ok(Ok(())));
    let (status, overall) = if store && redis && workers != Some(0) {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready")
    };
    let mut body = json!({ "status": overall, "database": word(store), "redis": word(redis) });
    if let Some(workers) = workers {
        body["workers"] = word(workers > 0).into();
    }
    if let ConnectionState::Away { duration, reason } = state {
        body["redisDownSeconds"] = duration.as_secs().into();
        body["redisReason"] = reason.into();
    }
    (status, Json(body))
}
