//! A QR code alone, as a drawing or as pixels.

use std::fmt::Write;

use stampede_render::qr::{Encoder, Symbol};

use crate::Error;

/// The shape of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeShape {
    /// Width and height, in pixels.
    pub size: u32,
    /// Modules that stay light on each side. Scanners need four, unless the surroundings are light.
    pub margin: u32,
}

/// The QR code of a text as SVG.
pub fn code_svg(text: &str, shape: CodeShape) -> Result<String, Error> {
    let symbol = symbol(text)?;
    let (size, margin) = (shape.size, shape.margin as usize);
    let side = symbol.size() + 2 * margin;
    let mut path = String::new();
    symbol.runs(|x, y, width| {
        // Writing to a text does not fail.
        let _ = write!(path, "M{} {}h{width}v1h-{width}z", x + margin, y + margin);
    });
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{size}\" height=\"{size}\" viewBox=\"0 0 {side} {side}\" \
         shape-rendering=\"crispEdges\"><path fill=\"#fff\" d=\"M0 0h{side}v{side}H0z\"/><path d=\"{path}\"/></svg>\n"
    ))
}

/// The QR code of a text as PNG. Modules are whole pixels; the rest of the width is margin.
pub fn code_png(text: &str, shape: CodeShape) -> Result<Vec<u8>, Error> {
    let symbol = symbol(text)?;
    let (size, margin) = (shape.size as usize, shape.margin as usize);
    let side = symbol.size() + 2 * margin;
    let scale = (size / side).max(1);
    // A picture that is too small for its modules becomes as large as it must be.
    let size = size.max(side);
    let first = (size - scale * symbol.size()) / 2;
    let row_bytes = size.div_ceil(8);
    let light = vec![0xff; row_bytes];
    let mut pixels = Vec::with_capacity(row_bytes * size);
    for y in 0..size {
        let mut row = light.clone();
        if let Some(module_y) = y.checked_sub(first).map(|y| y / scale) {
            for x in first..(first + scale * symbol.size()).min(size) {
                if symbol.is_dark((x - first) / scale, module_y) {
                    row[x / 8] &= !(0x80 >> (x % 8));
                }
            }
        }
        pixels.extend_from_slice(&row);
    }
    encoded(size as u32, &pixels).map_err(|error| Error::Stamp(error.to_string()))
}

fn encoded(size: u32, pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size, size);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

fn symbol(text: &str) -> Result<Symbol, Error> {
    Encoder::new().encode(text).map_err(|error| Error::Stamp(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_size_that_was_asked_for_and_no_less_than_its_modules() {
        for (asked, expected) in [(400, 400), (33, 33), (10, 29)] {
            let png = code_png("HELLO", CodeShape { size: asked, margin: 4 }).unwrap();
            let width = u32::from_be_bytes(png[16..20].try_into().unwrap());
            assert_eq!(width, expected);
        }
        let svg = code_svg("HELLO", CodeShape { size: 400, margin: 2 }).unwrap();
        assert!(svg.contains("width=\"400\"") && svg.contains("viewBox=\"0 0 25 25\""), "{svg}");
        assert!(code_svg(&"x".repeat(10_000), CodeShape { size: 400, margin: 4 }).is_err());
    }
}
