//! A page of a PDF as a picture.

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{RenderCache, RenderSettings, render};

use crate::Diagnostic;

/// Longest side of a picture in pixels.
const LONGEST: f32 = 6_000.0;

/// The page, from 0, as PNG with this many dots per inch; fewer if the picture would be too large.
pub fn png(pdf: Vec<u8>, page: u32, dpi: f32) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let refused = |message: &str| vec![Diagnostic::error(None, message)];
    let pdf = Pdf::new(pdf).map_err(|_| refused("this is not a PDF"))?;
    let page = pdf.pages().get(page as usize).ok_or_else(|| refused("there is no such page"))?;
    let (width, height) = page.render_dimensions();
    let scale = (dpi / 72.0).min(LONGEST / width.max(height).max(1.0)).max(0.01);
    let settings =
        RenderSettings { x_scale: scale, y_scale: scale, bg_color: WHITE, ..Default::default() };
    let picture = render(page, &RenderCache::new(), &InterpreterSettings::default(), &settings);
    picture.into_png().map_err(|_| refused("the picture cannot be written"))
}
