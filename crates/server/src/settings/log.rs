//! What is logged, and in which format: `LOG_LEVEL`, `LOG_FORMAT`.

use tracing_subscriber::EnvFilter;

use super::given::Given;
use super::reader::{Mistake, Reader};
use super::table::rows;

/// The level and the format of the log.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl Log {
    /// Reads the settings of the log alone, for a command that needs no others.
    pub(crate) fn resolve(given: &Given) -> Result<Self, Vec<Mistake>> {
        let texts = given.texts(&|_| None);
        let mut reader = Reader::new(&texts);
        let (level, format) = (reader.value(&rows::log_level()), reader.value(&rows::log_format()));
        match (level, format) {
            (Some(level), Some(format)) if reader.mistakes.is_empty() => Ok(Self { level, format }),
            _ => Err(reader.mistakes),
        }
    }
}

/// Reads `LOG_LEVEL`.
pub(super) fn parse_level(text: &str) -> Result<String, String> {
    let fits = text.split(',').all(is_log_directive) && EnvFilter::try_new(text).is_ok();
    fits.then(|| text.to_owned()).ok_or_else(|| {
        "must be error, warn, info, debug, trace or off, or a list of these such as \
         info,stampede_broker=debug"
            .to_owned()
    })
}

/// Reads `LOG_FORMAT`.
pub(super) fn parse_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("must be text or json".to_owned()),
    }
}

/// A level, or a module with its level. A bare word would be taken for a module and silence the rest.
fn is_log_directive(directive: &str) -> bool {
    let level = directive.rsplit('=').next().unwrap_or_default().trim();
    ["error", "warn", "info", "debug", "trace", "off"].contains(&level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_level_that_would_silence_everything_is_refused() {
        for (level, fine) in [
            ("verbose", false),
            ("info", true),
            ("warn,stampede_broker=debug", true),
            ("x=loud", false),
        ] {
            let given = Given::from([("LOG_LEVEL", level)]);
            assert_eq!(Log::resolve(&given).is_ok(), fine, "{level}");
        }
    }
}
