//! The studio: fonts that are parsed once, and memory that is used again. All threads share one.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use stampede_render::lettering::Memory;

use crate::fonts::Fonts;
use crate::motion::Room;
use crate::scene::{Scene, compose};
use crate::variant::{Animation, Fill, Shadow, Variant};
use crate::{Error, MAX_STATIC_BYTES, Text, by_name, encode, raster, tgs};

/// Drawn when the studio opens, so that the first request finds everything warm.
const WARM_UP: &str = "Hello 👋";

/// The file formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A static sticker; lossless.
    Webp,
    /// A static sticker.
    Png,
    /// An animated sticker of Telegram: Lottie, compressed.
    Tgs,
}

impl Format {
    /// Ending of a file's name, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Webp => "webp",
            Self::Png => "png",
            Self::Tgs => "tgs",
        }
    }

    /// MIME type, as Telegram names it.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Webp => "image/webp",
            Self::Png => "image/png",
            Self::Tgs => "application/x-tgsticker",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.extension().to_uppercase())
    }
}

/// Draws stickers. Made once; any number of threads draw with it at the same time.
pub struct Studio {
    fonts: Fonts,
    /// Memory of threads that are not drawing now.
    idle: Mutex<Vec<Memory>>,
}

impl Studio {
    /// Parses the fonts and draws once, which takes tens of milliseconds.
    pub fn new() -> Result<Self, Error> {
        let studio = Self { fonts: Fonts::new()?, idle: Mutex::default() };
        studio.draw(&Text::new(WARM_UP)?, &by_name("classic")?.variant, Format::Tgs)?;
        Ok(studio)
    }

    /// Draws a text: the bytes of a file within Telegram's limits.
    pub fn draw(&self, text: &Text, variant: &Variant, format: Format) -> Result<Vec<u8>, Error> {
        match format {
            Format::Tgs => tgs::encode(&self.compose(text, variant, tgs::room(variant))?),
            Format::Webp | Format::Png => self.still(text, variant, format),
        }
    }

    fn compose(&self, text: &Text, variant: &Variant, room: Room) -> Result<Scene, Error> {
        let memory = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut memory = memory.unwrap_or_default();
        let scene = compose(&self.fonts, &mut memory, text, variant, room);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
        scene
    }

    /// A static sticker; one that is too large loses shadow and gradient.
    fn still(&self, text: &Text, variant: &Variant, format: Format) -> Result<Vec<u8>, Error> {
        let plain = Variant { shadow: Shadow::None, fill: Fill::Solid, ..*variant };
        let mut bytes = 0;
        for variant in [variant, &plain] {
            let scene = self.compose(text, &without_motion(variant), Room::NONE)?;
            if !raster::is_on_canvas(&scene) {
                return Err(Error::Defect("it does not fit the canvas"));
            }
            let picture = raster::draw(&scene)?;
            let file = match format {
                Format::Png => encode::png(&picture)?,
                Format::Webp | Format::Tgs => encode::webp(&picture)?,
            };
            if file.len() <= MAX_STATIC_BYTES {
                return Ok(file);
            }
            bytes = file.len();
        }
        Err(Error::TooLarge { format, bytes, most: MAX_STATIC_BYTES })
    }
}

fn without_motion(variant: &Variant) -> Variant {
    Variant { animation: Animation::None, ..*variant }
}
