//! Nodes, workers, scaling decisions and health.
