//! What a text can stand on: a speech bubble, or a ribbon with folded ends.

use tiny_skia::{Path, PathBuilder, Rect};

use crate::scene::Rectangle;
use crate::variant::Shape;

/// Height of a bubble's tail.
const TAIL: f32 = 42.0;
/// How far the ends of a ribbon stick out, how much lower they are, and how deep they are cut and folded.
const END: f32 = 42.0;
const DROP: f32 = 24.0;
const NOTCH: f32 = 22.0;
const FOLD: f32 = 28.0;

/// How a part of a plate is filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Tone {
    /// As the variant says.
    Main,
    /// With the colour of the shape, darkened.
    Left(f32),
    /// With the colour at the other end of the gradient, darkened.
    Right(f32),
}

/// A plate; its parts from below.
#[derive(Debug, Clone)]
pub(crate) struct Plate {
    pub(crate) parts: Vec<(Path, Tone)>,
    pub(crate) body: Rectangle,
}

/// The most height that a plate's text may have: a ribbon is no wall.
pub(crate) fn most_height(shape: Shape) -> f32 {
    if shape == Shape::Ribbon { 190.0 } else { f32::MAX }
}

/// How much larger than its text a plate is: left and right together, top and bottom together.
pub(crate) fn extra(shape: Shape) -> [f32; 2] {
    match shape {
        Shape::None => [0.0, 0.0],
        Shape::Bubble => [2.0 * 38.0, 2.0 * 34.0 + TAIL],
        Shape::Ribbon => [2.0 * (24.0 + END), 2.0 * 26.0 + DROP],
    }
}

/// The plate for a text whose ink has this width and height; the ink's middle is at the origin.
pub(crate) fn plate(shape: Shape, width: f32, height: f32) -> Option<Plate> {
    let around = |across: f32, least_width: f32, along: f32, least_height: f32| {
        let half_width = (width / 2.0 + across).max(least_width / 2.0);
        let half_height = (height / 2.0 + along).max(least_height / 2.0);
        Rectangle { left: -half_width, top: -half_height, right: half_width, bottom: half_height }
    };
    match shape {
        Shape::None => None,
        Shape::Bubble => bubble(around(38.0, 200.0, 34.0, 130.0)),
        Shape::Ribbon => ribbon(around(24.0, 200.0, 26.0, 110.0)),
    }
}

fn bubble(of: Rectangle) -> Option<Plate> {
    let radius = (of.height() / 2.0).min(70.0).min((of.width() - 90.0) / 2.0);
    // The handle of a cubic that is nearly a quarter of a circle.
    let handle = radius * 0.448;
    let Rectangle { left, top, right, bottom } = of;
    let tail = left + radius.max(of.width() * 0.16);
    let mut path = PathBuilder::new();
    path.move_to(left + radius, top);
    path.line_to(right - radius, top);
    path.cubic_to(right - handle, top, right, top + handle, right, top + radius);
    path.line_to(right, bottom - radius);
    path.cubic_to(right, bottom - handle, right - handle, bottom, right - radius, bottom);
    path.line_to(tail + 56.0, bottom);
    path.quad_to(tail + 40.0, bottom + TAIL * 0.8, tail - 14.0, bottom + TAIL);
    path.quad_to(tail + 10.0, bottom + TAIL * 0.5, tail, bottom);
    path.line_to(left + radius, bottom);
    path.cubic_to(left + handle, bottom, left, bottom - handle, left, bottom - radius);
    path.line_to(left, top + radius);
    path.cubic_to(left, top + handle, left + handle, top, left + radius, top);
    path.close();
    let body = Rectangle { bottom: bottom + TAIL, ..of };
    Some(Plate { parts: vec![(path.finish()?, Tone::Main)], body })
}

fn ribbon(of: Rectangle) -> Option<Plate> {
    let Rectangle { left, top, right, bottom } = of;
    let end = |side: f32, inwards: f32| {
        let (outer, inner) = (side - inwards * END, side + inwards * FOLD);
        polygon(&[
            (outer, top + DROP),
            (inner, top + DROP),
            (inner, bottom + DROP),
            (outer, bottom + DROP),
            (outer + inwards * NOTCH, (top + bottom) / 2.0 + DROP),
        ])
    };
    let fold = |side: f32, inwards: f32| {
        let inner = side + inwards * FOLD;
        polygon(&[(side, bottom), (inner, bottom), (inner, bottom + DROP)])
    };
    let band = PathBuilder::from_rect(Rect::from_ltrb(left, top, right, bottom)?);
    let parts = vec![
        (end(left, 1.0)?, Tone::Left(0.8)),
        (end(right, -1.0)?, Tone::Right(0.8)),
        (fold(left, 1.0)?, Tone::Left(0.5)),
        (fold(right, -1.0)?, Tone::Right(0.5)),
        (band, Tone::Main),
    ];
    let body = Rectangle { left: left - END, top, right: right + END, bottom: bottom + DROP };
    Some(Plate { parts, body })
}

fn polygon(points: &[(f32, f32)]) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (index, &(x, y)) in points.iter().enumerate() {
        if index == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
    path.close();
    path.finish()
}
