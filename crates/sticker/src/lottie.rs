//! Writes Lottie, the JSON of animated stickers: numbers, paths, fills, strokes and keyframes, as short as they can be.
//!
//! Only what Telegram allows can be written: shape layers with groups, paths, fills, strokes and flat transforms.

use std::fmt::Write;

use tiny_skia::{Path, PathSegment, Point};

use crate::Colour;
use crate::motion::{Ease, Key};

/// A growing document.
pub(crate) struct Writer {
    pub(crate) out: String,
    /// Digits after the point in coordinates.
    digits: u32,
    contour: Vec<Vertex>,
    /// Where the contour before began.
    last_start: Point,
}

/// A point of a contour with its two handles, all absolute.
struct Vertex {
    before: Point,
    at: Point,
    after: Point,
}

impl Writer {
    pub(crate) fn new(digits: u32) -> Self {
        Self {
            out: String::with_capacity(16 << 10),
            digits,
            contour: Vec::new(),
            last_start: Point::zero(),
        }
    }

    pub(crate) fn raw(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A comma, unless a list or an object has just begun.
    pub(crate) fn comma(&mut self) {
        if !self.out.ends_with(['[', '{', ':']) {
            self.out.push(',');
        }
    }

    /// A whole number.
    pub(crate) fn whole(&mut self, value: u32) {
        // Writing into a string cannot fail.
        let _ = write!(self.out, "{value}");
    }

    fn number(&mut self, value: f32) {
        self.rounded(value, self.digits);
    }

    /// A number with at most so many digits after the point, without needless zeros.
    pub(crate) fn rounded(&mut self, value: f32, digits: u32) {
        let scale = 10_i64.pow(digits);
        let mut scaled = (value * scale as f32).round() as i64;
        if scaled < 0 {
            self.out.push('-');
            scaled = -scaled;
        }
        push_digits(&mut self.out, scaled / scale);
        let (mut rest, mut place) = (scaled % scale, scale / 10);
        if rest > 0 {
            self.out.push('.');
        }
        while rest > 0 {
            self.out.push((b'0' + (rest / place) as u8) as char);
            (rest, place) = (rest % place, (place / 10).max(1));
        }
    }

    /// A pair of coordinates.
    pub(crate) fn pair(&mut self, x: f32, y: f32) {
        self.out.push('[');
        self.number(x);
        self.out.push(',');
        self.number(y);
        self.out.push(']');
    }

    /// One shape for every contour of a path.
    pub(crate) fn path(&mut self, path: &Path) {
        for segment in path.segments() {
            let last = self.contour.last().map_or(Point::zero(), |vertex| vertex.at);
            match segment {
                PathSegment::MoveTo(to) => {
                    self.end_contour();
                    self.contour.push(Vertex { before: to, at: to, after: to });
                }
                PathSegment::LineTo(to) => {
                    self.contour.push(Vertex { before: to, at: to, after: to })
                }
                PathSegment::QuadTo(by, to) => {
                    let third = |from: Point| {
                        Point::from_xy(
                            from.x + (by.x - from.x) * 2.0 / 3.0,
                            from.y + (by.y - from.y) * 2.0 / 3.0,
                        )
                    };
                    self.curve(third(last), third(to), to);
                }
                PathSegment::CubicTo(a, b, to) => self.curve(a, b, to),
                PathSegment::Close => {}
            }
        }
        self.end_contour();
    }

    fn curve(&mut self, after: Point, before: Point, to: Point) {
        if let Some(last) = self.contour.last_mut() {
            last.after = after;
        }
        self.contour.push(Vertex { before, at: to, after: to });
    }

    fn end_contour(&mut self) {
        let mut contour = std::mem::take(&mut self.contour);
        if let [first, .., last] = contour.as_mut_slice()
            && (first.at - last.at).length() < 0.02
        {
            first.before = last.before;
            contour.pop();
        }
        if contour.len() > 1 {
            // Of two contours that begin at the same point, rlottie takes the second for a part of the first, and then draws
            // no stroke at all. A closed contour may begin anywhere.
            if (contour[0].at - self.last_start).length() < 0.2 {
                contour.rotate_left(1);
            }
            self.last_start = contour[0].at;
            self.comma();
            self.raw(r#"{"ty":"sh","ks":{"a":0,"k":{"c":true,"v":["#);
            self.vertices(&contour, |vertex| vertex.at);
            self.raw(r#"],"i":["#);
            self.vertices(&contour, |vertex| vertex.before - vertex.at);
            self.raw(r#"],"o":["#);
            self.vertices(&contour, |vertex| vertex.after - vertex.at);
            self.raw("]}}}");
        }
        contour.clear();
        self.contour = contour;
    }

    fn vertices(&mut self, contour: &[Vertex], of: impl Fn(&Vertex) -> Point) {
        for vertex in contour {
            self.comma();
            let point = of(vertex);
            self.pair(point.x, point.y);
        }
    }

    /// A fill with one colour; opacity from 0 to 255.
    pub(crate) fn fill(&mut self, colour: Colour, opacity: u8) {
        self.comma();
        self.raw(r#"{"ty":"fl","c":{"a":0,"k":["#);
        self.colour(colour);
        self.raw(r#",1]},"o":{"a":0,"k":"#);
        self.rounded(f32::from(opacity) / 2.55, 0);
        self.raw(r#"},"r":1}"#);
    }

    /// A fill with a gradient between two points.
    pub(crate) fn gradient(&mut self, from: Colour, to: Colour, line: ((f32, f32), (f32, f32))) {
        self.comma();
        self.raw(r#"{"ty":"gf","o":{"a":0,"k":100},"r":1,"t":1,"s":{"a":0,"k":"#);
        self.pair(line.0.0, line.0.1);
        self.raw(r#"},"e":{"a":0,"k":"#);
        self.pair(line.1.0, line.1.1);
        self.raw(r#"},"g":{"p":2,"k":{"a":0,"k":[0,"#);
        self.colour(from);
        self.raw(",1,");
        self.colour(to);
        self.raw("]}}}");
    }

    /// A stroke with round corners; opacity in per cent.
    pub(crate) fn stroke(&mut self, colour: Colour, width: f32, opacity: u32) {
        self.comma();
        self.raw(r#"{"ty":"st","c":{"a":0,"k":["#);
        self.colour(colour);
        self.raw(r#",1]},"o":{"a":0,"k":"#);
        self.whole(opacity);
        self.raw(r#"},"w":{"a":0,"k":"#);
        self.rounded(width, 1);
        self.raw(r#"},"lc":2,"lj":2}"#);
    }

    fn colour(&mut self, colour: Colour) {
        for (index, part) in [colour.red, colour.green, colour.blue].into_iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.rounded(f32::from(part) / 255.0, 3);
        }
    }

    /// A property of numbers: one value, or keyframes. `scale` and `shift` turn values into Lottie's.
    pub(crate) fn track<const N: usize>(
        &mut self,
        keys: &[Key<N>],
        rest: [f32; N],
        map: impl Fn([f32; N]) -> [f32; N],
    ) {
        match keys {
            [] => {
                self.raw(r#"{"a":0,"k":"#);
                self.values(&map(rest));
                self.raw("}");
            }
            keys => {
                self.raw(r#"{"a":1,"k":["#);
                for (index, key) in keys.iter().enumerate() {
                    self.comma();
                    self.raw(r#"{"t":"#);
                    self.rounded(key.frame, 1);
                    self.raw(r#","s":"#);
                    self.list(&map(key.value));
                    if index + 1 < keys.len() {
                        self.raw(ease(key.ease));
                    }
                    self.raw("}");
                }
                self.raw("]}");
            }
        }
    }

    fn values(&mut self, values: &[f32]) {
        match values {
            [one] => self.rounded(*one, 1),
            many => self.list(many),
        }
    }

    fn list(&mut self, values: &[f32]) {
        self.out.push('[');
        for value in values {
            self.comma();
            self.rounded(*value, 1);
        }
        self.out.push(']');
    }
}

fn push_digits(out: &mut String, value: i64) {
    if value >= 10 {
        push_digits(out, value / 10);
    }
    out.push((b'0' + (value % 10) as u8) as char);
}

/// Handles of the curve from a keyframe to the next.
fn ease(ease: Ease) -> &'static str {
    match ease {
        Ease::Smooth => r#","i":{"x":0.6,"y":1},"o":{"x":0.4,"y":0}"#,
        Ease::Rising => r#","i":{"x":0.67,"y":1},"o":{"x":0.33,"y":0.67}"#,
        Ease::Falling => r#","i":{"x":0.67,"y":0.33},"o":{"x":0.33,"y":0}"#,
        Ease::Jump => r#","h":1"#,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_contour_begins_where_the_one_before_began() {
        let mut path = tiny_skia::PathBuilder::new();
        for corner in [3.0, 7.0] {
            path.move_to(1.0, 2.0);
            path.line_to(corner, 2.0);
            path.line_to(corner, 9.0);
            path.close();
        }
        let mut writer = Writer::new(1);
        writer.path(&path.finish().unwrap());
        let starts: Vec<&str> =
            writer.out.split(r#""v":["#).skip(1).map(|rest| &rest[..5]).collect();
        assert_eq!(starts, ["[1,2]", "[7,2]"]);
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let written = |value, digits| {
            let mut writer = Writer::new(1);
            writer.rounded(value, digits);
            writer.out
        };
        for (value, digits, text) in [
            (0.0, 1, "0"),
            (-0.04, 1, "-0"),
            (12.0, 1, "12"),
            (12.34, 1, "12.3"),
            (-7.25, 1, "-7.3"),
            (0.05, 3, "0.05"),
            (0.999, 3, "0.999"),
            (0.4999, 0, "0"),
            (511.96, 1, "512"),
        ] {
            let text = if text == "-0" { "0" } else { text };
            assert_eq!(written(value, digits), text, "{value}");
        }
    }
}
