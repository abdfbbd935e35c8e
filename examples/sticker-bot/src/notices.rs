//! Tells people their place in the queue, in one message that changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::queue::{Order, Queue, Source};
use crate::telegram::Telegram;

/// Time between two looks at the queue.
const PAUSE: Duration = Duration::from_secs(1);
/// Most messages that are sent or changed after a look: Telegram takes 30 a second from a bot, and answers need some.
const MOST: usize = 15;

/// Tells places until it is aborted. Those who were never told come first, then those who were told longest ago.
pub(crate) async fn tell(queue: Arc<Queue>, telegram: Arc<Telegram>, desks: usize) {
    loop {
        tokio::time::sleep(PAUSE).await;
        let line = queue.line();
        let mut due = Vec::new();
        for (place, order) in (1..).zip(&line) {
            let notice = order.notice.lock().await;
            if order.source == Source::Message && !notice.is_closed && notice.place != place {
                due.push((notice.told_at, place, order));
            }
        }
        due.sort_by_key(|(told_at, place, _)| (*told_at, *place));
        for (_, place, order) in due.into_iter().take(MOST) {
            let seconds = queue.wait_of(place, desks).as_secs().max(1);
            let length = line.len();
            let text =
                format!("You are number {place} of {length} in the queue. About {seconds} s.");
            one(&telegram, order, place, &text).await;
        }
    }
}

/// Tells one user the place, unless the order is answered meanwhile.
async fn one(telegram: &Telegram, order: &Order, place: usize, text: &str) {
    let mut notice = order.notice.lock().await;
    if notice.is_closed {
        return;
    }
    let told = match notice.message {
        None => telegram.send_message(order.user, text).await,
        Some(message) => telegram.edit_message(order.user, message, text).await.map(|()| message),
    };
    match told {
        Ok(message) => {
            notice.message = Some(message);
            notice.place = place;
            notice.told_at = Some(Instant::now());
        }
        Err(error) => tracing::warn!("a place is not told: {error}"),
    }
}
