//! Gradients for the texts of fields, as PDF patterns in page space.

use super::Error;
use super::content::number;
use super::objects::Objects;
use super::parse::{Dict, Object};
use crate::extract::Gradient;

/// Adds the pattern and gives its number.
pub(super) fn pattern(gradient: &Gradient, objects: &mut Objects<'_>) -> Result<u32, Error> {
    let numbers =
        |values: &[f64]| Object::Array(values.iter().map(|v| Object::Number(*v)).collect());
    let mut function = Dict::default();
    function.set("FunctionType", Object::Number(0.0));
    function.set("Domain", numbers(&[0.0, 1.0]));
    function.set("Range", numbers(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]));
    function.set("Size", numbers(&[(gradient.samples.len() / 3) as f64]));
    function.set("BitsPerSample", Object::Number(8.0));
    let function = objects.add_stream(&function, gradient.samples.clone())?;
    // Two points make a linear gradient, two circles a radial one.
    let kind = if gradient.coords.len() == 4 { 2 } else { 3 };
    let list = |values: &[f64]| values.iter().map(|v| number(*v)).collect::<Vec<_>>().join(" ");
    let (matrix, coords) = (list(&gradient.matrix), list(&gradient.coords));
    Ok(objects.add_text(format!(
        "<</Type/Pattern/PatternType 2/Matrix[{matrix}]/Shading<</ShadingType {kind}\
         /ColorSpace/DeviceRGB/Coords[{coords}]/Extend[true true]/Function {function} 0 R>>>>"
    )))
}
