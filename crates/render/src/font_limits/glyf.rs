//! TrueType outlines: their bytes, and points and components of composite glyphs.
//!
//! Each glyph is measured once; a composite glyph adds up what its components have. So the walk takes time in
//! proportion to the file, however much the font would unpack to.

use super::{MOST_COMPONENTS, MOST_DEPTH, MOST_GLYPH_BYTES, MOST_POINTS, beyond};
use crate::face::{FontError, Glyf};
use crate::subset::Components;

/// A glyph with all its components.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    points: u32,
    components: u32,
    /// Levels of components below it.
    depth: u32,
}

/// The state of a glyph during the walk.
#[derive(Debug, Clone, Copy, Default)]
enum Known {
    #[default]
    Nothing,
    /// It is being measured: a component that refers to it closes a circle.
    Begun,
    All(Size),
}

/// Checks all glyphs of a TrueType font.
pub(crate) fn check(data: &[u8], glyf: &Glyf) -> Result<(), FontError> {
    let count = glyf.glyph_count(data);
    let mut walk = Walk { data, glyf, known: vec![Known::Nothing; usize::from(count)] };
    let mut bytes = 0_u64;
    for glyph in 0..count {
        let length = glyf.outline(data, glyph).len() as u64;
        if length > u64::from(MOST_GLYPH_BYTES) {
            return Err(beyond(glyph, format!("has {length} bytes, more than {MOST_GLYPH_BYTES}")));
        }
        bytes += length;
        // Offsets that grow cannot give more bytes than the table has; some fonts have a few that do not grow.
        if bytes > 2 * glyf.table_bytes() as u64 {
            let limit = format!(
                "overlaps others: up to it, outlines have {bytes} bytes, and the table fewer than half"
            );
            return Err(beyond(glyph, limit));
        }
        walk.measure(glyph, 0)?;
    }
    Ok(())
}

struct Walk<'a> {
    data: &'a [u8],
    glyf: &'a Glyf,
    known: Vec<Known>,
}

impl Walk<'_> {
    /// Measures a glyph that `above` others refer to, one through the other.
    fn measure(&mut self, glyph: u16, above: u32) -> Result<Size, FontError> {
        // A number that the font does not have is an empty glyph.
        let Some(known) = self.known.get_mut(usize::from(glyph)) else {
            return Ok(Size::default());
        };
        match *known {
            Known::All(size) => return Ok(size),
            Known::Begun => return Err(beyond(glyph, "is a component of itself".to_owned())),
            Known::Nothing => *known = Known::Begun,
        }
        let outline = self.glyf.outline(self.data, glyph);
        let mut size = Size { points: points(outline), ..Size::default() };
        for part in Components::of(outline) {
            // Checked on the way down, too: the walk itself must not run out of stack.
            if above >= MOST_DEPTH {
                return Err(too_deep(glyph));
            }
            let part = self.measure(part.glyph, above + 1)?;
            size.points = size.points.saturating_add(part.points);
            size.components = size.components.saturating_add(1 + part.components);
            size.depth = size.depth.max(1 + part.depth);
            within_limits(glyph, size)?;
        }
        within_limits(glyph, size)?;
        if let Some(known) = self.known.get_mut(usize::from(glyph)) {
            *known = Known::All(size);
        }
        Ok(size)
    }
}

fn within_limits(glyph: u16, size: Size) -> Result<(), FontError> {
    let Size { points, components, depth } = size;
    if points > MOST_POINTS {
        let limit = format!("has {points} points with its components, more than {MOST_POINTS}");
        return Err(beyond(glyph, limit));
    }
    if components > MOST_COMPONENTS {
        return Err(beyond(glyph, format!("has more than {MOST_COMPONENTS} components")));
    }
    if depth > MOST_DEPTH { Err(too_deep(glyph)) } else { Ok(()) }
}

fn too_deep(glyph: u16) -> FontError {
    beyond(glyph, format!("nests components deeper than {MOST_DEPTH} levels"))
}

/// Points of a simple glyph; 0 for composite, empty and damaged ones.
fn points(outline: &[u8]) -> u32 {
    let word = |at: usize| Some(u16::from_be_bytes(*outline.get(at..)?.first_chunk()?));
    let last = || {
        let contours = usize::from(word(0)?);
        if contours == 0 || contours & 0x8000 != 0 {
            return None;
        }
        word(10 + (contours - 1) * 2)
    };
    last().map_or(0, |last| u32::from(last) + 1)
}
