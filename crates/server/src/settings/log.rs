//! What is logged, and how: `LOG_LEVEL`, `LOG_FORMAT`.

use tracing_subscriber::EnvFilter;

use super::reader::{Mistake, Reader};
use crate::cli::SettingArgs;

/// What is logged, and how.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

impl Log {
    /// Only what a command needs that has no other settings.
    pub(crate) fn resolve(args: &SettingArgs) -> Result<Self, Vec<Mistake>> {
        let mut reader = Reader::new(&|_| None);
        let log = read_log(&mut reader, args);
        if reader.mistakes.is_empty() { Ok(log) } else { Err(reader.mistakes) }
    }
}

pub(super) fn read_log(reader: &mut Reader<'_>, args: &SettingArgs) -> Log {
    let right = "must be error, warn, info, debug, trace or off, or a list of these such as \
                 info,stampede_broker=debug";
    let level = reader.read("LOG_LEVEL", args.log_level.as_deref(), "info".to_owned(), |value| {
        let fits = value.split(',').all(is_log_directive) && EnvFilter::try_new(value).is_ok();
        if fits { Ok(value.to_owned()) } else { Err(right.to_owned()) }
    });
    let format =
        reader.read(
            "LOG_FORMAT",
            args.log_format.as_deref(),
            LogFormat::Text,
            |value| match value {
                "text" => Ok(LogFormat::Text),
                "json" => Ok(LogFormat::Json),
                _ => Err("must be text or json".to_owned()),
            },
        );
    Log { level, format }
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
            let args = SettingArgs { log_level: Some(level.into()), ..SettingArgs::default() };
            assert_eq!(Log::resolve(&args).is_ok(), fine, "{level}");
        }
    }
}
