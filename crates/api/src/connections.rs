//! Accepting connections, with time limits for clients that send nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::router::router;
use crate::routes::health::{Vitals, health_router};

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
pub async fn run(listener: TcpListener, app: App, pages: Router, stop: CancellationToken) {
    serve(listener, router(app).merge(pages), stop).await;
}

/// Serves `/health` and `/ready` on `listener` until `stop`, for a node without the API.
pub async fn run_health(listener: TcpListener, vitals: Vitals, stop: CancellationToken) {
    serve(listener, health_router(vitals), stop).await;
}

async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_PATIENCE).max_buf_size(MAX_BUFFER);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
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
        // An answer is written in small pieces; waiting to fill a packet only delays it.
        let _ = stream.set_nodelay(true);
        let service = service.clone();
        let service = service_fn(move |mut request: http::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo::<SocketAddr>(address));
            service.call(request)
        });
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        let cut_off = cut_off.clone();
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection broke off");
                    }
                }
                () = cut_off.cancelled() => {}
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(STOP_PATIENCE, graceful.shutdown()).await.is_err() {
        tracing::info!("some connections did not end and are cut off");
        cut_off.cancel();
    }
}
