//! The relay: moves the rows of the outbox to the stream in Redis, on one node at a time.
//!
//! ```text
//!             lease free                      lease lost, or Redis away past its time
//!  candidate ────────────▶ relays ──────────────────────────────────────────────────▶ candidate
//!      ▲ every second        │ nudged, and every second: read rows ──▶ append ──▶ settle
//!      └── lease held        ▼ stop: gives the lease back
//! ```
//!
//! The script that appends checks the lease's fencing token, so a node that was suspended past its lease appends
//! nothing. A relay that dies between append and settle leaves the rows; the next one appends them again, but for those
//! of the last call, which Redis remembers. While Redis is away, the rows wait, for a day at most.

use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use stampede_broker::{
    Broker, Error as BrokerError, Feed, Leadership, Lease, NewEntry, Subscription,
};
use stampede_model::{FeedEventId, Timestamp};
use stampede_store::{Error as StoreError, OutboxRow, Store};
use stampede_wire::feed::Envelope;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::keep::Sizes;
use crate::test_hooks::hang_at;
use crate::{Nudger, bridge};

/// A lease expires after this time without renewal.
const LEASE_LASTS: Duration = Duration::from_secs(5);
/// A lease is renewed, or tried for, this often. The relay also looks this often without a nudge.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The shortest pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// Rows of one step.
const AT_ONCE: u32 = 200;
/// How long rows wait for a Redis that is away.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Names the node that relays.
#[derive(Debug, Clone)]
pub struct RelayConfig {
    /// The node's name.
    pub node: String,
}

/// A node that may relay.
pub struct Relay {
    store: Store,
    broker: Broker,
    feed: Feed,
    lease: Lease,
    sizes: Sizes,
}

