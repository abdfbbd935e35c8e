//! Accepting connections, with time limits for clients that send nothing (here) or read nothing (`write_limit.rs`), and a limit
//! for the connections of one address (`connection_places.rs`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::middleware;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::client_address::TrustedProxies;
use crate::connection_places::OfAddresses;
use crate::front::Front;
use crate::live::CutOff;
use crate::metrics::MetricsPage;
use crate::request_ids::identify;
use crate::router::router;
use crate::routes::health::{Vitals, health_router};
use crate::routes::metrics::open_router;
use crate::write_limit::{PATIENCE, WriteLimited, limit_unacknowledged};

/// Connections served at the same time; more wait in the system's queue.
const MAX_CONNECTIONS: usize = 4_096;
/// A client that has not sent its headers by then is cut off.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are buffered of one connection; longer headers are refused with 431.
const MAX_BUFFER: usize = 64 << 10;
/// Time for running requests to end once the server stops.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Pause when no connection can be accepted, because the process has too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the API and the pages for browsers on `listener` until `stop`, then lets running requests end.
pub async fn run(
    listener: TcpListener,
    front: Front,
    app: App,
    pages: Router,
    stop: CancellationToken,
) {
    let (rates, proxies) = (app.rates.clone(), front.proxies.clone());
    serve(listener, front.around(router(app).merge(pages), rates), proxies, stop).await;
}

/// Serves `/health`, `/ready` and `/metrics` on `listener` until `stop`, for a node without the API.
pub async fn run_health(listener: TcpListener, vitals: Vitals, stop: CancellationToken) {
    let routes = health_router(vitals).layer(middleware::from_fn(identify));
    serve(listener, routes, TrustedProxies::default(), stop).await;
}

/// Serves `/metrics`, without a key, on `listener` until `stop`.
pub async fn run_metrics(listener: TcpListener, page: MetricsPage, stop: CancellationToken) {
    let routes = open_router(page).layer(middleware::from_fn(identify));
    serve(listener, routes, TrustedProxies::default(), stop).await;
}

async fn serve(
    listener: TcpListener,
    router: Router,
    proxies: TrustedProxies,
    stop: CancellationToken,
) {
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_PATIENCE).max_buf_size(MAX_BUFFER);
    let (places, addresses) = (Arc::new(Semaphore::new(MAX_CONNECTIONS)), OfAddresses::default());
    let (connections, ending) = (TaskTracker::new(), CancellationToken::new());
    let cut_off = CancellationToken::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let is_proxy = proxies.trust(address.ip().to_canonical());
        let of_address = (!is_proxy).then(|| addresses.take(address.ip()));
        if matches!(of_address, Some(None)) {
            tracing::debug!(%address, "a connection is refused: its address has too many");
            continue;
        }
        // An answer is written in small pieces; waiting to fill a packet only delays it.
        let _ = stream.set_nodelay(true);
        limit_unacknowledged(&stream);
        let stream = WriteLimited::new(stream, PATIENCE);
        let service = service.clone();
        let cut_off = cut_off.child_token();
        let of_streams = CutOff(cut_off.clone());
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo::<SocketAddr>(address));
            request.extensions_mut().insert(of_streams.clone());
            service.call(request)
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let (connection, ending) = (connection.with_upgrades(), ending.clone());
        connections.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let mut is_ending = false;
            let ended = loop {
                tokio::select! {
                    // First: a stream that is cut off must not look as if it had ended in order.
                    biased;
                    () = cut_off.cancelled() => break Ok(()),
                    ended = connection.as_mut() => break ended,
                    () = ending.cancelled(), if !is_ending => {
                        is_ending = true;
                        // The request that runs is answered, and no other one is read.
                        connection.as_mut().graceful_shutdown();
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection broke off");
            }
            drop((place, of_address));
        });
    }
    drop(listener);
    ending.cancel();
    connections.close();
    if tokio::time::timeout(STOP_PATIENCE, connections.wait()).await.is_err() {
        tracing::info!("some connections did not end and are cut off");
        cut_off.cancel();
    }
}
