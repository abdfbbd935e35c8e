//! What every request passes, whichever route or page it is for, from the outside in:
//!
//! ```text
//!   request id, log span ──▶ CORS, preflights ──▶ compression ──▶ body kept unread ──▶ client's address ──▶ its rate limit ──▶ routes, pages
//! ```

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;

use crate::body::discard_unread;
use crate::client_address::{self, TrustedProxies};
use crate::compression;
use crate::cors::Origins;
use crate::rate_limits::{self, RateLimits};
use crate::request_ids;

/// What the operator says about the clients of the API.
#[derive(Debug, Clone, Default)]
pub struct Front {
    /// Proxies whose word about addresses is believed.
    pub proxies: TrustedProxies,
    /// Origins whose pages may use the API.
    pub origins: Origins,
}

impl Front {
    /// Puts the layers around routes and pages.
    pub(crate) fn around(self, routes: Router, limits: RateLimits) -> Router {
        let routes = routes
            .layer(middleware::from_fn_with_state((self.proxies, limits), count))
            .layer(middleware::from_fn(discard_unread))
            .layer(compression::layer());
        let routes = match self.origins.layer() {
            Some(cors) => routes.layer(cors),
            None => routes,
        };
        routes.layer(middleware::from_fn(outermost))
    }
}

/// The outermost layer. One for two duties: each layer costs every request an allocation.
async fn outermost(request: Request, next: Next) -> Response {
    let mut response = request_ids::identify(request, next).await;
    compression::weaken_tag(response.headers_mut());
    response
}

/// Notes the client's address, and counts the request for it.
async fn count(
    State((proxies, limits)): State<(TrustedProxies, RateLimits)>,
    mut request: Request,
    next: Next,
) -> Response {
    client_address::note(&proxies, &mut request);
    rate_limits::limit(&limits, request, next).await
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use http::Request;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;
    use serde_json::Value;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;
    use crate::router::panicked;

    #[tokio::test]
    async fn the_answer_to_a_request_whose_handler_panics_has_the_requests_id() {
        let routes = Router::new()
            .route("/", get(async || -> &'static str { panic!("on purpose") }))
            .layer(CatchPanicLayer::custom(panicked));
        let service =
            TowerToHyperService::new(Front::default().around(routes, RateLimits::default()));
        let request = Request::get("/").header("x-request-id", "r1").body(Body::empty()).unwrap();
        let response = service.call(request).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["x-request-id"]),
            (500, &"r1".parse().unwrap())
        );
        let body = axum::body::to_bytes(response.into_body(), 4_096).await.unwrap();
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&problem["code"], &problem["requestId"]), (&"internal".into(), &"r1".into()));
        assert!(!problem.to_string().contains("on purpose"));
    }
}
