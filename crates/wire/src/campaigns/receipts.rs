//! What is answered to providers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a provider's request. Providers look at the status alone; this is for those who set a hook up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptsTaken {
    /// Recipients that changed; a receipt that comes again changes none.
    pub applied: u64,
    /// Addresses that get nothing any more.
    pub suppressed: u64,
}
