//! Every route on one page.

use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use http::StatusCode;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::trace::{DefaultOnFailure, DefaultOnResponse, TraceLayer};
use tracing::Level;

use crate::app::App;
use crate::problem::Problem;
use crate::routes::templates::previews;
use crate::routes::{
    batch_files, batches, events, health, limits, nodes, orders, pdf, queues, templates,
    ticket_keys, tickets, verify,
};

/// No request may take longer; the slowest, an order of 100,000 tickets, takes a few seconds.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Answers for a request that does not come to an end.
async fn limit_time(request: Request, next: Next) -> Response {
    match tokio::time::timeout(REQUEST_TIMEOUT, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = format!("the request took longer than {REQUEST_TIMEOUT:?} and was ended");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response()
        }
    }
}

/// Notes how long an answer took, for nodes whose workers make way for the API. Previews and files
/// of whole batches take as long as they take.
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

/// The API as a service.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .route("/api/events", post(events::create).get(events::list))
        .route("/api/events/{id}", get(events::read).patch(events::update).delete(events::delete))
        .route("/api/events/{id}/keys", get(ticket_keys::list).post(ticket_keys::rotate))
        .route("/api/events/{id}/keys/{kid}", delete(ticket_keys::revoke))
        .route("/api/tickets", post(orders::create).get(tickets::list))
        .route(
            "/api/tickets/{id}",
            get(tickets::read).patch(tickets::update).delete(tickets::delete),
        )
        .route("/api/tickets/{id}/pdf", get(pdf::download))
        .route("/api/tickets/{id}/reissue", post(tickets::reissue))
        .route("/api/verify", post(verify::verify))
        .route("/api/batches/{id}", get(batches::read))
        .route("/api/queues/status", get(queues::status))
        .route("/api/queues/clean", post(queues::clean))
        .route("/api/queues/{name}/jobs", get(queues::jobs::list).post(queues::jobs::add))
        .route("/api/queues/{name}/jobs/{id}", get(queues::jobs::read).delete(queues::jobs::remove))
        .route("/api/queues/{name}/jobs/{id}/{verb}", post(queues::jobs::change))
        .route("/api/queues/{name}/dead-letters", get(queues::dead_letters::list))
        .route("/api/queues/{name}/dead-letters/{verb}", post(queues::dead_letters::change))
        .route("/api/queues/{name}/schedules", get(queues::schedules::list))
        .route(
            "/api/queues/{name}/schedules/{id}",
            put(queues::schedules::set).delete(queues::schedules::remove),
        )
        .route("/api/queues/{name}/{verb}", post(queues::change))
        .route("/api/limits", get(limits::list))
        .route("/api/limits/{name}", put(limits::set).delete(limits::remove))
        .route("/api/breakers", get(limits::breakers))
        .route("/api/breakers/{name}", delete(limits::close_breaker))
        .route("/api/nodes", get(nodes::list))
        .route("/api/nodes/{id}/commands", post(nodes::command))
        .route("/api/cluster", get(nodes::cluster))
        .route("/api/scaling/history", get(nodes::history))
        .route("/api/batches/{id}/pdf", get(batch_files::pdf))
        .route("/api/batches/{id}/zip", get(batch_files::zip))
        .route("/api/templates", post(templates::create).get(templates::list))
        .route("/api/templates/validate", post(previews::validate))
        .route("/api/templates/preview", post(previews::preview_files))
        .route(
            "/api/templates/{id}",
            get(templates::read).put(templates::update).delete(templates::delete),
        )
        .route("/api/templates/{id}/preview", post(previews::preview_template))
        .route("/api/templates/{id}/revisions", get(templates::revisions))
        .route("/api/templates/{id}/revisions/{number}", get(templates::revision))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is no such route"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this route does not know that method")
        })
        .layer(CatchPanicLayer::custom(|panic: Box<dyn std::any::Any + Send>| {
            let cause = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            Problem::internal(&format!("panicked: {cause}")).into_response()
        }))
        .layer(middleware::from_fn(limit_time))
        .layer(middleware::from_fn_with_state(app.clone(), note_time))
        // Whatever went wrong has been told where it did.
        .layer(
            TraceLayer::new_for_http()
                .on_response(DefaultOnResponse::new().level(Level::DEBUG))
                .on_failure(DefaultOnFailure::new().level(Level::DEBUG)),
        )
        .with_state(app)
}
