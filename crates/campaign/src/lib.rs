//! Campaigns: the room.

pub mod pace;
