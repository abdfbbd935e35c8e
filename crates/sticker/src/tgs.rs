//! Animated stickers: the scene becomes Lottie, compressed by gzip.
//!
//! A layer of letters holds, from above: a group for each emoji, a group with all other letters and their fill, and the
//! strokes of outline and shadow. Strokes at the foot of a layer follow all paths above them, so that all outlines lie below
//! all fills and every path is written once. Each unit is a group with a transform of its own.
//!
//! Typed text needs layers: only those appear at once, and so each part has one with its fills above all others and one with
//! its strokes below them.

use libdeflater::{CompressionLvl, Compressor};

use crate::lottie::Writer;
use crate::motion::{self, RATE, Room, Single, Whole};
use crate::raster::{gradient_line, tone_of};
use crate::scene::{MIDDLE, Piece, Rectangle, Scene, Unit, shadow_reach};
use crate::studio::Format;
use crate::variant::{Animation, Fill, Shadow, Variant};
use crate::{Colour, Error, MAX_TGS_BYTES, SIDE};

/// Parts that typed text appears in at most.
const MOST_TYPED: usize = 40;
/// Segments of paths that one stroke follows at most. Players that use FreeType's stroker (rlottie) count the points of a
/// stroke's edges in 16 bits; 2,400 segments were drawn without harm.
const MOST_SEGMENTS: usize = 2000;

/// How much of a scene is written.
#[derive(Debug, Clone, Copy)]
struct Detail {
    /// Digits after the point.
    digits: u32,
    /// Fills of emoji whose longer side is shorter than this are left out.
    least: f32,
    has_shadow: bool,
    /// Effort of libdeflate.
    level: i32,
}

/// Tried in this order until one is small enough.
const DETAILS: [Detail; 5] = [
    Detail { digits: 1, least: 0.7, has_shadow: true, level: 6 },
    Detail { digits: 1, least: 1.0, has_shadow: true, level: 12 },
    Detail { digits: 1, least: 2.5, has_shadow: false, level: 12 },
    Detail { digits: 0, least: 4.0, has_shadow: false, level: 12 },
    Detail { digits: 0, least: 9.0, has_shadow: false, level: 12 },
];

/// The room that a variant's animation needs.
pub(crate) fn room(variant: &Variant) -> Room {
    motion::room(variant)
}

/// The bytes of an animated sticker.
pub(crate) fn encode(scene: &Scene) -> Result<Vec<u8>, Error> {
    if !stays_on_canvas(scene) {
        return Err(Error::Defect("it would leave the canvas"));
    }
    let (mut bytes, mut step) = (0, 0);
    while let Some(&detail) = DETAILS.get(step) {
        let file = gzip(&Composition { scene, detail }.json(), detail.level)?;
        if file.len() <= MAX_TGS_BYTES {
            return Ok(file);
        }
        bytes = file.len();
        // Three times too much: the next steps save less than that.
        step = if bytes > 3 * MAX_TGS_BYTES { (step + 1).max(DETAILS.len() - 2) } else { step + 1 };
    }
    Err(Error::TooLarge { format: Format::Tgs, bytes, most: MAX_TGS_BYTES })
}

fn gzip(text: &str, level: i32) -> Result<Vec<u8>, Error> {
    let failed = Error::Defect("it could not be compressed");
    let level = CompressionLvl::new(level).map_err(|_| failed.clone())?;
    let mut compressor = Compressor::new(level);
    let mut out = vec![0; compressor.gzip_compress_bound(text.len())];
    let length = compressor.gzip_compress(text.as_bytes(), &mut out).map_err(|_| failed)?;
    out.truncate(length);
    Ok(out)
}

fn stays_on_canvas(scene: &Scene) -> bool {
    let room = motion::room(&scene.variant);
    let all =
        scene.body.grown(shadow_reach(scene.variant.shadow).map(|reach| reach + scene.outline));
    let half_width = (MIDDLE - all.left).max(all.right - MIDDLE) * room.scale + room.x;
    let half_height = (MIDDLE - all.top).max(all.bottom - MIDDLE) * room.scale + room.y;
    half_width <= MIDDLE && half_height <= MIDDLE
}

