//! What a node is.

/// The roles of a node. Which node coordinates is decided by a lease among those that may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// It serves HTTP.
    pub api: bool,
    /// It runs workers.
    pub worker: bool,
    /// It may coordinate.
    pub coordinator: bool,
}

impl Roles {
    /// Their names. One that only may coordinate is not a coordinator.
    pub fn names(self, coordinates: bool) -> Vec<&'static str> {
        let all = [("api", self.api), ("worker", self.worker), ("coordinator", coordinates)];
        all.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect()
    }
}
