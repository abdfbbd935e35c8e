//! What a field's text is filled with: a colour, or a gradient that becomes a pattern of the page.

use stampede_render::compiled::Fill;
use typst::layout::{Angle, Quadrant, Ratio, Size, Transform};
use typst::visualize::{Color, Gradient as TypstGradient, Paint, RatioOrAngle, RelativeTo};

use super::Around;

/// Colours along a gradient; enough for an eye, and for sharp stops.
const SAMPLES: u32 = 256;

/// A gradient in the coordinates of a PDF page.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gradient {
    /// From unit coordinates to the page, y up.
    pub(crate) matrix: [f64; 6],
    /// Line or circles in unit coordinates, as PDF's shadings want them.
    pub(crate) coords: Vec<f64>,
    /// RGB at even distances.
    pub(crate) samples: Vec<u8>,
}

/// The fill, or why a stamper cannot have it.
pub(super) fn read(
    paint: &Paint,
    around: &Around,
    page: Size,
    gradients: &mut Vec<Gradient>,
) -> Result<Fill, &'static str> {
    match paint {
        Paint::Solid(color) => {
            let (color, alpha) = rgb(color);
            Ok(Fill::Solid(color, alpha))
        }
        Paint::Gradient(gradient) => {
            let gradient = pattern(gradient, around, page)?;
            let index = match gradients.iter().position(|other| *other == gradient) {
                Some(index) => index,
                None => {
                    gradients.push(gradient);
                    gradients.len() - 1
                }
            };
            Ok(Fill::Pattern(format!("F{index}")))
        }
        Paint::Tiling(_) => Err("is filled with a tiling"),
    }
}

/// Red, green, blue and opacity from 0 to 1.
pub(super) fn rgb(color: &Color) -> ([f32; 3], f32) {
    let rgb = color.to_rgb();
    // Rounded as the PDF of the static part rounds them.
    let round = |value: f32| (value.clamp(0.0, 1.0) * 255.0).round() / 255.0;
    ([round(rgb.red), round(rgb.green), round(rgb.blue)], round(rgb.alpha))
}

fn pattern(
    gradient: &TypstGradient,
    around: &Around,
    page: Size,
) -> Result<Gradient, &'static str> {
    if gradient.unwrap_relative(true) == RelativeTo::Self_ {
        return Err("is filled with a gradient over each letter");
    }
    let size = around.container_size;
    let coords = match gradient {
        TypstGradient::Linear(linear) => {
            let angle = TypstGradient::correct_aspect_ratio(linear.angle, size.aspect_ratio());
            unit_line(angle)
        }
        TypstGradient::Radial(radial) => [
            radial.focal_center.x,
            radial.focal_center.y,
            radial.focal_radius,
            radial.center.x,
            radial.center.y,
            radial.radius,
        ]
        .map(Ratio::get)
        .to_vec(),
        TypstGradient::Conic(_) => return Err("is filled with a conic gradient"),
    };
    let mut samples = Vec::with_capacity(3 * SAMPLES as usize);
    for i in 0..SAMPLES {
        let at = f64::from(i) / f64::from(SAMPLES - 1);
        let (color, alpha) = rgb(&gradient.sample(RatioOrAngle::Ratio(Ratio::new(at))));
        if alpha < 1.0 {
            return Err("is filled with a gradient that is partly transparent");
        }
        samples.extend(color.map(|value| (value * 255.0).round() as u8));
    }
    let t = around
        .container
        .pre_concat(Transform::scale(Ratio::new(size.x.to_pt()), Ratio::new(size.y.to_pt())));
    // PDF counts y upwards from the page's lower edge.
    let matrix = [
        t.sx.get(),
        -t.ky.get(),
        t.kx.get(),
        -t.sy.get(),
        t.tx.to_pt(),
        page.y.to_pt() - t.ty.to_pt(),
    ];
    Ok(Gradient { matrix, coords, samples })
}

/// From one edge of the unit square to the other at this angle.
fn unit_line(angle: Angle) -> Vec<f64> {
    let (sin, cos) = (angle.sin(), angle.cos());
    let factor = cos.abs() + sin.abs();
    let (x, y) = match angle.quadrant() {
        Quadrant::First => (0.0, 0.0),
        Quadrant::Second => (1.0, 0.0),
        Quadrant::Third => (1.0, 1.0),
        Quadrant::Fourth => (0.0, 1.0),
    };
    vec![x, y, x + cos * factor, y + sin * factor]
}
