//! The roles of a node.

/// The roles of a node. A lease decides which of the possible coordinators coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// The node serves HTTP.
    pub api: bool,
    /// The node runs workers.
    pub worker: bool,
    /// The node may coordinate.
    pub coordinator: bool,
}

impl Roles {
    /// The names of the roles that the node has now: `coordinator` only while it coordinates.
    pub fn names(self, coordinates: bool) -> Vec<String> {
        let all = [("api", self.api), ("worker", self.worker), ("coordinator", coordinates)];
        all.into_iter().filter(|(_, is)| *is).map(|(name, _)| name.to_owned()).collect()
    }
}
