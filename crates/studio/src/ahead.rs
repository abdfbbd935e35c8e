//! Popular texts are drawn before somebody asks for them again, while the pool has nothing else to do.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use stampede_pool::Priority;
use tokio_util::sync::CancellationToken;

use crate::Studio;
use crate::artist::{Format, NotDrawn};
use crate::error::Trouble;
use crate::order::{Order, StickerName};

/// A text with its format, as it is counted.
pub(crate) type Wish = (String, Format);

/// Longer texts are not counted, in bytes: they are long to remember, and nobody writes them twice.
const LONGEST_TEXT: usize = 256;
/// How many texts are drawn in all variants.
const MOST: usize = 100;
/// A text that was asked for less often is not popular.
const LEAST: u64 = 3;
/// Time between two looks.
const EVERY: Duration = Duration::from_secs(5);

impl Studio {
    /// Counts an order.
    pub(crate) fn count(&self, order: &Order) {
        if order.text.len() <= LONGEST_TEXT {
            let wish = (order.text.clone(), order.name.format);
            self.popular().lock().count(&wish, Instant::now());
        }
    }

    /// Draws popular texts until `stop`.
    pub async fn run_ahead(self, stop: CancellationToken) {
        let mut made = HashSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(EVERY) => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                _ = self.draw_ahead(&mut made) => {}
            }
        }
    }

    /// Draws popular texts in all variants that ship, as long as the pool is idle. Returns how many were drawn. `made`: those that
    /// need no look any more.
    pub async fn draw_ahead(&self, made: &mut HashSet<StickerName>) -> usize {
        let wishes = self.popular().lock().top(MOST, LEAST, Instant::now());
        let variants = self.artist().variants();
        let orders: Vec<Order> = wishes
            .into_iter()
            .flat_map(|(text, format)| {
                let order = move |variant| self.order_of(text.clone(), variant, format);
                variants.clone().into_iter().map(order)
            })
            .collect();
        made.retain(|name| orders.iter().any(|order| order.name == *name));
        let mut drawn = 0;
        for order in orders {
            // A pool that was never asked for anything is not started for this.
            if !self.desk().started_pool().is_some_and(|pool| pool.is_idle()) {
                break;
            }
            if made.contains(&order.name) {
                continue;
            }
            if self.desk().is_made(order.name).await {
                made.insert(order.name);
                continue;
            }
            match self.desk().sticker(&order, Priority::Batch).await {
                Ok(_) => {
                    made.insert(order.name);
                    drawn += 1;
                }
                // Nobody can have it in this variant.
                Err(trouble) if matches!(*trouble, Trouble::NotDrawn(NotDrawn::Impossible(_))) => {
                    made.insert(order.name);
                }
                Err(_) => break,
            }
        }
        drawn
    }
}
