//! Live streams: what every reader of the feed shares, whether it reads server-sent events or a WebSocket.
//!
//! | file | holds |
//! |---|---|
//! | this one | [`Live`]: the hub of this node, and the places of readers |
//! | `places.rs` | how many streams a key, a user and a node may have |
//! | `watch.rs` | one reader: events that its key may see, heartbeats, the key checked again |
//! | `connection.rs` | what a stream knows of its request |
//! | `sse.rs` | a stream of server-sent events |
//! | `socket.rs`, `socket/` | a WebSocket |
//!
//! A reader is never buffered for. Events wait in a ring that all readers share; a reader that falls behind it, or whose
//! connection takes nothing for [`WRITE_PATIENCE`], is cut off and resumes from its last event.

mod connection;
mod places;
pub(crate) mod socket;
pub(crate) mod sse;
mod watch;

use std::net::IpAddr;
use std::time::Duration;

use stampede_feed::Hub;
use stampede_model::Principal;
use tokio_util::task::TaskTracker;

pub(crate) use self::connection::{Connection, CutOff};
pub(crate) use self::places::Place;
use self::places::{Full, Places};
pub(crate) use self::watch::{Step, Watch};
use crate::cors::Origins;
use crate::problem::{Code, Problem};

/// A connection that takes no byte for this long is cut off.
pub(crate) const WRITE_PATIENCE: Duration = Duration::from_secs(20);
/// Pause of a client before it connects again, in milliseconds.
pub(crate) const RETRY_MS: u64 = 1_000;
/// `Retry-After` of a client that found no place.
const RETRY_AFTER_S: u32 = 5;

/// The live streams of a node. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Live {
    pub(crate) hub: Hub,
    pub(crate) origins: Origins,
    places: Places,
    pub(crate) tasks: TaskTracker,
}

impl Live {
    /// Streams of a hub; pages of these origins may open WebSockets.
    pub fn new(hub: Hub, origins: Origins) -> Self {
        Self { hub, origins, places: Places::default(), tasks: TaskTracker::new() }
    }

    /// Waits for the streams, which end when the hub does.
    pub async fn stop(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// A place for one more stream.
    pub(crate) fn take_place(&self, caller: &Principal) -> Result<Place, Problem> {
        let of_key = "this key or its user has as many streams as it may have";
        self.places.take(caller).map_err(|full| no_place(full, of_key))
    }

    /// A place for a socket whose key is not known yet.
    pub(crate) fn take_place_as_stranger(&self, from: Option<IpAddr>) -> Result<Place, Problem> {
        let of_address = "this address has as many sockets without a key as it may have";
        self.places.take_as_stranger(from).map_err(|full| no_place(full, of_address))
    }
}

fn no_place(full: Full, of_holder: &'static str) -> Problem {
    let (code, detail) = match full {
        Full::Key => (Code::RateLimited, of_holder),
        Full::Node => (Code::Overloaded, "this node has as many streams as it may have"),
    };
    Problem::new(code, detail).retry_after(RETRY_AFTER_S)
}
