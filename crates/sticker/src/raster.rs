//! Static stickers: the scene becomes pixels.

use tiny_skia::{
    Color, FillRule, GradientStop, LineCap, LineJoin, LinearGradient, Paint, Path, PathBuilder,
    PathSegment, Pixmap, Point, Shader, SpreadMode, Stroke, Transform,
};
use ttf_parser::RgbaColor;

use crate::blur::Soft;
use crate::plate::Tone;
use crate::scene::{MIDDLE, Piece, Rectangle, Scene, shadow_reach};
use crate::variant::{Fill, Shadow};
use crate::{Colour, Error, SIDE};

/// How far soft shadows are moved down.
const SOFT_DROP: f32 = 7.0;
/// The shorter side is at least so long.
const SHORTEST: f32 = 96.0;
/// Transparent pixels that are kept around everything.
const AROUND: f32 = 6.0;

/// The part of the canvas that becomes the picture: one side is the canvas' side, the other fits the ink.
struct Window {
    x: f32,
    y: f32,
    width: u32,
    height: u32,
}

/// Draws a scene.
pub(crate) fn draw(scene: &Scene) -> Result<Pixmap, Error> {
    let window = window(scene);
    let failed = Error::Defect("a picture could not be allocated");
    let mut picture = Pixmap::new(window.width, window.height).ok_or(failed)?;
    let moved = Transform::from_translate(-window.x, -window.y);
    let silhouette = silhouette(scene);
    if let Some(silhouette) = &silhouette {
        let around = outline(silhouette, scene.outline);
        let paths: Vec<&Path> = around.iter().chain([silhouette]).collect();
        shadow(scene, &paths, &window, &mut picture);
        if let Some(around) = &around {
            let paint = flat(scene.variant.palette.outline);
            picture.fill_path(around, &paint, FillRule::Winding, moved, None);
        }
    }
    plate(scene, &mut picture, moved);
    letters(scene, &mut picture, moved);
    Ok(picture)
}

fn window(scene: &Scene) -> Window {
    let side = SIDE as f32;
    let reach = shadow_reach(scene.variant.shadow).map(|reach| reach + scene.outline + AROUND);
    let all = scene.body.grown(reach);
    let length = |from: f32, to: f32| ((to - from).ceil().clamp(SHORTEST, side)) as u32;
    let body = scene.body;
    if body.width() / 440.0 >= body.height() / 420.0 {
        let height = length(all.top, all.bottom);
        let y = ((all.top + all.bottom - height as f32) / 2.0).round();
        Window { x: 0.0, y: y.clamp(0.0, side - height as f32), width: SIDE, height }
    } else {
        let width = length(all.left, all.right);
        let x = ((all.left + all.right - width as f32) / 2.0).round();
        Window { x: x.clamp(0.0, side - width as f32), y: 0.0, width, height: SIDE }
    }
}

/// The paths that outline and shadow follow.
fn silhouette(scene: &Scene) -> Option<Path> {
    let mut all = PathBuilder::new();
    if let Some(plate) = &scene.plate {
        for (path, _) in &plate.parts {
            add(&mut all, path, scene.plate_at);
        }
    } else {
        for unit in &scene.units {
            for piece in unit.pieces.iter().filter(|piece| piece.is_edge) {
                add(&mut all, &piece.path, (unit.x, unit.y));
            }
        }
    }
    all.finish()
}

fn outline(path: &Path, reach: f32) -> Option<Path> {
    let stroke = Stroke {
        width: 2.0 * reach,
        line_join: LineJoin::Round,
        line_cap: LineCap::Round,
        ..Stroke::default()
    };
    (reach > 0.0).then(|| path.stroke(&stroke, 1.0)).flatten()
}

fn shadow(scene: &Scene, paths: &[&Path], window: &Window, picture: &mut Pixmap) {
    let canvas = (window.width, window.height);
    let colour = scene.variant.palette.shadow;
    let soft = |drop: f32, radius| Soft::of(paths, canvas, (-window.x, drop - window.y), radius);
    match scene.variant.shadow {
        Shadow::None => {}
        Shadow::Soft => {
            if let Some(soft) = soft(SOFT_DROP, 1) {
                soft.paint(picture, colour, 120);
            }
        }
        Shadow::Hard => {
            let (x, y) = scene.hard_drop;
            let moved = Transform::from_translate(x - window.x, y - window.y);
            for path in paths {
                picture.fill_path(path, &flat(colour), FillRule::Winding, moved, None);
            }
        }
        Shadow::Glow => {
            if let (Some(near), Some(far)) = (soft(0.0, 1), soft(0.0, 2)) {
                near.or(&far, 256).paint(picture, colour, 255);
            }
        }
    }
}

