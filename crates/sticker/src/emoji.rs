//! Coloured emoji: each is a stack of glyphs that are filled with one colour each (COLR version 0).

use std::ops::Range;
use std::sync::OnceLock;

use tiny_skia::{Path, PathSegment, Point};
use ttf_parser::{GlyphId, RgbaColor};

use crate::scene::outline_of;

/// A fill of an emoji.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer {
    pub(crate) glyph: GlyphId,
    pub(crate) colour: RgbaColor,
}

/// All coloured glyphs of the font.
pub(crate) struct Emoji {
    face: ttf_parser::Face<'static>,
    layers: Vec<Layer>,
    glyphs: Vec<Range<u32>>,
    /// For each glyph, once it was asked for: which layers reach its edge.
    edges: Vec<OnceLock<Box<[bool]>>>,
}

impl Emoji {
    pub(crate) fn new(bytes: &'static [u8]) -> Option<Self> {
        let face = ttf_parser::Face::parse(bytes, 0).ok()?;
        let table = face.tables().colr?;
        let mut reader = Reader::default();
        let count = face.number_of_glyphs();
        let mut glyphs = Vec::with_capacity(usize::from(count));
        for glyph in 0..count {
            let from = reader.layers.len() as u32;
            if table.contains(GlyphId(glyph)) {
                table.paint(GlyphId(glyph), 0, &mut reader, &[], RgbaColor::new(0, 0, 0, 255))?;
            }
            glyphs.push(from..reader.layers.len() as u32);
        }
        let edges = glyphs.iter().map(|_| OnceLock::new()).collect();
        Some(Self { face, layers: reader.layers, glyphs, edges })
    }

    /// The fills of a glyph, the lowest first; empty if it is not a coloured one.
    pub(crate) fn layers(&self, glyph: u16) -> &[Layer] {
        let range = self.glyphs.get(usize::from(glyph)).cloned().unwrap_or_default();
        self.layers.get(range.start as usize..range.end as usize).unwrap_or_default()
    }

    /// For each fill, whether it may reach beyond the fills below it: only those need an outline.
    pub(crate) fn edges(&self, glyph: u16) -> &[bool] {
        let Some(edges) = self.edges.get(usize::from(glyph)) else { return &[] };
        edges.get_or_init(|| {
            let paths: Vec<Option<Path>> = self
                .layers(glyph)
                .iter()
                .map(|layer| outline_of(&self.face, layer.glyph, 1.0))
                .collect();
            (0..paths.len()).map(|index| reaches_out(&paths, index)).collect()
        })
    }
}

/// Whether a path is not inside of one single path below it.
fn reaches_out(paths: &[Option<Path>], index: usize) -> bool {
    let Some(path) = &paths[index] else { return false };
    !paths[..index].iter().flatten().any(|below| {
        let (inner, outer) = (path.bounds(), below.bounds());
        outer.left() <= inner.left()
            && outer.right() >= inner.right()
            && outer.top() <= inner.top()
            && outer.bottom() >= inner.bottom()
            && path.points().iter().all(|&point| is_inside(below, point))
    })
}

/// Even-odd test against the path's chords and control polygons, which is exact enough for a decision that only saves work.
fn is_inside(path: &Path, point: Point) -> bool {
    let (mut inside, mut from, mut start) = (false, Point::zero(), Point::zero());
    let mut edge = |a: Point, b: Point| {
        if (a.y > point.y) != (b.y > point.y) {
            let x = a.x + (point.y - a.y) / (b.y - a.y) * (b.x - a.x);
            inside ^= point.x < x;
        }
    };
    for segment in path.segments() {
        match segment {
            PathSegment::MoveTo(to) => (start, from) = (to, to),
            PathSegment::LineTo(to) => {
                edge(from, to);
                from = to;
            }
            PathSegment::QuadTo(by, to) | PathSegment::CubicTo(_, by, to) => {
                // The middle of the curve.
                let middle = Point::from_xy(
                    from.x / 4.0 + by.x / 2.0 + to.x / 4.0,
                    from.y / 4.0 + by.y / 2.0 + to.y / 4.0,
                );
                edge(from, middle);
                edge(middle, to);
                from = to;
            }
            PathSegment::Close => edge(from, start),
        }
    }
    inside
}

/// Collects the fills that the font tells.
#[derive(Default)]
struct Reader {
    glyph: GlyphId,
    layers: Vec<Layer>,
}

impl<'a> ttf_parser::colr::Painter<'a> for Reader {
    fn outline_glyph(&mut self, glyph: GlyphId) {
        self.glyph = glyph;
    }

    fn paint(&mut self, paint: ttf_parser::colr::Paint<'a>) {
        if let ttf_parser::colr::Paint::Solid(colour) = paint {
            self.layers.push(Layer { glyph: self.glyph, colour });
        }
    }

    // Version 0 has nothing of the following.
    fn push_clip(&mut self) {}
    fn push_clip_box(&mut self, _: ttf_parser::colr::ClipBox) {}
    fn pop_clip(&mut self) {}
    fn push_layer(&mut self, _: ttf_parser::colr::CompositeMode) {}
    fn pop_layer(&mut self) {}
    fn push_transform(&mut self, _: ttf_parser::Transform) {}
    fn pop_transform(&mut self) {}
}
