//! Subscribing to channels, on a connection of its own, with bounded memory for a slow reader.
//!
//! The `redis` crate keeps all messages until they are read. Here messages are received at once, and only the latest
//! unread ones are kept: every message on our channels is a hint to look again, or a command that a later one
//! supersedes. A subscription may be silent for days, so a dead connection is found by asking the server.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use redis::aio::{PubSub, PubSubSink};
use redis::{Msg, RedisResult};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::Error;

/// Messages that are kept for a slow reader.
const KEPT: usize = 256;
/// Longer messages are dropped: none of ours is.
const LONGEST_MESSAGE: usize = 64 << 10;
/// How often the server is asked whether it is still there.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// It is not if it has not answered by then.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that listens.
pub(crate) struct Listener {
    sink: PubSubSink,
    heard: broadcast::Receiver<Msg>,
    _task: AbortOnDropHandle<()>,
}

impl Listener {
    pub(crate) fn new(connection: PubSub) -> Self {
        let (sink, messages) = connection.split();
        let (keep, heard) = broadcast::channel(KEPT);
        let asking = sink.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                () = keep_latest(messages, &keep) => {}
                () = until_silent(asking) => tracing::debug!("a listening connection was dead"),
            }
        });
        Self { sink, heard, _task: AbortOnDropHandle::new(task) }
    }

    /// Also listens to a channel.
    pub(crate) async fn subscribe(
        &mut self,
        channel: impl redis::ToRedisArgs,
    ) -> Result<(), Error> {
        match timeout(PATIENCE, self.sink.subscribe(channel)).await {
            Ok(subscribed) => Ok(subscribed?),
            Err(_) => {
                let late = std::io::Error::new(std::io::ErrorKind::TimedOut, "cannot subscribe");
                Err(redis::RedisError::from(late).into())
            }
        }
    }

    /// The next message; `None` when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<Msg> {
        next(&mut self.heard).await
    }

    /// All messages, until the connection ends.
    pub(crate) fn on_message(&mut self) -> BoxStream<'_, Msg> {
        futures::stream::unfold(self, async |listener| Some((listener.next().await?, listener)))
            .boxed()
    }
}

async fn next(heard: &mut broadcast::Receiver<Msg>) -> Option<Msg> {
    loop {
        match heard.recv().await {
            Ok(message) => return Some(message),
            Err(RecvError::Closed) => return None,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "messages came faster than they were heard");
            }
        }
    }
}

async fn keep_latest(messages: impl Stream<Item = Msg>, keep: &broadcast::Sender<Msg>) {
    let mut messages = std::pin::pin!(messages);
    while let Some(message) = messages.next().await {
        let bytes = message.get_payload_bytes().len();
        if bytes > LONGEST_MESSAGE {
            tracing::warn!(bytes, "ignored a message that is far too long");
        } else {
            // Fails only when the reader has just gone.
            let _ = keep.send(message);
        }
    }
}

/// Returns when the server does not answer any more.
async fn until_silent(mut server: PubSubSink) {
    loop {
        sleep(ASK_EVERY).await;
        let answer: Result<RedisResult<redis::Value>, _> = timeout(PATIENCE, server.ping()).await;
        if !matches!(answer, Ok(Ok(_))) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    fn message(text: &str) -> Msg {
        let words = ["message", "channel", text].map(|word| Value::BulkString(word.into()));
        Msg::from_owned_value(Value::Array(words.into())).unwrap()
    }

    #[tokio::test]
    async fn of_what_nobody_hears_the_latest_is_kept() {
        let (keep, mut heard) = broadcast::channel(KEPT);
        let long = "x".repeat(LONGEST_MESSAGE + 1);
        let published = (0..1000).map(|number| message(&number.to_string()));
        let published = published.chain([message(&long), message("last")]);
        keep_latest(futures::stream::iter(published), &keep).await;
        drop(keep);
        let mut texts = Vec::new();
        while let Some(message) = next(&mut heard).await {
            texts.push(message.get_payload::<String>().unwrap());
        }
        assert_eq!(texts.len(), KEPT);
        assert_eq!((texts[0].as_str(), texts[KEPT - 1].as_str()), ("745", "last"));
    }
}
