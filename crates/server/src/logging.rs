//! Log lines on standard error, as text or JSON; those of a worker carry its name.

use std::fmt;
use std::io::IsTerminal;

use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{self, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, SubscriberBuilder};
use tracing_subscriber::registry::LookupSpan;

use crate::settings::{Log, LogFormat};

/// Sends log lines to standard error. Call once.
pub(crate) fn start(log: &Log) {
    match log.format {
        LogFormat::Json => builder(log).json().flatten_event(true).with_span_list(false).init(),
        LogFormat::Text => builder(log).with_target(false).init(),
    }
}

/// Sends the log lines of a worker process to standard error; each carries the worker's name. Call once.
pub(crate) fn start_as(log: &Log, worker: &str) {
    let worker = worker.to_owned();
    match log.format {
        LogFormat::Json => {
            let inner = format::format().json().flatten_event(true).with_span_list(false);
            let named = Named { inner, worker, shape: log.format };
            builder(log).fmt_fields(format::JsonFields::new()).event_format(named).init();
        }
        LogFormat::Text => {
            let inner = format::format().with_target(false);
            let inner = inner.with_ansi(std::io::stderr().is_terminal());
            builder(log).event_format(Named { inner, worker, shape: log.format }).init();
        }
    }
}

type Builder = SubscriberBuilder<
    format::DefaultFields,
    format::Format<format::Full>,
    EnvFilter,
    fn() -> std::io::Stderr,
>;

fn builder(log: &Log) -> Builder {
    let filter = EnvFilter::try_new(level(log)).unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr as fn() -> std::io::Stderr)
}

/// The filter of the log: the level of the settings, without PostgreSQL's notices (`relation "_sqlx_migrations"
/// already exists, skipping`) and without debug lines that contain passwords. `LOG_LEVEL` may name those
/// targets to have them back.
fn level(log: &Log) -> String {
    let talks = ["info", "debug", "trace"].iter().any(|level| log.level.contains(level));
    // The BullMQ crate logs addresses, and hides a password only before an @.
    let quiet = "sqlx::postgres::notice=warn,bullmq=info";
    if talks { format!("{quiet},{}", log.level) } else { log.level.clone() }
}

/// Puts the name of a worker into every line. A span would be missing in spawned tasks.
struct Named<F> {
    inner: F,
    worker: String,
    shape: LogFormat,
}

impl<S, N, F> FormatEvent<S, N> for Named<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        let inner = Writer::new(&mut line);
        self.inner.format_event(context, inner, event)?;
        match (self.shape, line.strip_prefix('{')) {
            (LogFormat::Json, Some(rest)) => {
                let name = serde_json::Value::from(self.worker.as_str());
                write!(writer, "{{\"worker\":{name},{rest}")
            }
            _ => write!(writer, "[{}] {line}", self.worker),
        }
    }
}
