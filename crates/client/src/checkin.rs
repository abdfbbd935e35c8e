//! Check-in, as far as our own commands use it.

use serde::Serialize;
use stampede_model::EventId;
use stampede_wire::checkin::devices::NewDevice;

use crate::{Client, Result};

#[derive(Serialize)]
struct DeviceBody<'a> {
    name: &'a str,
}

impl Client {
    /// Makes a device of an event; its key is in the answer.
    pub async fn create_device(&self, event: EventId, name: &str) -> Result<NewDevice> {
        self.post(&format!("/api/events/{event}/devices"), &DeviceBody { name }).await
    }
}