fn plate(scene: &Scene, picture: &mut Pixmap, moved: Transform) {
    let Some(plate) = &scene.plate else { return };
    let at = moved.pre_translate(scene.plate_at.0, scene.plate_at.1);
    for (path, tone) in &plate.parts {
        let paint = match tone_of(scene, *tone) {
            Some(colour) => flat(colour),
            None => {
                let bounds = path.bounds();
                let box_of = Rectangle {
                    left: bounds.left(),
                    top: bounds.top(),
                    right: bounds.right(),
                    bottom: bounds.bottom(),
                };
                gradient(scene.variant.palette.shape, scene.variant.palette.accent, box_of)
            }
        };
        picture.fill_path(path, &paint, FillRule::Winding, at, None);
    }
}

/// The colour of a part of a plate; `None`: the gradient.
pub(crate) fn tone_of(scene: &Scene, tone: Tone) -> Option<Colour> {
    let palette = scene.variant.palette;
    let is_gradient = scene.variant.fill == Fill::Gradient;
    match tone {
        Tone::Main if is_gradient => None,
        Tone::Main => Some(palette.shape),
        Tone::Right(light) if is_gradient => Some(palette.accent.shaded(light)),
        Tone::Left(light) | Tone::Right(light) => Some(palette.shape.shaded(light)),
    }
}

fn letters(scene: &Scene, picture: &mut Pixmap, moved: Transform) {
    emoji_edges(scene, picture, moved);
    let mut plain = PathBuilder::new();
    for unit in &scene.units {
        for piece in &unit.pieces {
            match piece.colour {
                None => add(&mut plain, &piece.path, (unit.x, unit.y)),
                Some(colour) => {
                    let at = moved.pre_translate(unit.x, unit.y);
                    picture.fill_path(&piece.path, &of_font(colour), FillRule::Winding, at, None);
                }
            }
        }
    }
    if let Some(path) = plain.finish() {
        let palette = scene.variant.palette;
        let paint = if scene.has_gradient_letters() {
            gradient(palette.ink, palette.accent, scene.ink)
        } else {
            flat(palette.ink)
        };
        picture.fill_path(&path, &paint, FillRule::Winding, moved, None);
    }
}

fn emoji_edges(scene: &Scene, picture: &mut Pixmap, moved: Transform) {
    if scene.emoji_edge <= 0.0 {
        return;
    }
    let mut edges = PathBuilder::new();
    for unit in &scene.units {
        let is_edge = |piece: &&Piece| piece.colour.is_some() && piece.is_edge;
        unit.pieces
            .iter()
            .filter(is_edge)
            .for_each(|piece| add(&mut edges, &piece.path, (unit.x, unit.y)));
    }
    if let Some(around) = edges.finish().and_then(|edges| outline(&edges, scene.emoji_edge)) {
        let paint = flat(scene.variant.palette.ink);
        picture.fill_path(&around, &paint, FillRule::Winding, moved, None);
    }
}

fn flat(colour: Colour) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(colour.red, colour.green, colour.blue, 255);
    paint
}

fn of_font(colour: RgbaColor) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(colour.red, colour.green, colour.blue, colour.alpha);
    paint
}

/// From the upper left corner to the lower right.
fn gradient(from: Colour, to: Colour, over: Rectangle) -> Paint<'static> {
    let stop =
        |at, of: Colour| GradientStop::new(at, Color::from_rgba8(of.red, of.green, of.blue, 255));
    let ((x1, y1), (x2, y2)) = gradient_line(over);
    let shader = LinearGradient::new(
        Point::from_xy(x1, y1),
        Point::from_xy(x2, y2),
        vec![stop(0.0, from), stop(1.0, to)],
        SpreadMode::Pad,
        Transform::identity(),
    );
    let mut paint = flat(from);
    paint.shader = shader.unwrap_or(Shader::SolidColor(Color::BLACK));
    paint
}

/// Where a gradient begins and ends.
pub(crate) fn gradient_line(over: Rectangle) -> ((f32, f32), (f32, f32)) {
    let middle = (over.left + over.right) / 2.0;
    // Rather steep, so that every letter of a long line shows both colours.
    let half = (over.width() / 2.0).min(over.height() * 0.6);
    ((middle - half, over.top), (middle + half, over.bottom))
}

fn add(all: &mut PathBuilder, path: &Path, (x, y): (f32, f32)) {
    for segment in path.segments() {
        match segment {
            PathSegment::MoveTo(to) => all.move_to(to.x + x, to.y + y),
            PathSegment::LineTo(to) => all.line_to(to.x + x, to.y + y),
            PathSegment::QuadTo(by, to) => all.quad_to(by.x + x, by.y + y, to.x + x, to.y + y),
            PathSegment::CubicTo(a, b, to) => {
                all.cubic_to(a.x + x, a.y + y, b.x + x, b.y + y, to.x + x, to.y + y);
            }
            PathSegment::Close => all.close(),
        }
    }
}

/// Whether everything with its outline and shadow stays on the canvas.
pub(crate) fn is_on_canvas(scene: &Scene) -> bool {
    let reach = shadow_reach(scene.variant.shadow).map(|reach| reach + scene.outline);
    let all = scene.body.grown(reach);
    [all.left, all.top, 2.0 * MIDDLE - all.right, 2.0 * MIDDLE - all.bottom]
        .iter()
        .all(|free| *free >= 0.0)
}
