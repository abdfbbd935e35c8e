//! Typesetting: a Typst template and the data of one ticket become the bytes of a PDF.
//!
//! A [`Template`] is one Typst file, the shipped one or an operator's. A [`Typesetter`] renders
//! tickets with it. The template reads the ticket as data (`ticket.json` and `qr.svg`); no text typed
//! by a person is ever part of Typst source. Nothing here reads a file, the network, the clock or the
//! system's fonts, so equal input gives equal bytes on every node.
//!
//! [`missing_glyphs`] tells beforehand which characters the embedded fonts cannot print.

mod bundle;
mod diagnostics;
mod fonts;
mod glyphs;
mod qr;
mod template;
mod typesetter;

pub use diagnostics::Error;
pub use glyphs::missing_glyphs;
pub use template::Template;
pub use typesetter::Typesetter;