/// What a layer of letters consists of.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Fills,
    Strokes,
    Both,
    HardShadow,
}

struct Composition<'a> {
    scene: &'a Scene,
    detail: Detail,
}

impl Composition<'_> {
    fn json(&self) -> String {
        let mut writer = Writer::new(self.detail.digits);
        writer.raw(r#"{"tgs":1,"v":"5.5.2","fr":"#);
        writer.whole(RATE);
        writer.raw(r#","ip":0,"op":"#);
        writer.whole(self.frames());
        writer.raw(r#","w":"#);
        writer.whole(SIDE);
        writer.raw(r#","h":"#);
        writer.whole(SIDE);
        writer.raw(r#","nm":"","ddd":0,"assets":[],"layers":["#);
        self.layers(&mut writer);
        writer.raw("]}");
        writer.out
    }

    fn frames(&self) -> u32 {
        motion::length(self.scene.variant.animation)
    }

    fn shadow(&self) -> Shadow {
        if self.detail.has_shadow { self.scene.variant.shadow } else { Shadow::None }
    }

    fn layers(&self, writer: &mut Writer) {
        let units = self.in_reading_order();
        let is_typed = self.scene.variant.animation == Animation::Type;
        let chunks = if is_typed { typed_parts(&units) } else { drawable_parts(&units) };
        let has_plate = self.scene.plate.is_some();
        let hard = !has_plate && self.shadow() == Shadow::Hard;
        let parts: &[Part] = match (has_plate, chunks.len()) {
            (true, _) => &[Part::Fills],
            (false, 0 | 1) => &[Part::Both],
            (false, _) => &[Part::Fills, Part::Strokes],
        };
        for part in parts.iter().chain(if hard { &[Part::HardShadow][..] } else { &[] }) {
            for (index, chunk) in chunks.iter().enumerate() {
                let typed = if is_typed { motion::typed(index, chunks.len()) } else { Vec::new() };
                self.letters(writer, chunk, *part, typed);
            }
        }
        if has_plate {
            self.plate(writer);
        }
    }

    /// Units with their places in the order of reading.
    fn in_reading_order(&self) -> Vec<(usize, &Unit)> {
        let mut units: Vec<&Unit> = self.scene.units.iter().collect();
        units.sort_by_key(|unit| unit.reading);
        units.into_iter().enumerate().collect()
    }

    fn letters(
        &self,
        writer: &mut Writer,
        units: &[(usize, &Unit)],
        part: Part,
        typed: Vec<motion::Key<1>>,
    ) {
        // What stands on a plate moves with it.
        let mut whole = motion::whole(self.scene.variant.animation);
        if !typed.is_empty() {
            whole.opacity = typed;
        }
        let moved = if part == Part::HardShadow { self.scene.hard_drop } else { (0.0, 0.0) };
        self.begin_layer(writer, &whole, moved);
        match part {
            Part::Fills | Part::Both => self.fills(writer, units),
            Part::Strokes | Part::HardShadow => {
                for (index, unit) in units {
                    self.unit(writer, *index, unit, |piece| piece.is_edge, false);
                }
            }
        }
        match part {
            Part::Fills => {}
            Part::Strokes | Part::Both => self.strokes(writer),
            Part::HardShadow => {
                let colour = self.scene.variant.palette.shadow;
                writer.fill(colour, 255);
                writer.stroke(colour, 2.0 * self.scene.outline.max(0.5), 100);
            }
        }
        self.end_layer(writer);
    }

    fn begin_layer(&self, writer: &mut Writer, whole: &Whole, (x, y): (f32, f32)) {
        writer.comma();
        writer.raw(r#"{"ty":4,"ddd":0,"sr":1,"ks":{"o":"#);
        writer.track(&whole.opacity, [1.0], |[value]| [value * 100.0]);
        writer.raw(r#","r":"#);
        writer.track(&whole.turn, [0.0], |value| value);
        writer.raw(r#","p":{"a":0,"k":"#);
        writer.pair(MIDDLE + x, MIDDLE + y);
        writer.raw(r#"},"a":{"a":0,"k":"#);
        writer.pair(MIDDLE, MIDDLE);
        writer.raw(r#"},"s":"#);
        writer.track(&whole.scale, [1.0; 2], |value| value.map(|factor| factor * 100.0));
        writer.raw(r#"},"ao":0,"shapes":["#);
    }

    fn end_layer(&self, writer: &mut Writer) {
        writer.raw(r#"],"ip":0,"op":"#);
        writer.whole(self.frames());
        writer.raw(r#","st":0,"bm":0}"#);
    }

    /// Emoji, each with its colours, then all letters with theirs.
    fn fills(&self, writer: &mut Writer, units: &[(usize, &Unit)]) {
        let is_seen = |piece: &Piece| {
            let bounds = piece.path.bounds();
            bounds.width().max(bounds.height()) >= self.detail.least
        };
        let is_coloured = |unit: &Unit| unit.pieces.iter().any(|piece| piece.colour.is_some());
        for (index, unit) in units.iter().filter(|(_, unit)| is_coloured(unit)) {
            self.unit(writer, *index, unit, is_seen, true);
        }
        if units.iter().all(|(_, unit)| is_coloured(unit)) {
            return;
        }
        writer.comma();
        writer.raw(r#"{"ty":"gr","it":["#);
        for (index, unit) in units.iter().filter(|(_, unit)| !is_coloured(unit)) {
            self.unit(writer, *index, unit, |_| true, false);
        }
        let palette = self.scene.variant.palette;
        if self.scene.has_gradient_letters() {
            writer.gradient(palette.ink, palette.accent, gradient_line(self.scene.ink));
        } else {
            writer.fill(palette.ink, 255);
        }
        end_group(writer);
    }

    /// A group with the paths of a unit, with or without their own colours, and its transform.
    fn unit(
        &self,
        writer: &mut Writer,
        index: usize,
        unit: &Unit,
        takes: impl Fn(&Piece) -> bool,
        with_colours: bool,
    ) {
        writer.comma();
        writer.raw(r#"{"ty":"gr","it":["#);
        // Lottie has the uppermost first.
        for piece in unit.pieces.iter().rev().filter(|piece| takes(piece)) {
            if with_colours {
                let (colour, opacity) = match piece.colour {
                    Some(of) => (Colour { red: of.red, green: of.green, blue: of.blue }, of.alpha),
                    None => (self.scene.variant.palette.ink, 255),
                };
                writer.comma();
                writer.raw(r#"{"ty":"gr","it":["#);
                writer.path(&piece.path);
                writer.fill(colour, opacity);
                end_group(writer);
            } else {
                writer.path(&piece.path);
            }
        }
        if with_colours && self.scene.emoji_edge > 0.0 {
            writer.stroke(self.scene.variant.palette.ink, 2.0 * self.scene.emoji_edge, 100);
        }
        let count = self.scene.units.len();
        transform(
            writer,
            unit,
            &motion::single(&self.scene.variant, self.scene.size, index, count),
        );
        writer.raw("]}");
    }

    /// Outline and shadow around everything above.
    fn strokes(&self, writer: &mut Writer) {
        let (palette, outline) = (self.scene.variant.palette, self.scene.outline);
        if outline > 0.0 {
            writer.stroke(palette.outline, 2.0 * outline, 100);
        }
        let rings: &[(f32, u32)] = match self.shadow() {
            Shadow::Soft => &[(3.0, 13), (6.0, 9), (9.0, 6)],
            Shadow::Glow => &[(4.0, 30), (9.0, 18), (14.0, 12), (19.0, 8), (24.0, 5)],
            Shadow::None | Shadow::Hard => &[],
        };
        for &(reach, opacity) in rings {
            writer.stroke(palette.shadow, 2.0 * (outline + reach), opacity);
        }
    }

    fn plate(&self, writer: &mut Writer) {
        let Some(plate) = &self.scene.plate else { return };
        let whole = motion::whole(self.scene.variant.animation);
        self.begin_layer(writer, &whole, (0.0, 0.0));
        self.plate_parts(writer, plate, None);
        self.strokes(writer);
        self.end_layer(writer);
        if self.shadow() == Shadow::Hard {
            self.begin_layer(writer, &whole, self.scene.hard_drop);
            let colour = self.scene.variant.palette.shadow;
            self.plate_parts(writer, plate, Some(colour));
            writer.stroke(colour, 2.0 * self.scene.outline.max(0.5), 100);
            self.end_layer(writer);
        }
    }

    fn plate_parts(&self, writer: &mut Writer, plate: &crate::plate::Plate, only: Option<Colour>) {
        for (path, tone) in plate.parts.iter().rev() {
            writer.comma();
            writer.raw(r#"{"ty":"gr","it":["#);
            writer.path(path);
            match only.or_else(|| tone_of(self.scene, *tone)) {
                Some(colour) => writer.fill(colour, 255),
                None => {
                    let palette = self.scene.variant.palette;
                    let bounds = path.bounds();
                    let over = Rectangle {
                        left: bounds.left(),
                        top: bounds.top(),
                        right: bounds.right(),
                        bottom: bounds.bottom(),
                    };
                    debug_assert_eq!(self.scene.variant.fill, Fill::Gradient);
                    writer.gradient(palette.shape, palette.accent, gradient_line(over));
                }
            }
            writer.raw(r#",{"ty":"tr","p":{"a":0,"k":"#);
            writer.pair(self.scene.plate_at.0, self.scene.plate_at.1);
            writer.raw(concat!(
                r#"},"a":{"a":0,"k":[0,0]},"s":{"a":0,"k":[100,100]},"#,
                r#""r":{"a":0,"k":0},"o":{"a":0,"k":100}}]}"#
            ));
        }
    }
}

/// A unit with its place in the order of reading.
type Numbered<'a> = (usize, &'a Unit);

/// Units that appear together when text is typed.
fn typed_parts<'a, 's>(units: &'a [Numbered<'s>]) -> Vec<&'a [Numbered<'s>]> {
    units.chunks(units.len().div_ceil(MOST_TYPED).max(1)).collect()
}

/// Units in groups that are not too much for one stroke.
fn drawable_parts<'a, 's>(units: &'a [Numbered<'s>]) -> Vec<&'a [Numbered<'s>]> {
    let segments = |unit: &Unit| unit.pieces.iter().map(|piece| piece.path.len()).sum::<usize>();
    let (mut parts, mut start, mut sum) = (Vec::new(), 0, 0);
    for (index, (_, unit)) in units.iter().enumerate() {
        let own = segments(unit);
        if sum + own > MOST_SEGMENTS && index > start {
            parts.push(&units[start..index]);
            (start, sum) = (index, 0);
        }
        sum += own;
    }
    parts.push(&units[start..]);
    parts
}

/// The transform of a group that does not move.
fn end_group(writer: &mut Writer) {
    writer.raw(concat!(
        r#",{"ty":"tr","p":{"a":0,"k":[0,0]},"a":{"a":0,"k":[0,0]},"s":{"a":0,"k":[100,100]},"#,
        r#""r":{"a":0,"k":0},"o":{"a":0,"k":100}}]}"#
    ));
}

/// Where a unit is, and how it moves. It grows from the middle of its foot.
fn transform(writer: &mut Writer, unit: &Unit, moves: &Single) {
    let (foot_x, foot_y) = foot(unit);
    writer.raw(r#",{"ty":"tr","p":"#);
    writer.track(&moves.offset, [0.0; 2], |[x, y]| [unit.x + foot_x + x, unit.y + foot_y + y]);
    writer.raw(r#","a":{"a":0,"k":"#);
    writer.pair(foot_x, foot_y);
    writer.raw(r#"},"s":"#);
    writer.track(&moves.scale, [1.0; 2], |value| value.map(|factor| factor * 100.0));
    writer.raw(r#","r":{"a":0,"k":0},"o":{"a":0,"k":100}}"#);
}

fn foot(unit: &Unit) -> (f32, f32) {
    let bounds = unit.pieces.iter().map(|piece| piece.path.bounds());
    let around = bounds.map(|of| (of.left(), of.right(), of.bottom()));
    let all = around.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1), a.2.max(b.2)));
    all.map_or((0.0, 0.0), |(left, right, bottom)| (((left + right) / 2.0).round(), bottom.round()))
}
