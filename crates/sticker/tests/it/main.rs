//! Tests of whole stickers.
//!
//! - `STAMPEDE_STICKER_TEXTS=1000` plays the whole corpus; without it, a slice.
//! - `STAMPEDE_STICKER_FILES=folder` keeps every file that was drawn, for the programs in `interop/stickers`.

mod bad_input;
mod corpus;
mod every_text;
mod studio;
mod tgs;
