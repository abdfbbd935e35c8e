//! The one type that callers hold: what all verbs share, and its start and stop.

use std::sync::Arc;

use stampede_broker::{Broker, Queue, Work};
use stampede_files::Files;
use stampede_model::Timestamp;
use stampede_press::Press;
use stampede_store::Store;
use stampede_telemetry::Metrics;

use crate::announce::Announcer;
use crate::completions::Completions;
use crate::counts::Counts;
use crate::download::{Lengths, Places};
use crate::jobs::generate_ticket::GenerateTicket;
use crate::outages::Outages;
use crate::slow_lane::SlowLane;
use crate::suspects::Suspects;
use crate::tasks::Tasks;
use crate::ticket_reader::TicketReader;
use crate::warming::Warming;

/// What orders and downloads may ask for at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tickets in one order.
    pub quantity: u32,
    /// Batches that are downloaded at the same time. Each takes a few hundred KB of memory and a share of
    /// the database.
    pub downloads: usize,
    /// Jobs that this process runs at the same time. Half of them may be tickets that take their time.
    pub slots: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { quantity: 100_000, downloads: 16, slots: 16 }
    }
}

/// What ticketing works with. Cheap to clone.
#[derive(Clone)]
pub struct Parts {
    /// Name of this process; tickets say which worker made them.
    pub worker: String,
    /// Records.
    pub store: Store,
    /// Redis.
    pub broker: Broker,
    /// Rendered output.
    pub files: Files,
    /// Makes PDFs.
    pub press: Press,
    /// What may be asked for at most.
    pub limits: Limits,
    /// Where tickets are counted.
    pub metrics: Metrics,
}

/// Orders and tickets. Cheap to clone; all clones are the same.
///
/// [`Ticketing::start`] starts tasks in the background; [`Ticketing::stop`] returns when all of them have
/// ended. Nothing that was accepted is lost by a process that ends without `stop`: the reconciler finds it.
#[derive(Clone)]
pub struct Ticketing {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) worker: String,
    pub(crate) store: Store,
    pub(crate) queue: Queue,
    pub(crate) files: Files,
    pub(crate) press: Press,
    pub(crate) limits: Limits,
    pub(crate) counts: Counts,
    pub(crate) reader: TicketReader,
    pub(crate) completions: Completions,
    pub(crate) announcer: Announcer,
    pub(crate) outages: Outages,
    pub(crate) slow_lane: SlowLane,
    pub(crate) suspects: Suspects,
    pub(crate) warming: Warming,
    /// Free places for downloads of whole batches.
    pub(crate) downloads: Places,
    /// Lengths of merged PDFs that were made.
    pub(crate) lengths: Lengths,
    /// Orders that are being placed, downloads that are being written, files that are being deleted.
    pub(crate) requests: Tasks,
    /// The tasks of `reader` and `completions`.
    groups: Tasks,
    /// The task of `announcer`.
    announcing: Tasks,
}

impl Ticketing {
    /// Starts the background tasks: group reads, group commits, writing the state of batches.
    pub async fn start(parts: Parts) -> Result<Self, stampede_broker::Error> {
        let Parts { worker, store, broker, files, press, limits, metrics } = parts;
        let queue = broker.queue(GenerateTicket::QUEUE).await?;
        let (groups, announcing) = (Tasks::default(), Tasks::default());
        let suspects = Suspects::new(&broker);
        let announcer = Announcer::start(broker, store.clone(), &announcing);
        let reader = TicketReader::start(store.clone(), &groups);
        let completions =
            Completions::start(store.clone(), announcer.clone(), metrics.clone(), &groups);
        let shared = Shared {
            worker,
            store,
            queue,
            files,
            press,
            reader,
            completions,
            announcer,
            outages: Outages::default(),
            slow_lane: SlowLane::new(limits.slots),
            suspects,
            warming: Warming::default(),
            downloads: Places::new(limits.downloads),
            lengths: Lengths::default(),
            limits,
            counts: Counts::new(metrics),
            requests: Tasks::default(),
            groups,
            announcing,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Ends the background tasks and waits for them: orders that were committed are enqueued, finished
    /// tickets are recorded and announced, downloads are broken off.
    ///
    /// To be called when nobody places orders or runs jobs any more.
    pub async fn stop(&self) {
        self.shared.requests.end().await;
        self.shared.groups.end().await;
        // Last, because the others announce until their end.
        self.shared.announcing.end().await;
    }

    /// Proves that PDFs can be written; the reason why not names no path.
    pub async fn probe_files(&self) -> Result<(), String> {
        self.shared.files.probe().await.map_err(|error| error.reason())
    }

    /// What may be asked for at most.
    pub fn limits(&self) -> Limits {
        self.shared.limits
    }
}

/// The present, as precise as the store keeps it.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}
