//! Events, orders, tickets, batches, keys, templates and verification.
