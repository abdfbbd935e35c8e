//! Time limits of operations.
//!
//! A server that has gone silent (a pulled cable, a frozen machine, a firewall that forgot the
//! connection) sends no error: a client that waits for its answer waits for ever. So every operation
//! has a limit, after which the caller gets `Unavailable`.

use std::time::Duration;

/// The limit of a write transaction, as a multiple of the limit of a read.
const WRITE_FACTOR: u32 = 3;

/// The limit of an order, which writes up to 100,000 tickets, as a multiple of the limit of a read.
const ORDER_FACTOR: u32 = 6;

/// The limit of a read, as a multiple of the time within which a healthy connection answers a ping.
const PING_DIVISOR: u32 = 5;

/// The server's own limit lies this far above ours. Ours can tell the caller more; the server's ends
/// work whose client has given up.
const SERVER_MARGIN: Duration = Duration::from_secs(5);

/// Time limits, waiting for a turn and for a connection included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Limit of a read.
    pub(crate) read: Duration,
    /// Limit of a write transaction with all of its retries.
    pub(crate) write: Duration,
    /// Limit of operations on very many tickets: a large order, a revoked key, a recount.
    pub(crate) order: Duration,
    /// Limit of an answer that needs no work.
    pub(crate) ping: Duration,
}

impl Limits {
    /// Derives all limits from the limit of a read.
    pub(crate) fn new(read: Duration) -> Self {
        Self {
            read,
            write: read * WRITE_FACTOR,
            order: read * ORDER_FACTOR,
            ping: read / PING_DIVISOR,
        }
    }

    /// The limit that the server enforces on each statement.
    pub(crate) fn on_server(self) -> Duration {
        self.order + SERVER_MARGIN
    }
}
