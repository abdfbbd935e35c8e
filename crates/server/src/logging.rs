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

/// The same for one of several workers, whose lines are told apart by its name.
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

/// The level, without what PostgreSQL says of things that are as they should be (`relation
/// "_sqlx_migrations" already exists, skipping`), and without passwords; whoever wants it back names its target.
fn level(log: &Log) -> String {
    let talks = ["info", "debug", "trace"].iter().any(|level| log.level.contains(level));
    // The BullMQ crate writes addresses, and knows passwords only where they stand before an @.
    let quiet = "sqlx::postgres::notice=warn,bullmq=info";
    if talks { format!("{quiet},{}", log.level) } else { log.level.clone() }
}

/// Puts the name of a worker into every line, whatever task wrote it: a span would be missing in
/// tasks that were spawned.
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
