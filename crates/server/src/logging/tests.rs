//! Lines that people cannot forge.

use std::io::Write;
use std::sync::{Arc, Mutex};

use super::*;

const HOSTILE: &str =
    "no seat\n2026-01-01T00:00:00Z  INFO forged\r\u{1b}[2J\u{9b}1m\u{2028}\u{202e}end";

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a subscriber writes about one event with a hostile text in every place, in a span with one.
fn written(format: LogFormat, worker: Option<&str>, colours: bool) -> String {
    let (log, written) = (Log { level: "info".to_owned(), format }, Written::default());
    let writer = written.clone();
    let worker = worker.map(str::to_owned);
    let subscriber = subscriber(&log, worker, colours, move || writer.clone());
    tracing::subscriber::with_default(subscriber, || {
        let _span = tracing::info_span!("request", path = %HOSTILE).entered();
        tracing::error!(error = %HOSTILE, quoted = HOSTILE, debug = ?HOSTILE, "mistake: {HOSTILE}");
    });
    let bytes = written.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

fn is_hostile(c: char) -> bool {
    c.is_control() || "\u{2028}\u{202e}".contains(c)
}

#[test]
fn a_hostile_text_stays_on_its_line_of_text() {
    for worker in [None, Some("node\n1")] {
        let text = written(LogFormat::Text, worker, false);
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.contains(is_hostile), "{line:?}");
        assert!(line.contains("ERROR request{path=no seat\\n2026"), "{line}");
        assert!(
            line.contains("mistake: no seat\\n2026-01-01T00:00:00Z  INFO forged\\r\\u001b[2J"),
            "{line}"
        );
        assert!(line.contains(" error=no seat\\n"), "{line}");
    }
}

#[test]
fn colours_are_those_of_the_formatter_only() {
    let text = written(LogFormat::Text, None, true);
    assert_eq!(text.matches('\n').count(), 1, "{text:?}");
    assert!(text.contains("\u{1b}[") && !text.contains("\u{1b}[2J"), "{text:?}");
}

#[test]
fn a_hostile_text_stays_in_its_line_of_json_and_can_be_read_from_it() {
    for worker in [None, Some("node\n1")] {
        let text = written(LogFormat::Json, worker, false);
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.contains(is_hostile), "{line:?}");
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["error"], HOSTILE);
        assert_eq!(event["message"], format!("mistake: {HOSTILE}"));
        assert_eq!(event["worker"].as_str(), worker);
    }
}
