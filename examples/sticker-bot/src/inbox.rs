//! What an update means: an order, a greeting, or nothing.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::queue::{Order, Queue, Refused, Source};
use crate::telegram::{InlineQuery, Message, Telegram, Update};

/// A query that is followed by another within this time is not served: the user is still typing.
const TYPING: Duration = Duration::from_millis(700);

const GREETING: &str = "Send me a text, and I make a set of animated stickers of it.";
const FULL: &str = "Too many people want stickers just now. Please try again in a minute.";
const TOO_MANY: &str = "You already have orders that wait. Please wait until they are done.";

/// Puts orders into the queue.
pub(crate) struct Inbox {
    queue: Arc<Queue>,
    telegram: Arc<Telegram>,
    vips: HashSet<i64>,
    typing: Arc<Typing>,
    tasks: tokio::sync::Mutex<JoinSet<()>>,
}

impl Inbox {
    pub(crate) fn new(queue: Arc<Queue>, telegram: Arc<Telegram>, vips: Vec<i64>) -> Self {
        let vips = vips.into_iter().collect();
        Self { queue, telegram, vips, typing: Arc::default(), tasks: tokio::sync::Mutex::default() }
    }

    /// Takes an update.
    pub(crate) async fn take(&self, update: Update) {
        let mut tasks = self.tasks.lock().await;
        while tasks.try_join_next().is_some() {}
        if let Some(message) = update.message {
            if let Some(answer) = self.message(message) {
                let telegram = self.telegram.clone();
                tasks.spawn(async move {
                    let (chat, text) = answer;
                    if let Err(error) = telegram.send_message(chat, text).await {
                        tracing::warn!("an answer is lost: {error}");
                    }
                });
            }
        } else if let Some(query) = update.inline_query
            && let Some(wait) = self.inline(query)
        {
            tasks.spawn(wait);
        }
    }

    /// Waits for the queries of those who are typing.
    pub(crate) async fn close(&self) {
        let mut tasks = self.tasks.lock().await;
        while tasks.join_next().await.is_some() {}
    }

    /// Takes a message; the answer is what is said at once.
    fn message(&self, message: Message) -> Option<(i64, &'static str)> {
        let user = message.from?.id;
        // Sets belong to a user; in groups the bot works by inline queries.
        if message.chat.kind != "private" {
            return None;
        }
        let text = message.text.unwrap_or_default();
        if text.trim().is_empty() || text.starts_with('/') {
            return Some((message.chat.id, GREETING));
        }
        let order = Order::new(user, self.vips.contains(&user), text, Source::Message);
        match self.queue.put(order) {
            Ok(()) => None,
            Err(Refused::Full) => Some((message.chat.id, FULL)),
            Err(Refused::TooManyOfYours) => Some((message.chat.id, TOO_MANY)),
        }
    }

    /// Takes an inline query: it is put into the queue when no other follows.
    fn inline(&self, query: InlineQuery) -> Option<impl Future<Output = ()> + use<>> {
        let InlineQuery { id, from, query: text } = query;
        self.typing.begin(from.id, &id);
        if text.trim().is_empty() {
            return None;
        }
        let (typing, queue) = (self.typing.clone(), self.queue.clone());
        let is_vip = self.vips.contains(&from.id);
        Some(async move {
            tokio::time::sleep(TYPING).await;
            if typing.end(from.id, &id) {
                // A query that is refused is not answered: Telegram shows nothing, and the user types on.
                let _ = queue.put(Order::new(from.id, is_vip, text, Source::Inline(id)));
            }
        })
    }
}

/// The newest inline query of each user who is typing.
#[derive(Default)]
struct Typing(Mutex<HashMap<i64, String>>);

impl Typing {
    fn begin(&self, user: i64, query: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(user, query.to_owned());
    }

    /// Whether this query is still the newest.
    fn end(&self, user: i64, query: &str) -> bool {
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newest = newest.get(&user).is_some_and(|known| known == query);
        if is_newest {
            newest.remove(&user);
        }
        is_newest
    }
}
