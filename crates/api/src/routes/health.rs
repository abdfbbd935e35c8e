//! `GET /health`: the process lives, and what it is. `GET /ready`: it can do its work.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde_json::{Value, json};
use stampede_broker::ConnectionState;

use crate::app::App;

/// A dependency that does not answer within this time is down.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) async fn health(State(app): State<App>) -> Json<Value> {
    let mut health = json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") });
    if let (Some(health), Value::Object(node)) = (health.as_object_mut(), app.node.health()) {
        health.extend(node);
    }
    Json(health)
}

pub(crate) async fn ready(State(app): State<App>) -> (StatusCode, Json<Value>) {
    let (store, redis) = tokio::join!(
        tokio::time::timeout(PATIENCE, app.store.ping()),
        tokio::time::timeout(PATIENCE, app.broker.ping()),
    );
    let word = |up: bool| if up { "up" } else { "down" };
    let (store, redis) = (matches!(store, Ok(Ok(()))), matches!(redis, Ok(Ok(()))));
    let (status, overall) = if store && redis {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready")
    };
    let mut body = json!({ "status": overall, "database": word(store), "redis": word(redis) });
    if let ConnectionState::Away { duration, .. } = app.broker.connection_state() {
        body["redisDownSeconds"] = duration.as_secs().into();
    }
    (status, Json(body))
}
