//! Pixels become files: WEBP without loss, or PNG.

use tiny_skia::Pixmap;

use crate::Error;

/// A WEBP file.
pub(crate) fn webp(picture: &Pixmap) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    image_webp::WebPEncoder::new(&mut out)
        .encode(&straight(picture), picture.width(), picture.height(), image_webp::ColorType::Rgba8)
        .map_err(|_| Error::Defect("the WEBP encoder refused a picture"))?;
    Ok(out)
}

/// A PNG file.
pub(crate) fn png(picture: &Pixmap) -> Result<Vec<u8>, Error> {
    write_png(picture).map_err(|_| Error::Defect("the PNG encoder refused a picture"))
}

fn write_png(picture: &Pixmap) -> Result<Vec<u8>, png::EncodingError> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, picture.width(), picture.height());
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_compression(png::Compression::Fast);
    // Choosing a filter for every row takes longer and saves little in flat pictures.
    encoder.set_filter(png::Filter::Up);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&straight(picture))?;
    writer.finish()?;
    Ok(out)
}

/// Colours that are not multiplied with their alpha, as files have them.
fn straight(picture: &Pixmap) -> Vec<u8> {
    let mut out = Vec::with_capacity(picture.data().len());
    for pixel in picture.pixels() {
        if matches!(pixel.alpha(), 0 | 255) {
            out.extend_from_slice(&[pixel.red(), pixel.green(), pixel.blue(), pixel.alpha()]);
        } else {
            let colour = pixel.demultiply();
            out.extend_from_slice(&[colour.red(), colour.green(), colour.blue(), colour.alpha()]);
        }
    }
    out
}
