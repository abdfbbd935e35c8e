//! `GET /metrics`, for Prometheus: with any key that is not limited to an event or to queues; without one on the address of
//! METRICS_LISTEN ([`open_router`]).

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use schemars::json_schema;

use crate::app::App;
use crate::auth::{self, MaybeCaller, Watcher};
use crate::describe::{Kind, Operation, Sent};
use crate::metrics::MetricsPage;
use crate::problem::{Code, Problem};
use crate::routes::health::Vitals;

/// Metrics in the text format of Prometheus.
pub(crate) struct PrometheusText;

impl Kind for PrometheusText {
    fn describe(operation: &mut Operation<'_>) {
        let schema = json_schema!({ "type": "string" });
        let about = "Metrics in the text format of Prometheus.";
        operation.answers(200, about, Some(("text/plain", schema)));
    }
}

/// `GET /metrics`.
pub(crate) async fn show(
    State(app): State<App>,
    _: Watcher,
) -> Result<Sent<PrometheusText>, Problem> {
    answer(&app.metrics).await
}

/// `GET /metrics` of a node that only works.
pub(crate) async fn show_worker(
    State(vitals): State<Vitals>,
    MaybeCaller(headers, from): MaybeCaller,
) -> Result<Sent<PrometheusText>, Problem> {
    let asking = auth::principal(&vitals.identity, &vitals.rates, &headers, from);
    let principal = asking.await?.ok_or_else(auth::no_key)?;
    if principal.scope.is_limited() {
        return Err(Problem::out_of_scope(&principal.scope));
    }
    answer(&vitals.metrics).await
}

/// The route of METRICS_LISTEN.
pub(crate) fn open_router(page: MetricsPage) -> Router {
    Router::new()
        .route("/metrics", get(show_open))
        .fallback(async || {
            Problem::new(Code::NotFound, "this address has metrics only: it knows /metrics")
        })
        .with_state(page)
}

async fn show_open(State(page): State<MetricsPage>) -> Result<Sent<PrometheusText>, Problem> {
    answer(&page).await
}

async fn answer(page: &MetricsPage) -> Result<Sent<PrometheusText>, Problem> {
    let text = page.text().await.map_err(|error| Problem::internal(&error))?;
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    let kind = http::HeaderValue::from_static(stampede_telemetry::MEDIA_TYPE);
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, http::HeaderValue::from_static("no-store"));
    Ok(Sent::new(response))
}
