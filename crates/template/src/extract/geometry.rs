//! Boxes on the page: whether one hides, cuts or meets another.

use typst::layout::{Point, Transform};
use typst::visualize::{Curve, CurveItem};

/// Half a point: paint that touches a box by less is not seen.
const SLACK: f64 = 0.5;

/// Straight pieces that a curve is looked at as.
const PIECES: u32 = 8;

/// A box of some frame as a quadrilateral on the page.
#[derive(Debug, Clone)]
pub(super) struct Area {
    corners: [(f64, f64); 4],
}

impl Area {
    /// The box between two points, brought to the page.
    pub(super) fn of(min: Point, max: Point, transform: Transform) -> Self {
        let corner = |x, y| xy(Point::new(x, y).transform(transform));
        Self {
            corners: [
                corner(min.x, min.y),
                corner(max.x, min.y),
                corner(max.x, max.y),
                corner(min.x, max.y),
            ],
        }
    }

    /// Whether the bounds of both share more than a sliver.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let (a, b) = (self.bounds(), other.bounds());
        a.0 + SLACK < b.2 && b.0 + SLACK < a.2 && a.1 + SLACK < b.3 && b.1 + SLACK < a.3
    }

    fn bounds(&self) -> (f64, f64, f64, f64) {
        let mut bounds = (f64::MAX, f64::MAX, f64::MIN, f64::MIN);
        for (x, y) in self.corners {
            bounds = (bounds.0.min(x), bounds.1.min(y), bounds.2.max(x), bounds.3.max(y));
        }
        bounds
    }
}

/// Whether the clip shows all of the area: its corners are inside and no edge of the clip crosses it.
pub(super) fn covers(transform: Transform, clip: &Curve, area: &Area) -> bool {
    let edges = edges(transform, clip);
    // Corners are moved inwards a little: a box that fills its clip is not cut.
    let middle =
        area.corners.iter().fold((0.0, 0.0), |sum, c| (sum.0 + c.0 / 4.0, sum.1 + c.1 / 4.0));
    let inward = |(x, y): (f64, f64)| {
        let (dx, dy) = (middle.0 - x, middle.1 - y);
        let length = dx.hypot(dy).max(1e-9);
        let step = (2.0 * SLACK).min(length) / length;
        (x + dx * step, y + dy * step)
    };
    let corners = area.corners.map(inward);
    let sides = (0..4).map(|i| (corners[i], corners[(i + 1) % 4]));
    corners.iter().all(|corner| is_inside(*corner, &edges))
        && !sides.into_iter().any(|side| edges.iter().any(|edge| cross(side, *edge)))
}

/// `[a, b, c, d, e, f]` as compiled templates have it.
pub(super) fn matrix(t: Transform) -> [f32; 6] {
    [t.sx.get(), t.ky.get(), t.kx.get(), t.sy.get(), t.tx.to_pt(), t.ty.to_pt()].map(|v| v as f32)
}

type Edge = ((f64, f64), (f64, f64));

fn xy(point: Point) -> (f64, f64) {
    (point.x.to_pt(), point.y.to_pt())
}

/// The outline as straight lines on the page.
fn edges(transform: Transform, curve: &Curve) -> Vec<Edge> {
    let at = |point: &Point| xy(point.transform(transform));
    let (mut edges, mut start, mut last) = (Vec::new(), (0.0, 0.0), (0.0, 0.0));
    for item in &curve.0 {
        match item {
            CurveItem::Move(to) => {
                edges.push((last, start));
                (start, last) = (at(to), at(to));
            }
            CurveItem::Line(to) => {
                edges.push((last, at(to)));
                last = at(to);
            }
            CurveItem::Cubic(a, b, to) => {
                let (p0, p1, p2, p3) = (last, at(a), at(b), at(to));
                for piece in 1..=PIECES {
                    let t = f64::from(piece) / f64::from(PIECES);
                    let u = 1.0 - t;
                    let mix = |a: f64, b: f64, c: f64, d: f64| {
                        u * u * u * a + 3.0 * u * u * t * b + 3.0 * u * t * t * c + t * t * t * d
                    };
                    let to = (mix(p0.0, p1.0, p2.0, p3.0), mix(p0.1, p1.1, p2.1, p3.1));
                    edges.push((last, to));
                    last = to;
                }
            }
            CurveItem::Close => {
                edges.push((last, start));
                last = start;
            }
        }
    }
    edges.push((last, start));
    edges.retain(|(a, b)| a != b);
    edges
}

fn is_inside((x, y): (f64, f64), edges: &[Edge]) -> bool {
    let crossings = edges.iter().filter(|((x0, y0), (x1, y1))| {
        (*y0 > y) != (*y1 > y) && x < (x1 - x0) * (y - y0) / (y1 - y0) + x0
    });
    crossings.count() % 2 == 1
}

fn cross((a, b): Edge, (c, d): Edge) -> bool {
    let side = |p: (f64, f64), q: (f64, f64), r: (f64, f64)| {
        (q.0 - p.0) * (r.1 - p.1) - (q.1 - p.1) * (r.0 - p.0)
    };
    side(a, b, c) * side(a, b, d) < 0.0 && side(c, d, a) * side(c, d, b) < 0.0
}

#[cfg(test)]
mod tests {
    use typst::layout::{Abs, Angle, Size};

    use super::*;

    fn area(x0: f64, y0: f64, x1: f64, y1: f64) -> Area {
        Area::of(
            Point::new(Abs::pt(x0), Abs::pt(y0)),
            Point::new(Abs::pt(x1), Abs::pt(y1)),
            Transform::identity(),
        )
    }

    #[test]
    fn a_clip_covers_what_is_inside_and_nothing_that_sticks_out() {
        let clip = Curve::rect(Size::new(Abs::pt(100.0), Abs::pt(50.0)));
        let id = Transform::identity();
        assert!(covers(id, &clip, &area(0.0, 0.0, 100.0, 50.0)));
        assert!(covers(id, &clip, &area(10.0, 10.0, 20.0, 20.0)));
        assert!(!covers(id, &clip, &area(90.0, 10.0, 110.0, 20.0)));
        assert!(!covers(id, &clip, &area(-10.0, -10.0, 200.0, 200.0)));
        let turned = Transform::rotate(Angle::deg(45.0));
        assert!(!covers(turned, &clip, &area(0.0, 0.0, 100.0, 50.0)));
    }

    #[test]
    fn an_ellipse_cuts_corners() {
        let clip = Curve::ellipse(Size::new(Abs::pt(100.0), Abs::pt(100.0)));
        let id = Transform::identity();
        assert!(!covers(id, &clip, &area(0.0, 0.0, 100.0, 100.0)));
        assert!(covers(id, &clip, &area(20.0, 20.0, 80.0, 80.0)));
    }

    #[test]
    fn areas_that_only_touch_do_not_meet() {
        assert!(!area(0.0, 0.0, 10.0, 10.0).meets(&area(10.0, 0.0, 20.0, 10.0)));
        assert!(area(0.0, 0.0, 10.0, 10.0).meets(&area(5.0, 5.0, 20.0, 20.0)));
    }
}
