//! One order after the other: Stampede draws, Telegram keeps the set, the user gets a link.

use std::sync::Arc;
use std::time::Instant;

use crate::queue::{Order, Queue, Source};
use crate::stampede::{self, Stampede};
use crate::telegram::{self, StickerSet, Telegram};

/// Longest name of a set.
const LONGEST_NAME: usize = 64;
/// Longest title of a set, in characters.
const LONGEST_TITLE: usize = 40;

const NOT_NOW: &str = "Sorry, that did not work. Please try again in a minute.";

/// Serves orders.
pub(crate) struct Desk {
    pub(crate) bot: String,
    pub(crate) variants: Vec<String>,
    pub(crate) stampede: Arc<Stampede>,
    pub(crate) telegram: Arc<Telegram>,
}

/// Why an order has no set.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Stampede(#[from] stampede::Error),
    #[error(transparent)]
    Telegram(#[from] telegram::Error),
}

impl Desk {
    /// Serves orders until the queue is closed and empty.
    pub(crate) async fn serve(self: Arc<Self>, queue: Arc<Queue>) {
        while let Some(order) = queue.next().await {
            let begun = Instant::now();
            let set = self.set(&order).await;
            if let Err(error) = &set {
                tracing::warn!(user = order.user, "no set: {error}");
            }
            let answered = match &order.source {
                Source::Message => self.answer_message(&order, &set).await,
                Source::Inline(query) => self.answer_query(query, &set).await,
            };
            if let Err(error) = answered {
                tracing::warn!(user = order.user, "an answer is lost: {error}");
            }
            queue.took(begun.elapsed());
        }
    }

    /// The set of an order. The same text of the same user has the same set.
    async fn set(&self, order: &Order) -> Result<StickerSet, Error> {
        let priority = if order.is_vip { "vip" } else { "normal" };
        let links = self.stampede.draw(&order.text, &self.variants, priority).await?;
        let name = set_name(stampede::key(&links), order.user, &self.bot);
        if let Some(known) = self.telegram.sticker_set(&name).await? {
            return Ok(known);
        }
        let mut files = Vec::with_capacity(links.len());
        for link in &links {
            files.push(self.stampede.file(link).await?);
        }
        let title = title(&order.text);
        self.telegram.create_set(order.user, &name, &title, files).await?;
        let made = self.telegram.sticker_set(&name).await?;
        Ok(made.unwrap_or(StickerSet { name, stickers: Vec::new() }))
    }

    async fn answer_message(
        &self,
        order: &Order,
        set: &Result<StickerSet, Error>,
    ) -> Result<(), telegram::Error> {
        let text = match set {
            Ok(set) => format!("Your stickers: https://t.me/addstickers/{}", set.name),
            Err(Error::Stampede(stampede::Error::Text(reason))) => reason.clone(),
            Err(_) => NOT_NOW.to_owned(),
        };
        if let Some(first) = set.as_ref().ok().and_then(|set| set.stickers.first()) {
            self.telegram.send_sticker(order.user, &first.file_id).await?;
        }
        let mut notice = order.notice.lock().await;
        notice.is_closed = true;
        match notice.message {
            Some(message) => self.telegram.edit_message(order.user, message, &text).await,
            None => self.telegram.send_message(order.user, &text).await.map(drop),
        }
    }

    async fn answer_query(
        &self,
        query: &str,
        set: &Result<StickerSet, Error>,
    ) -> Result<(), telegram::Error> {
        match set {
            Ok(set) => self.telegram.answer_with_stickers(query, set).await,
            Err(Error::Stampede(stampede::Error::Text(_))) => {
                self.telegram.answer_with_button(query, "This text cannot be drawn").await
            }
            // A bot makes sets only for those who have spoken to it.
            Err(Error::Telegram(error)) if error.is_about_a_stranger() => {
                self.telegram.answer_with_button(query, "Press Start first").await
            }
            Err(_) => self.telegram.answer_with_button(query, "Please try again").await,
        }
    }
}

/// The name of a set: letters, digits and single underscores, unique in Telegram, with the bot's name at the end.
fn set_name(key: &str, user: i64, bot: &str) -> String {
    let end = format!("_{user:x}_by_{bot}");
    let room = LONGEST_NAME.saturating_sub(end.len() + 1);
    let key: String = key.chars().filter(char::is_ascii_alphanumeric).take(room.min(24)).collect();
    format!("s{key}{end}")
}

/// The title of a set: the first line of its text, shortened.
fn title(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(LONGEST_TITLE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sets_keep_telegrams_rules() {
        let key = "0123456789abcdef".repeat(4);
        for (user, bot) in [(7, "a_bot"), (1 << 51, "a_bot_with_a_name_of_32_letters_")] {
            let name = set_name(&key, user, bot);
            assert!(name.len() <= 64 && name.ends_with(&format!("_by_{bot}")), "{name}");
            assert!(name.starts_with('s') && !name.contains("__"), "{name}");
        }
        assert_ne!(set_name(&key, 7, "a_bot"), set_name(&key, 8, "a_bot"));
    }

    #[test]
    fn titles_are_the_first_line() {
        assert_eq!(title(" Hello\nworld"), "Hello");
        assert_eq!(title(&"x".repeat(200)).len(), LONGEST_TITLE);
    }
}
