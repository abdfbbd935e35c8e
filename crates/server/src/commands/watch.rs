//! `stampede watch`: prints what happens, as it happens, and resumes by itself when the connection breaks.

use std::io::Write;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::Value;
use stampede_client::{Client, Error, Message};
use stampede_model::{Printable, Role};
use tokio_util::sync::CancellationToken;
use url::form_urlencoded::Serializer;

use crate::cli::Watch;
use crate::commands::session::Session;
use crate::commands::signals::stop_on_signal;
use crate::settings::Settings;

/// Pause before the connection is opened again.
const PAUSE: Duration = Duration::from_secs(1);
/// Heartbeats come every 15 s: a connection without any is dead.
const SILENCE: Duration = Duration::from_secs(45);

pub(crate) async fn run(settings: &Settings, options: Watch) -> Result<()> {
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    let session = Session::open(settings, &options.server, Role::Admin).await?;
    let watched = tokio::select! {
        watched = watch(&session.client, &options) => watched,
        () = stop.cancelled() => Ok(()),
    };
    session.close().await?;
    watched
}

fn path(options: &Watch) -> String {
    let mut query = Serializer::new(String::new());
    let kinds = (!options.kinds.is_empty()).then(|| options.kinds.join(","));
    let asked = [
        ("kinds", &kinds),
        ("batch", &options.batch),
        ("target", &options.event),
        ("queue", &options.queue),
    ];
    for (name, value) in asked {
        if let Some(value) = value {
            query.append_pair(name, value);
        }
    }
    format!("/api/events/stream?{}", query.finish())
}

async fn watch(client: &Client, options: &Watch) -> Result<()> {
    let path = path(options);
    let (mut after, mut shown) = (options.after.clone(), 0);
    let mut was_open = false;
    loop {
        let mut stream = match client.stream(&path, after.as_deref()).await {
            Ok(stream) => stream,
            // The server may be restarting; one that never answered is a mistake in the address.
            Err(Error::NoAnswer { .. }) if was_open => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(Error::Refused { status: 429 | 503, .. }) if was_open => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        was_open = true;
        while let Ok(Ok(Some(message))) = tokio::time::timeout(SILENCE, stream.next()).await {
            if message.id.is_some() {
                after.clone_from(&message.id);
            }
            match message.name.as_str() {
                "" | "hello" => {}
                "reset" => eprintln!(
                    "events may be missing here: they are not kept any more, or Redis was restarted"
                ),
                "end" if message.data.contains("\"key\"") => bail!("the key is not valid any more"),
                "end" => {}
                _ => {
                    show(&message, options.json)?;
                    shown += 1;
                    if options.count.is_some_and(|count| shown >= count) {
                        return Ok(());
                    }
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Prints an event; a reader that has gone ends the command.
fn show(message: &Message, as_json: bool) -> Result<()> {
    let line = match as_json {
        true => message.data.clone(),
        false => told(message),
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}

/// An event on one line: time, kind, data.
fn told(message: &Message) -> String {
    let event: Value = serde_json::from_str(&message.data).unwrap_or_default();
    let at = event["at"].as_str().unwrap_or_default();
    let fields = event["data"].as_object().into_iter().flatten();
    let fields: Vec<String> = fields
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            Value::Array(list) => format!("{name}={}", list.len()),
            other => format!("{name}={other}"),
        })
        .collect();
    let line = format!("{at}  {:<18} {}", message.name, fields.join(" "));
    Printable::line(&line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_that_cannot_harm_the_terminal() {
        let data = r#"{"at":"2026-11-18T15:00:00Z","data":{"number":7,"error":"a\nb\u001b[2J","tickets":[1,2]}}"#;
        let message = Message { id: None, name: "ticket.failed".into(), data: data.into() };
        let line = told(&message);
        assert!(line.starts_with("2026-11-18T15:00:00Z  ticket.failed      "), "{line}");
        assert!(line.contains("number=7") && line.contains("tickets=2"), "{line}");
        assert!(!line.contains(['\n', '\u{1b}']), "{line:?}");
    }
}
