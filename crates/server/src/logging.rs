//! Log lines on standard error, as text or JSON.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::settings::{Log, LogFormat};

/// Sends log lines to standard error. Call once.
pub(crate) fn start(log: &Log) {
    let filter = EnvFilter::try_new(&log.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match log.format {
        LogFormat::Json => builder.json().flatten_event(true).with_span_list(false).init(),
        LogFormat::Text => builder.with_target(false).init(),
    }
}
