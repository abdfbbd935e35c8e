//! Every route on one page, by room. The right that a route demands is in its handler's type (`auth.rs`).

use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::trace::{DefaultOnFailure, DefaultOnResponse, TraceLayer};
use tracing::Level;

use crate::app::App;
use crate::body::discard_unread;
use crate::problem::Problem;
use crate::room::{Room, Route};
use crate::routes::queues::{dead_letters, jobs, operate, schedules};
use crate::routes::templates::previews;
use crate::routes::{
    batch_files, batches, events, health, limits, nodes, orders, pdf, queues, suspects, templates,
    ticket_keys, tickets, verify,
};

/// Events, orders, tickets, batches, verification.
fn ticketing() -> Room {
    Room::default()
        .post("/api/events", events::create)
        .get("/api/events", events::list)
        .get("/api/events/{id}", events::read)
        .patch("/api/events/{id}", events::update)
        .delete("/api/events/{id}", events::delete)
        .get("/api/events/{id}/keys", ticket_keys::list)
        .post("/api/events/{id}/keys", ticket_keys::rotate)
        .delete("/api/events/{id}/keys/{kid}", ticket_keys::revoke)
        .post("/api/tickets", orders::create)
        .get("/api/tickets", tickets::list)
        .get("/api/tickets/{id}", tickets::read)
        .patch("/api/tickets/{id}", tickets::update)
        .delete("/api/tickets/{id}", tickets::delete)
        .get("/api/tickets/{id}/pdf", pdf::download)
        .post("/api/tickets/{id}/reissue", tickets::reissue)
        .get("/api/batches/{id}", batches::read)
        .get("/api/batches/{id}/pdf", batch_files::pdf)
        .get("/api/batches/{id}/zip", batch_files::zip)
        .post("/api/verify", verify::verify)
}

/// Templates of organisers.
fn template() -> Room {
    Room::default()
        .post("/api/templates", templates::create)
        .get("/api/templates", templates::list)
        .post("/api/templates/validate", previews::validate)
        .post("/api/templates/preview", previews::preview_files)
        .get("/api/templates/{id}", templates::read)
        .put("/api/templates/{id}", templates::update)
        .delete("/api/templates/{id}", templates::delete)
        .post("/api/templates/{id}/preview", previews::preview_template)
        .get("/api/templates/{id}/revisions", templates::revisions)
        .get("/api/templates/{id}/revisions/{number}", templates::revision)
}

/// Queues, jobs, dead letters, schedules, rate limits, circuit breakers, suspects.
fn queue() -> Room {
    Room::default()
        .get("/api/queues/status", queues::status)
        .post("/api/queues/clean", queues::clean)
        .post("/api/queues/{name}/pause", operate::pause)
        .post("/api/queues/{name}/resume", operate::resume)
        .post("/api/queues/{name}/concurrency", operate::concurrency)
        .post("/api/queues/{name}/retry", operate::retry)
        .post("/api/queues/{name}/drain", operate::drain)
        .post("/api/queues/{name}/obliterate", operate::obliterate)
        .post("/api/queues/{name}/{action}", operate::unknown)
        .get("/api/queues/{name}/jobs", jobs::list)
        .post("/api/queues/{name}/jobs", jobs::add)
        .get("/api/queues/{name}/jobs/{id}", jobs::read)
        .delete("/api/queues/{name}/jobs/{id}", jobs::remove)
        .post("/api/queues/{name}/jobs/{id}/retry", jobs::retry)
        .post("/api/queues/{name}/jobs/{id}/promote", jobs::promote)
        .post("/api/queues/{name}/jobs/{id}/cancel", jobs::cancel)
        .post("/api/queues/{name}/jobs/{id}/{action}", jobs::unknown)
        .get("/api/queues/{name}/dead-letters", dead_letters::list)
        .post("/api/queues/{name}/dead-letters/replay", dead_letters::replay)
        .post("/api/queues/{name}/dead-letters/purge", dead_letters::purge)
        .post("/api/queues/{name}/dead-letters/{action}", dead_letters::unknown)
        .get("/api/queues/{name}/schedules", schedules::list)
        .put("/api/queues/{name}/schedules/{id}", schedules::set)
        .delete("/api/queues/{name}/schedules/{id}", schedules::remove)
        .get("/api/limits", limits::list)
        .put("/api/limits/{name}", limits::set)
        .delete("/api/limits/{name}", limits::remove)
        .get("/api/breakers", limits::breakers)
        .delete("/api/breakers/{name}", limits::close_breaker)
        .get("/api/suspects", suspects::list)
        .delete("/api/suspects/{name}", suspects::lift)
}

/// Nodes, workers, scaling.
fn cluster() -> Room {
    Room::default()
        .get("/api/nodes", nodes::list)
        .post("/api/nodes/{id}/commands", nodes::command)
        .get("/api/cluster", nodes::cluster)
        .get("/api/scaling/history", nodes::history)
}

/// Health, for balancers and people.
fn vitals() -> Room {
    Room::default().open("/health", health::health).open("/ready", health::ready)
}

fn rooms() -> [Room; 5] {
    [ticketing(), template(), queue(), cluster(), vitals()]
}

/// The list of all routes, each with the right it demands.
pub fn routes() -> Vec<Route> {
    rooms().into_iter().flat_map(Room::into_routes).collect()
}

/// No request may take longer; the slowest, an order of 100,000 tickets, takes a few seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Refuses a request that takes too long.
async fn limit_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = format!("the request took longer than {REQUEST_TIMEOUT:?} and was ended");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response()
        }
    }
}

/// Measures the time to an answer, for nodes whose workers make way for the API. Previews and files of whole batches
/// do not count: they are slow by nature.
async fn note_time(State(app): State<App>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let counts = path.starts_with("/api/")
        && !["/api/templates", "/api/batches"].iter().any(|slow| path.starts_with(slow));
    let started = Instant::now();
    let response = next.run(request).await;
    if counts {
        app.latency.record(started.elapsed());
    }
    response
}

/// Turns a panic of a handler into a 500.
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let cause = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    Problem::internal(&format!("panicked: {cause}")).into_response()
}

/// The API as a service.
pub fn router(app: App) -> Router {
    rooms()
        .into_iter()
        .fold(Router::new(), |all, room| all.merge(room.into_router()))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is no such route"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this route does not know that method")
        })
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn(limit_time))
        .layer(middleware::from_fn_with_state(app.clone(), note_time))
        .layer(middleware::from_fn(discard_unread))
        // The handler has logged a failure already.
        .layer(
            TraceLayer::new_for_http()
                .on_response(DefaultOnResponse::new().level(Level::DEBUG))
                .on_failure(DefaultOnFailure::new().level(Level::DEBUG)),
        )
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Right;

    #[test]
    fn only_health_is_open_and_the_rooms_of_operators_are_for_administrators() {
        for route in routes() {
            let operators = ["/api/queues", "/api/limits", "/api/breakers", "/api/nodes"]
                .into_iter()
                .chain(["/api/cluster", "/api/scaling", "/api/suspects"])
                .any(|room| route.path.starts_with(room));
            match route.path {
                "/health" | "/ready" => assert_eq!(route.right, Right::Nothing, "{route:?}"),
                _ if operators => assert_eq!(route.right, Right::Administer, "{route:?}"),
                _ => assert!(matches!(route.right, Right::Call | Right::Write), "{route:?}"),
            }
        }
    }
}
