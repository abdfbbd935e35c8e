//! Text stickers: a text and a [`Variant`] become the bytes of a WEBP, a PNG or an animated sticker of Telegram (TGS).
//!
//! ```text
//! text ──▶ text.rs: rules ──▶ layout.rs: lines, size ──▶ scene.rs: outlines, colours ──▶ raster.rs ──▶ encode.rs: WEBP, PNG
//!                                                                                  └──▶ tgs.rs: Lottie, gzip
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `text.rs` | what is refused, and the text as it is drawn |
//! | `variant.rs`, `palette.rs`, `shipped.rs` | a design, its id; the eight that ship |
//! | `fonts.rs`, `emoji.rs` | fonts, parsed once; emoji as stacks of flat fills |
//! | `layout.rs`, `lines.rs` | where each glyph stands; where lines are broken |
//! | `scene.rs`, `plate.rs`, `units.rs` | what is drawn, in pixels; bubble and ribbon; the parts that move by themselves |
//! | `raster.rs`, `blur.rs`, `encode.rs` | static stickers |
//! | `tgs.rs`, `lottie.rs`, `motion.rs` | animated stickers |
//! | `studio.rs` | [`Studio`], which has the fonts and is shared by threads |
//!
//! Pure functions: nothing here reads the clock, the environment, a file or the network, so equal input gives equal bytes
//! on every machine. A sticker outside of Telegram's limits is never answered: details are left out, then it is an [`Error`].
//!
//! Adding something that changes any byte of a sticker? Also raise [`VERSION`].

mod blur;
mod emoji;
mod encode;
mod error;
mod fonts;
mod layout;
mod lines;
mod lottie;
mod motion;
mod palette;
mod plate;
mod raster;
mod scene;
mod shipped;
mod studio;
mod text;
mod tgs;
mod units;
mod variant;

pub use error::{Error, Unknown};
pub use palette::{Colour, Palette};
pub use shipped::{Shipped, by_name, shipped};
pub use studio::{Format, Studio};
pub use text::{MAX_GRAPHEMES, MAX_LINES, Text};
pub use variant::{Animation, Fill, Font, Outline, Shadow, Shape, Variant};

/// Version of the drawing: part of the key of every cache of stickers. Equal versions give equal bytes.
pub const VERSION: u32 = 1;

/// Side of the canvas in pixels. One side of a static sticker is exactly as long.
pub const SIDE: u32 = 512;
/// Most bytes of a static sticker.
pub const MAX_STATIC_BYTES: usize = 512 * 1024;
/// Most bytes of an animated sticker.
pub const MAX_TGS_BYTES: usize = 64 * 1024;
