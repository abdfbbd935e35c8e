//! The jobs of this crate, one file each.

pub(crate) mod deliver_webhook;
