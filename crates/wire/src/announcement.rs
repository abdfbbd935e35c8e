//! Everything that is published on a Redis channel.
