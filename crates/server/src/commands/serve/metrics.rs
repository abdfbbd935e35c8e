//! What this node counts, and where it shows it.

use anyhow::{Context, Result};
use stampede_telemetry::{Metrics, Registry};
use tokio::net::TcpListener;

use crate::settings::Settings;

/// The metrics of this process.
pub(super) struct Counted {
    pub(super) registry: Registry,
    pub(super) metrics: Metrics,
    /// Where METRICS_LISTEN says.
    pub(super) listener: Option<TcpListener>,
}

impl Counted {
    /// Opens the address of METRICS_LISTEN, if it is set.
    pub(super) async fn prepare(settings: &Settings) -> Result<Self> {
        let listener = match settings.metrics_listen {
            Some(address) => {
                let listener = TcpListener::bind(address).await;
                Some(
                    listener
                        .with_context(|| format!("cannot listen on METRICS_LISTEN {address}"))?,
                )
            }
            None => None,
        };
        let registry = Registry::new();
        let metrics = Metrics::register(&registry)?;
        metrics.show_zeros();
        metrics.show_version(env!("CARGO_PKG_VERSION"));
        Ok(Self { registry, metrics, listener })
    }
}
