//! The scene: everything that is drawn, in pixels of the canvas, before it becomes pixels or Lottie.
//!
//! From below: shadow, outline, plate, letters and emoji. All outlines lie below all fills, so that no letter's outline cuts
//! its neighbour. With a plate, outline and shadow are the plate's.

use stampede_render::lettering::Memory;
use tiny_skia::{Path, PathBuilder};
use ttf_parser::{GlyphId, RgbaColor};

use crate::fonts::{Fonts, is_emoji};
use crate::layout::{self, Layout};
use crate::motion::Room;
use crate::plate::{self, Plate};
use crate::variant::{Fill, Outline, Shadow, Shape, Variant};
use crate::{Error, SIDE, Text, units};

/// Middle of the canvas.
pub(crate) const MIDDLE: f32 = SIDE as f32 / 2.0;
/// The box that a text fills at most, and a text with its plate.
const BOX: [f32; 2] = [440.0, 420.0];
const BOX_OF_PLATES: [f32; 2] = [468.0, 440.0];
/// Ink stays so far from the edges of the canvas.
const MARGIN: f32 = 3.0;

/// A rectangle; y grows downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rectangle {
    pub(crate) left: f32,
    pub(crate) top: f32,
    pub(crate) right: f32,
    pub(crate) bottom: f32,
}

/// A part of the text that moves by itself.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// Its origin.
    pub(crate) x: f32,
    pub(crate) y: f32,
    /// Fills from below, relative to the origin.
    pub(crate) pieces: Vec<Piece>,
    /// Where its text begins: the order of reading.
    pub(crate) reading: usize,
}

/// One fill.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) path: Path,
    /// `None`: the colour of letters.
    pub(crate) colour: Option<RgbaColor>,
    /// Whether the outline has to follow it.
    pub(crate) is_edge: bool,
}

/// Everything that is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) variant: Variant,
    /// Pixels of an em.
    pub(crate) size: f32,
    pub(crate) units: Vec<Unit>,
    pub(crate) plate: Option<Plate>,
    /// Where the plate's origin is.
    pub(crate) plate_at: (f32, f32),
    /// The ink of the text.
    pub(crate) ink: Rectangle,
    /// Ink and plate without outline and shadow.
    pub(crate) body: Rectangle,
    /// How far the outline reaches beyond the edge; 0 without one.
    pub(crate) outline: f32,
    /// Emoji on a plate have an edge in the colour of letters, or some could not be told from the plate; else 0.
    pub(crate) emoji_edge: f32,
    /// How far a hard shadow is moved to the right and down.
    pub(crate) hard_drop: (f32, f32),
}

impl Scene {
    /// Whether letters, not a plate, have the gradient.
    pub(crate) fn has_gradient_letters(&self) -> bool {
        self.variant.fill == Fill::Gradient && self.plate.is_none()
    }
}

impl Rectangle {
    pub(crate) fn width(&self) -> f32 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f32 {
        self.bottom - self.top
    }

    fn moved(self, x: f32, y: f32) -> Self {
        Self {
            left: self.left + x,
            top: self.top + y,
            right: self.right + x,
            bottom: self.bottom + y,
        }
    }

    /// The rectangle, larger by so much on each side.
    pub(crate) fn grown(self, [left, top, right, bottom]: [f32; 4]) -> Self {
        Self {
            left: self.left - left,
            top: self.top - top,
            right: self.right + right,
            bottom: self.bottom + bottom,
        }
    }
}

/// How far a shadow reaches beyond the outline: left, top, right, bottom.
pub(crate) fn shadow_reach(shadow: Shadow) -> [f32; 4] {
    match shadow {
        Shadow::None => [0.0; 4],
        Shadow::Soft => [13.0, 6.0, 13.0, 20.0],
        Shadow::Hard => [0.0, 0.0, 9.0, 11.0],
        Shadow::Glow => [26.0; 4],
    }
}

/// Sets the text and places everything on the canvas; `moves` is the room that the animation needs.
pub(crate) fn compose(
    fonts: &Fonts,
    memory: &mut Memory,
    text: &Text,
    variant: &Variant,
    moves: Room,
) -> Result<Scene, Error> {
    let layout = layout::set(fonts, memory, text, variant.font, room(variant, moves))?;
    let plate = plate::plate(variant.shape, layout.width, layout.height);
    let (half_width, half_height) = (layout.width / 2.0, layout.height / 2.0);
    let ink =
        Rectangle { left: -half_width, top: -half_height, right: half_width, bottom: half_height };
    let body = plate.as_ref().map_or(ink, |plate| plate.body);
    // The body's middle is the canvas' middle; a shadow below counts a little.
    let drop = if variant.shadow == Shadow::None { 0.0 } else { 2.0 };
    let x = MIDDLE - (body.left + body.right) / 2.0;
    let y = MIDDLE - (body.top + body.bottom) / 2.0 - drop;
    let has_plate = plate.is_some();
    // Small letters have short shadows.
    let drop = if has_plate { 1.0 } else { (layout.size / 90.0).clamp(0.3, 1.0) };
    Ok(Scene {
        emoji_edge: if has_plate { (layout.size * 0.03).clamp(1.0, 4.0) } else { 0.0 },
        hard_drop: (7.0 * drop, 9.0 * drop),
        variant: *variant,
        size: layout.size,
        units: units_of(fonts, text, &layout, x, y),
        plate,
        plate_at: (x, y),
        ink: ink.moved(x, y),
        body: body.moved(x, y),
        outline: outline_of_size(variant, layout.size),
    })
}

