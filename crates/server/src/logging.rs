//! Log lines on standard error, as text or JSON; those of a worker carry its name.
//!
//! One event is one line: whatever people typed into it, its control characters are escaped (`fields.rs` for
//! text, [`Lines`] for JSON).

mod fields;

use std::fmt;
use std::io::IsTerminal;

use stampede_model::Printable;
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{self, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use self::fields::TextFields;
use crate::settings::{Log, LogFormat};

/// Sends log lines to standard error. Call once.
pub(crate) fn start(log: &Log) {
    subscriber(log, None, std::io::stderr().is_terminal(), std::io::stderr).init();
}

/// Sends the log lines of a worker process to standard error; each carries the worker's name. Call once.
pub(crate) fn start_as(log: &Log, worker: &str) {
    let worker = Some(worker.to_owned());
    subscriber(log, worker, std::io::stderr().is_terminal(), std::io::stderr).init();
}

fn subscriber(
    log: &Log,
    worker: Option<String>,
    colours: bool,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> Box<dyn Subscriber + Send + Sync> {
    let filter = EnvFilter::try_new(level(log)).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(writer);
    match log.format {
        LogFormat::Json => {
            let inner = format::format().json().flatten_event(true).with_span_list(false);
            let lines = Lines { inner, worker, shape: log.format };
            Box::new(builder.fmt_fields(format::JsonFields::new()).event_format(lines).finish())
        }
        LogFormat::Text => {
            let inner = format::format().with_target(false).with_ansi(colours);
            let lines = Lines { inner, worker, shape: log.format };
            Box::new(builder.fmt_fields(TextFields).event_format(lines).finish())
        }
    }
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

/// Puts the name of a worker into every line, if there is one: a span would be missing in spawned tasks. Escapes
/// in a line of JSON what JSON itself leaves as it is: C1, bidirectional overrides, line separators.
struct Lines<F> {
    inner: F,
    worker: Option<String>,
    shape: LogFormat,
}

impl<S, N, F> FormatEvent<S, N> for Lines<F>
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
        self.inner.format_event(context, Writer::new(&mut line), event)?;
        let line = line.strip_suffix('\n').unwrap_or(&line);
        match (self.shape, &self.worker) {
            (LogFormat::Text, None) => writeln!(writer, "{line}"),
            (LogFormat::Text, Some(worker)) => {
                writeln!(writer, "[{}] {line}", Printable::line(worker))
            }
            (LogFormat::Json, None) => writeln!(writer, "{}", Printable::line(line)),
            (LogFormat::Json, Some(worker)) => {
                let worker = serde_json::Value::from(worker.as_str());
                let fields = line.strip_prefix('{').unwrap_or(line);
                let named = format_args!("{{\"worker\":{worker},{fields}");
                writeln!(writer, "{}", Printable::line(named))
            }
        }
    }
}

#[cfg(test)]
mod tests;
