//! Limits on what an organiser's font may unpack to.
//!
//! A font of a few megabytes can describe gigabytes: outlines that overlap in the file, composite glyphs whose
//! components have components, CFF subroutines that call subroutines. Every glyph is walked once, without unpacking
//! it, before the font is used; a font beyond a limit is refused with the number of the glyph.
//!
//! | file | walks |
//! |---|---|
//! | `font_limits/glyf.rs` | TrueType outlines and their components |
//! | `font_limits/cff.rs` | CFF charstrings and their subroutines |
//!
//! Fonts in use (Inter, Noto with CJK, icon and emoji fonts) stay below a tenth of each limit.

pub(crate) mod cff;
pub(crate) mod glyf;

use crate::face::{FontError, Outlines};

/// Most points of a glyph with all its components: what `maxp` can express.
pub(crate) const MOST_POINTS: u32 = 65_535;
/// Deepest nesting of components.
pub(crate) const MOST_DEPTH: u32 = 16;
/// Most components of a glyph, with the components of components.
pub(crate) const MOST_COMPONENTS: u32 = 4_096;
/// Most bytes of one glyph: of its outline, or of its charstring with all subroutines in place.
pub(crate) const MOST_GLYPH_BYTES: u32 = 512 << 10;
/// Deepest calls of CFF subroutines, as the format has it.
pub(crate) const MOST_CALLS: u32 = 10;
/// Most bytes of all glyphs of a CFF font, with all subroutines in place.
pub(crate) const MOST_FONT_BYTES: u64 = 128 << 20;
/// Most faces of a collection.
pub const MOST_FACES: u32 = 64;

/// Checks one face of a font file; the error names the glyph and the limit.
pub fn check_font(bytes: &[u8], face: u32) -> Result<(), FontError> {
    let outlines = crate::face::outlines(bytes, face)?;
    check_outlines(bytes, &outlines)
}

/// Checks all glyphs of a face.
pub(crate) fn check_outlines(bytes: &[u8], outlines: &Outlines) -> Result<(), FontError> {
    match outlines {
        Outlines::TrueType(glyf) => glyf::check(bytes, glyf),
        // Walked when the sizes of its glyphs were taken.
        Outlines::Cff(_) => Ok(()),
    }
}

/// The refusal of a glyph.
pub(crate) fn beyond(glyph: u16, limit: String) -> FontError {
    FontError::TooLarge { glyph, limit }
}