/// Width and height that the text's ink may have.
fn room(variant: &Variant, moves: Room) -> [f32; 2] {
    let outline = widest(variant.outline);
    let [left, top, right, bottom] = shadow_reach(variant.shadow);
    let extra = plate::extra(variant.shape);
    let free = |before: f32, after: f32, moved: f32| {
        2.0 * ((MIDDLE - MARGIN - 2.0 - moved) / moves.scale - outline - before.max(after))
    };
    let most = if variant.shape == Shape::None { BOX } else { BOX_OF_PLATES };
    let height = most[1].min(free(top, bottom, moves.y)) - extra[1];
    [
        most[0].min(free(left, right, moves.x)) - extra[0],
        height.min(plate::most_height(variant.shape)),
    ]
}

fn widest(outline: Outline) -> f32 {
    match outline {
        Outline::None => 0.0,
        Outline::Thin => 7.0,
        Outline::Thick => 16.0,
    }
}

/// Large letters have thicker outlines; those of plates do not depend on the letters.
fn outline_of_size(variant: &Variant, size: f32) -> f32 {
    let size = if variant.shape == Shape::None { size } else { 130.0 };
    match variant.outline {
        Outline::None => 0.0,
        Outline::Thin => (size * 0.045).clamp(1.5, widest(Outline::Thin)),
        Outline::Thick => (size * 0.085).clamp(3.0, widest(Outline::Thick)),
    }
}

fn units_of(fonts: &Fonts, text: &Text, layout: &Layout, x: f32, y: f32) -> Vec<Unit> {
    let mut found = Vec::new();
    for range in units::of(text.as_str(), &layout.glyphs) {
        let glyphs = &layout.glyphs[range];
        let Some(first) = glyphs.first() else { continue };
        let mut pieces = Vec::new();
        for glyph in glyphs {
            add_pieces(
                fonts,
                glyph,
                layout.size,
                glyph.x - first.x,
                glyph.y - first.y,
                &mut pieces,
            );
        }
        let reading = glyphs.iter().map(|glyph| glyph.start).min().unwrap_or_default();
        found.push(Unit { x: first.x + x, y: first.y + y, pieces, reading });
    }
    found
}

fn add_pieces(
    fonts: &Fonts,
    glyph: &layout::Placed,
    size: f32,
    dx: f32,
    dy: f32,
    out: &mut Vec<Piece>,
) {
    let Some(face) = fonts.face(glyph.face) else { return };
    let scale = size / f32::from(face.units_per_em());
    let layers = if is_emoji(glyph.face) { fonts.emoji.layers(glyph.glyph) } else { &[] };
    if layers.is_empty() {
        let path = outline_at(face, GlyphId(glyph.glyph), scale, dx, dy);
        out.extend(path.map(|path| Piece { path, colour: None, is_edge: true }));
    }
    let edges = if layers.is_empty() { &[] } else { fonts.emoji.edges(glyph.glyph) };
    for (layer, &is_edge) in layers.iter().zip(edges) {
        let path = outline_at(face, layer.glyph, scale, dx, dy);
        out.extend(path.map(|path| Piece { path, colour: Some(layer.colour), is_edge }));
    }
}

/// The outline of a glyph, with y downwards.
pub(crate) fn outline_of(face: &ttf_parser::Face<'_>, glyph: GlyphId, scale: f32) -> Option<Path> {
    outline_at(face, glyph, scale, 0.0, 0.0)
}

fn outline_at(
    face: &ttf_parser::Face<'_>,
    glyph: GlyphId,
    scale: f32,
    x: f32,
    y: f32,
) -> Option<Path> {
    let mut pen = Pen { path: PathBuilder::new(), scale, x, y };
    face.outline_glyph(glyph, &mut pen)?;
    pen.path.finish()
}

struct Pen {
    path: PathBuilder,
    scale: f32,
    x: f32,
    y: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl ttf_parser::OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
