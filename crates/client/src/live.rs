//! Live streams: server-sent events, read message by message.

use std::time::Duration;

use reqwest::Response;

use crate::{Client, Error, Result};

/// The longest that a stream may last.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// A message longer than this is no message of ours.
const LONGEST_MESSAGE: usize = 1 << 20;

/// A message of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// The place from which to resume; absent if it has not changed.
    pub id: Option<String>,
    /// The kind of an event, or `hello`, `state`, `reset`, `end`; empty for heartbeats.
    pub name: String,
    /// The data: JSON on one line.
    pub data: String,
}

/// A stream that is open.
pub struct Stream {
    base: String,
    response: Response,
    buffer: Vec<u8>,
}

impl Client {
    /// Opens a stream at a path with its query, after the event with this id.
    pub async fn stream(&self, path: &str, after: Option<&str>) -> Result<Stream> {
        let mut request = self.http.get(format!("{}{path}", self.base)).bearer_auth(&self.key);
        request = request.timeout(LONGEST).header("accept", "text/event-stream");
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let response = request.send().await.map_err(|source| self.no_answer(source))?;
        let response = Self::accepted(path, response).await?;
        Ok(Stream { base: self.base.clone(), response, buffer: Vec::new() })
    }
}

impl Stream {
    /// The next message; `None`: the server has ended the stream.
    pub async fn next(&mut self) -> Result<Option<Message>> {
        loop {
            if let Some(message) = take(&mut self.buffer) {
                return Ok(Some(message));
            }
            let chunk = self
                .response
                .chunk()
                .await
                .map_err(|source| Error::NoAnswer { base: self.base.clone(), source })?;
            match chunk {
                Some(chunk) if self.buffer.len() + chunk.len() <= LONGEST_MESSAGE => {
                    self.buffer.extend_from_slice(&chunk);
                }
                Some(_) | None => return Ok(None),
            }
        }
    }
}

/// Takes the first whole message from a buffer.
fn take(buffer: &mut Vec<u8>) -> Option<Message> {
    let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
    let text: Vec<u8> = buffer.drain(..end + 2).collect();
    let mut message = Message::default();
    for line in String::from_utf8_lossy(&text).lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => message.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut message.name),
            "data" if message.data.is_empty() => value.clone_into(&mut message.data),
            "data" => message.data = format!("{}\n{value}", message.data),
            // Comments and `retry`.
            _ => {}
        }
    }
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_whole_and_in_order() {
        let mut buffer =
            b"retry: 1000\nid: 5-0\nevent: hello\ndata: {}\n\n:\n\n: x\nid: 6-0\n\nid: 7".to_vec();
        let hello = take(&mut buffer).unwrap();
        assert_eq!(
            (hello.id.as_deref(), hello.name.as_str(), hello.data.as_str()),
            (Some("5-0"), "hello", "{}")
        );
        assert_eq!(take(&mut buffer), Some(Message::default()));
        let beat = take(&mut buffer).unwrap();
        assert_eq!((beat.id.as_deref(), beat.name.as_str()), (Some("6-0"), ""));
        assert_eq!(take(&mut buffer), None);
        buffer.extend(b"-0\ndata: a\ndata: b\n\n");
        let last = take(&mut buffer).unwrap();
        assert_eq!((last.id.as_deref(), last.data.as_str()), (Some("7-0"), "a\nb"));
        assert!(buffer.is_empty());
    }
}
