//! Stamping: a compiled template and the data of one ticket become the bytes of a PDF.
//!
//! Pure functions: nothing here reads the clock, the environment, a file or the network, so equal
//! input gives equal bytes on every machine, in every process, on every day.

pub mod blob;
pub mod compiled;
mod draw;
mod error;
mod face;
mod font_limits;
pub mod fonts;
pub mod lettering;
mod merged;
mod pdf;
mod preflight;
mod prepared;
pub mod qr;
mod stamper;
mod subset;
mod text;

pub use blob::{content_hash, decode, encode};
pub use draw::Values;
pub use error::Error;
pub use face::FontError;
pub use font_limits::{MOST_FACES, check_font};
pub use merged::{Continuation, MergeError, Merged, Piece, piece};
pub use preflight::{MIN_MODULE_MM, Preflight, Warning, preflight};
pub use prepared::Prepared;
pub use stamper::{Deflate, Stamper, stamp};
pub use text::{MAX_CHARS, MAX_MARKS, clean};
