//! Campaigns: the room.
