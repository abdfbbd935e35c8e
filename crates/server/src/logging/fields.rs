//! The fields of a text line: `message name=value name=value`.
//!
//! Every value is escaped, whoever wrote it. The formatter of `tracing-subscriber` leaves line breaks of a message
//! and of `%value` fields as they are.

use std::fmt::{self, Debug};

use stampede_model::Printable;
use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{FormatFields, Writer};

/// Formats fields as text, each value on the same line.
pub(super) struct TextFields;

impl<'writer> FormatFields<'writer> for TextFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut line = Line { writer, is_empty: true, result: Ok(()) };
        fields.record(&mut line);
        line.result
    }
}

struct Line<'writer> {
    writer: Writer<'writer>,
    is_empty: bool,
    result: fmt::Result,
}

impl Line<'_> {
    fn write(&mut self, field: &Field, value: &dyn Debug) -> fmt::Result {
        let name = field.name();
        // Where a line of the `log` crate came from; the formatter shows it in its own way.
        if name.starts_with("log.") {
            return Ok(());
        }
        if !std::mem::replace(&mut self.is_empty, false) {
            self.writer.write_char(' ')?;
        }
        let value = Printable::line(format_args!("{value:?}")).to_string();
        let name = name.strip_prefix("r#").unwrap_or(name);
        match (name, self.writer.has_ansi_escapes()) {
            ("message", _) => self.writer.write_str(&value),
            (name, false) => write!(self.writer, "{name}={value}"),
            // Italic, and a dim sign.
            (name, true) => write!(self.writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}"),
        }
    }
}

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if self.result.is_ok() {
            self.result = self.write(field, value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            // A message is a sentence, not a quotation.
            "message" => self.record_debug(field, &format_args!("{value}")),
            _ => self.record_debug(field, &value),
        }
    }
}