/// Whether rows are left after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// None is.
    Done,
    /// More may be.
    More,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("Redis: {0}")]
    Redis(#[from] BrokerError),
    #[error("the database: {0}")]
    Store(#[from] StoreError),
    #[error("another node relays")]
    Fenced,
}

impl Relay {
    /// A candidate.
    pub fn new(config: &RelayConfig, store: Store, broker: Broker) -> Self {
        // Unique for every start of a node, like the incarnation of the registry.
        let incarnation = FeedEventId::generate().to_string();
        let lease = broker.relay_lease(&config.node, &incarnation, LEASE_LASTS);
        let feed = broker.feed();
        Self { store, broker, feed, lease, sizes: Sizes::default() }
    }

    /// Relays whenever no other node does, until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut away_since = None;
        while !stop.is_cancelled() {
            match self.lease.hold().await {
                Ok(Some((held, until))) => {
                    away_since = None;
                    self.lead(held, until, &stop).await;
                }
                Ok(None) => {
                    away_since = None;
                    self.stand_by(&stop).await;
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot ask for the lease of the relay");
                    let since = *away_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > LEASE_LASTS {
                        self.drop_old().await;
                    }
                    pause(LOOK_EVERY, &stop).await;
                }
            }
        }
    }

    /// Another node relays: tells it of this process's writes.
    async fn stand_by(&self, stop: &CancellationToken) {
        let own = stop.child_token();
        let nudging = Nudger::new(self.store.clone(), self.broker.clone()).run(own.clone());
        let _ = timeout(LOOK_EVERY, nudging).await;
        own.cancel();
    }

    /// Relays until the lease is lost.
    async fn lead(&mut self, held: Leadership, until: Instant, stop: &CancellationToken) {
        tracing::debug!(token = held.token, "this node relays the outbox");
        let broker = self.broker.clone();
        tokio::select! {
            () = self.relay_while_held(&held, until, stop) => {}
            // A task of its own speed: many rows must not crowd out messages that nothing stores.
            () = bridge::run(&broker) => {}
        }
    }

    async fn relay_while_held(
        &mut self,
        held: &Leadership,
        mut until: Instant,
        stop: &CancellationToken,
    ) {
        let mut nudges = None;
        let mut renewed = Instant::now();
        while !stop.is_cancelled() && Instant::now() < until {
            // Before the rows are read: a nudge that comes later is heard after this look.
            forget(&mut nudges).await;
            let step = match self.relay_page(held).await {
                Ok(step) => step,
                Err(Failure::Fenced) => return,
                Err(failure) => {
                    tracing::debug!(error = %failure, "the outbox could not be relayed; trying again");
                    sleep(Duration::from_millis(200)).await;
                    Step::Done
                }
            };
            if renewed.elapsed() >= LOOK_EVERY {
                renewed = Instant::now();
                match self.lease.hold().await {
                    Ok(Some((leader, end))) if leader.token == held.token => until = end,
                    Ok(_) => return,
                    // Until its end the lease may still be ours.
                    Err(error) => tracing::debug!(%error, "cannot renew the lease of the relay"),
                }
            }
            if step == Step::Done {
                self.wait(&mut nudges, stop).await;
            }
        }
        if stop.is_cancelled() {
            // What the last requests wrote.
            while let Ok(Step::More) = self.relay_page(held).await {}
            if let Err(error) = self.lease.release(held).await {
                tracing::debug!(%error, "the lease of the relay expires by itself");
            }
        }
    }

    /// Waits until there may be rows.
    async fn wait(&mut self, nudges: &mut Option<Subscription>, stop: &CancellationToken) {
        sleep(PAUSE).await;
        if nudges.is_none() {
            *nudges = self.broker.subscribe(&[Feed::NUDGES.to_owned()]).await.ok();
        }
        let nudged = async {
            match nudges {
                Some(nudges) => nudges.next_of_channel().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.store.written() => {}
            () = sleep(LOOK_EVERY) => {}
            () = stop.cancelled() => {}
            nudge = nudged => if nudge.is_none() {
                // The connection has ended.
                *nudges = None;
            }
        }
    }

    /// Moves one page of rows.
    async fn relay_page(&mut self, held: &Leadership) -> Result<Step, Failure> {
        let rows = self.store.outbox(AT_ONCE).await?;
        if rows.is_empty() {
            return Ok(Step::Done);
        }
        let entries: Vec<NewEntry> = rows.iter().filter_map(entry).collect();
        entries.iter().for_each(|entry| self.sizes.note(entry.event.len()));
        if !self.feed.append(held, &entries, self.sizes.keep()).await? {
            return Err(Failure::Fenced);
        }
        hang_at("feed-appended").await;
        self.store.settle_outbox(&rows).await?;
        Ok(if rows.len() < AT_ONCE as usize { Step::Done } else { Step::More })
    }

    /// Settles rows that have waited for Redis too long, without telling live readers. Webhooks still get them.
    async fn drop_old(&self) {
        let Some(oldest) = oldest_kept() else { return };
        let Ok(rows) = self.store.outbox(AT_ONCE).await else { return };
        let old: Vec<OutboxRow> = rows.into_iter().filter(|row| row.at < oldest).collect();
        if !old.is_empty() && self.store.settle_outbox(&old).await.is_ok() {
            tracing::warn!(
                events = old.len(),
                "Redis is away for more than a day: live readers will not be told of old events"
            );
        }
    }
}

/// The time before which rows have waited too long.
fn oldest_kept() -> Option<Timestamp> {
    Timestamp::now().checked_sub(PATIENCE).ok()
}

/// A row as an entry of the stream; `None`: its data is no JSON, and nobody could read it.
fn entry(row: &OutboxRow) -> Option<NewEntry> {
    let data: &RawValue = match serde_json::from_str(&row.data) {
        Ok(data) => data,
        Err(error) => {
            tracing::warn!(%error, id = %row.id, "an event in the outbox is damaged and left out");
            return None;
        }
    };
    let envelope = Envelope {
        id: row.id,
        kind: row.kind.as_str().into(),
        at: row.at,
        user_id: Some(row.owner.as_str().into()),
        event_id: row.event_id,
        batch_id: row.batch_id,
        data,
    };
    Some(NewEntry { id: row.id.to_string(), event: envelope.written() })
}

/// Drops nudges that have come: one look serves all of them.
async fn forget(nudges: &mut Option<Subscription>) {
    let Some(heard) = nudges else { return };
    loop {
        match timeout(Duration::ZERO, heard.next_of_channel()).await {
            Ok(Some(_)) => {}
            // The connection has ended.
            Ok(None) => break *nudges = None,
            Err(_) => break,
        }
    }
}

async fn pause(time: Duration, stop: &CancellationToken) {
    tokio::select! {
        () = sleep(time) => {}
        () = stop.cancelled() => {}
    }
}
