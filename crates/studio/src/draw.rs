//! Draws orders: one, or several at once.

use std::collections::HashMap;

use bytes::Bytes;
use futures::future::join_all;
use stampede_pool::{Priority, Refused};
use tokio::time::{Instant, timeout, timeout_at};

use crate::artist::{Format, Variant};
use crate::error::Trouble;
use crate::order::{Order, StickerName};
use crate::{Error, Studio};

/// The text of the pictures of variants.
const SAMPLE: &str = "Hello";

/// A sticker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sticker {
    /// Its name.
    pub name: StickerName,
    /// Its bytes.
    pub bytes: Bytes,
}

/// What has become of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drawn {
    /// The sticker.
    Ready(Sticker),
    /// A worker will draw it; it will have this name.
    Later(StickerName),
}

/// What has become of one order of several.
type Done = Result<Drawn, Error>;

impl Studio {
    /// Draws an order at once. An order that waits too long becomes a job. When the caller goes away, the order leaves the queue.
    pub async fn draw(&self, order: &Order, priority: Priority) -> Done {
        self.count(order);
        match timeout(self.patience(), self.desk().sticker(order, priority)).await {
            Ok(Ok(bytes)) => Ok(Drawn::Ready(Sticker { name: order.name, bytes })),
            Ok(Err(trouble)) if matches!(*trouble, Trouble::NoPool) => {
                self.add_jobs(&[(0, order)], priority).await?;
                self.by_job(order, self.patience()).await
            }
            Ok(Err(trouble)) => Err(Error::from(&*trouble)),
            Err(_) => {
                self.add_jobs(&[(0, order)], priority).await?;
                Ok(Drawn::Later(order.name))
            }
        }
    }

    /// Draws several orders at the same time, one result for each in their order. One that fails leaves the others alone. The
    /// error is [`Error::Full`] if the pool has no room for all that have to be drawn; then none is drawn. The same order in two
    /// calls at the same time may be drawn twice.
    pub async fn draw_all(&self, orders: &[Order], priority: Priority) -> Result<Vec<Done>, Error> {
        orders.iter().for_each(|order| self.count(order));
        self.draw_uncounted(orders, priority).await
    }

    /// The variants that ship, each with the name of a sticker that shows it; `None`: there is no time to draw it.
    pub async fn pictured_variants(&self) -> Vec<(Variant, Option<StickerName>)> {
        let variants = self.artist().variants();
        let Ok(text) = self.artist().text(SAMPLE) else {
            return variants.into_iter().map(|variant| (variant, None)).collect();
        };
        let order = |variant: &Variant| self.order_of(text.clone(), variant.clone(), Format::Webp);
        let orders: Vec<Order> = variants.iter().map(order).collect();
        let drawn = self.draw_uncounted(&orders, Priority::Normal).await.unwrap_or_default();
        let name = |drawn: &Done| match drawn {
            Ok(Drawn::Ready(sticker)) => Some(sticker.name),
            _ => None,
        };
        let names = drawn.iter().map(name).chain(std::iter::repeat(None));
        variants.into_iter().zip(names).collect()
    }

    async fn draw_uncounted(
        &self,
        orders: &[Order],
        priority: Priority,
    ) -> Result<Vec<Done>, Error> {
        let mut done: HashMap<StickerName, Done> = HashMap::new();
        let mut missing: Vec<Order> = Vec::new();
        for order in orders {
            let name = order.name;
            if done.contains_key(&name) || missing.iter().any(|other| other.name == name) {
                continue;
            }
            match self.desk().made(name).await {
                Some(bytes) => drop(done.insert(name, Ok(Drawn::Ready(Sticker { name, bytes })))),
                None => missing.push(order.clone()),
            }
        }
        for (order, result) in missing.iter().zip(self.draw_missing(&missing, priority).await?) {
            done.insert(order.name, result);
        }
        // Every name is in the map.
        let result = |order: &Order| done.get(&order.name).cloned();
        let lost = || Err(Error::Internal("a sticker got lost".to_owned()));
        Ok(orders.iter().map(|order| result(order).unwrap_or_else(lost)).collect())
    }

    async fn draw_missing(&self, orders: &[Order], priority: Priority) -> Result<Vec<Done>, Error> {
        if orders.is_empty() {
            return Ok(Vec::new());
        }
        let tickets = match self.desk().submit(orders, priority) {
            Ok(tickets) => tickets,
            // The pool never has room for so many: workers have.
            Err(Trouble::NoPool | Trouble::Refused(Refused::TooMany { .. })) => {
                return self.draw_by_jobs(orders, priority).await;
            }
            Err(trouble) => return Err(Error::from(&trouble)),
        };
        let deadline = Instant::now() + self.patience();
        let drawing = orders.iter().zip(tickets).map(async |(order, ticket)| {
            let sticker = self.desk().accepted(order, ticket);
            timeout_at(deadline, sticker).await.ok()
        });
        let drawn = join_all(drawing).await;
        let late = (0..).zip(orders).zip(&drawn).filter(|(_, drawn)| drawn.is_none());
        let late: Vec<(u32, &Order)> = late.map(|(order, _)| order).collect();
        if !late.is_empty() {
            self.add_jobs(&late, priority).await?;
        }
        let done = drawn.into_iter().zip(orders).map(|(drawn, order)| {
            let name = order.name;
            match drawn {
                Some(Ok(bytes)) => Ok(Drawn::Ready(Sticker { name, bytes })),
                Some(Err(trouble)) => Err(Error::from(&*trouble)),
                None => Ok(Drawn::Later(name)),
            }
        });
        Ok(done.collect())
    }

    async fn draw_by_jobs(&self, orders: &[Order], priority: Priority) -> Result<Vec<Done>, Error> {
        let numbered: Vec<(u32, &Order)> = (0..).zip(orders).collect();
        self.add_jobs(&numbered, priority).await?;
        let patience = self.patience();
        Ok(join_all(orders.iter().map(|order| self.by_job(order, patience))).await)
    }

    /// Draws an order for a job, and makes sure that its file is written.
    pub(crate) async fn make_file(&self, order: &Order) -> Result<(StickerName, u64), Error> {
        let bytes = self.desk().sticker(order, Priority::Normal).await;
        let bytes = bytes.map_err(|trouble| Error::from(&*trouble))?;
        if !self.desk().has_file(order.name, bytes.len()).await {
            let saved = self.desk().save(order.name, &bytes).await;
            saved.map_err(|error| Error::of_files(&error))?;
        }
        Ok((order.name, bytes.len() as u64))
    }
}
