//! The jobs of campaigns.

pub(crate) mod feed_campaign;
pub(crate) mod send_message;
