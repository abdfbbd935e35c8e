//! Text stickers.
