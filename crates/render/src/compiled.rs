//! What the template compiler makes and the stamper reads: plain data.
//!
//! Lengths are points. Page coordinates have their origin at the top left, y down, as Typst's do.

use serde::{Deserialize, Serialize};

/// A template, compiled for one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Compiled {
    /// All that depends on the ticket are fields in fixed boxes: stamped.
    Stamped(Box<Stamped>),
    /// Its layout depends on the ticket: typeset by Typst for each ticket, in the sandbox.
    Typeset(Typeset),
}

/// A template that Typst has to run for every ticket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Typeset {
    /// Why it could not be stamped, for the organiser: `template.typ:12:4: reads ticket.json`.
    pub reason: String,
    /// Everything needed: `(path, bytes)` of template, assets and `event.json`, sorted by path.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A template whose tickets are stamped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// BCP 47 language of the document.
    pub lang: String,
    /// Title of the document; `{name}` in it is replaced by the field of that name.
    pub title: String,
    /// What is the same on every ticket.
    pub base: StaticPdf,
    /// At least one.
    pub pages: Vec<Page>,
    /// Fonts that fields use; fields refer to them by index.
    pub fonts: Vec<FontSource>,
    /// Fields in the order of drawing.
    pub fields: Vec<Field>,
}

/// The objects that all tickets share, as they stand in every PDF.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StaticPdf {
    /// `%PDF-1.7` line and all shared objects, numbered from 1 without gaps; copied as it is.
    pub bytes: Vec<u8>,
    /// Where object `i + 1` is.
    pub objects: Vec<ObjectPlace>,
}

/// Where an object of the static part lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectPlace {
    /// At this byte of [`StaticPdf::bytes`].
    At(u32),
    /// In this object stream, at this index.
    InStream {
        /// Number of the object stream.
        stream: u32,
        /// Position in it.
        index: u32,
    },
}

/// One page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// Width in points.
    pub width: f32,
    /// Height in points.
    pub height: f32,
    /// Number of the content stream with everything static. It ends in the graphics state it began
    /// with, so that fields may be drawn after it in plain page space.
    pub content: u32,
    /// Resources of the static content, as the inside of a PDF dictionary without its `/Font` entry:
    /// `/ExtGState<</a 3 0 R>>/Pattern<</p 5 0 R>>`.
    pub resources: String,
    /// The inside of the static `/Font` dictionary: `/f0 7 0 R`. The stamper adds its own fonts,
    /// named `/S0`, `/S1`, …; static names never begin with `S`.
    pub fonts: String,
    /// Further entries of the page, such as `/Group 9 0 R`.
    pub entries: String,
}

/// Where the bytes of a font are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FontSource {
    /// One of the fonts that ship with Stampede, by the SHA-256 of its file.
    Shipped([u8; 32]),
    /// The organiser's own.
    Own {
        /// The font file.
        bytes: Vec<u8>,
        /// Which face of a collection.
        face: u32,
    },
}

/// A place that shows something of the ticket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// Which value of the ticket: `name`, `seat`, `code`, …
    pub name: String,
    /// Index of its page.
    pub page: u32,
    /// Maps the field's own coordinates to the page's: `x' = a x + c y + e`, `y' = b x + d y + f`
    /// with `[a, b, c, d, e, f]`; both y down. The field's origin is the top left of its box, for
    /// texts the left end of the first baseline.
    pub transform: [f32; 6],
    /// What is drawn there.
    pub kind: FieldKind,
}

/// What a field draws. An absent or empty value draws nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FieldKind {
    /// Text.
    Text(TextField),
    /// A QR code, level M, in a square of this side *including* its quiet zone of four modules.
    Qr {
        /// Side of the square.
        side: f32,
        /// Colour of the dark modules.
        fill: Color,
        /// Colour below the whole square; `None` leaves the background as it is.
        background: Option<Color>,
    },
    /// One of the template's images, chosen by the value.
    Image {
        /// Size of the box.
        width: f32,
        /// Size of the box.
        height: f32,
        /// Value → image XObject in the static part, its size in pixels; drawn as large as fits,
        /// centred.
        choices: Vec<ImageChoice>,
    },
}

/// An image for one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImageChoice {
    /// The value that chooses it; empty for all values that no other choice names.
    pub value: String,
    /// Object number of the XObject.
    pub object: u32,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// How a text is set.
///
/// Fitting, in this order: at `size` if it fits; smaller, down to `min_size`, in as few lines as
/// possible up to `lines`; cut at `min_size` with an ellipsis. See the crate's `fit` module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextField {
    /// Width of the box.
    pub width: f32,
    /// Nominal size of the font.
    pub size: f32,
    /// Smallest size it may be shrunk to; equal to `size` if it may not be.
    pub min_size: f32,
    /// Most lines; 1 never wraps.
    pub lines: u32,
    /// From baseline to baseline, as a multiple of the size in use.
    pub line_height: f32,
    /// Where lines stand in the box.
    pub align: Align,
    /// Upper-cased before it is set.
    pub upper: bool,
    /// Added after every cluster, in em.
    pub tracking: f32,
    /// OpenType features other than the defaults: tag and value.
    pub features: Vec<([u8; 4], u32)>,
    /// BCP 47 language for shaping, or empty.
    pub lang: String,
    /// Fonts to try for every cluster, in this order: indexes into [`Stamped::fonts`].
    pub fonts: Vec<u32>,
    /// Its colour.
    pub fill: Fill,
}

/// Where a line stands in its box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Align {
    /// At the side where its text begins: left, or right for texts whose first letter runs leftwards.
    Start,
    /// Left.
    Left,
    /// Centred.
    Center,
    /// Right.
    Right,
}

/// A colour, in RGB from 0 to 1.
pub type Color = [f32; 3];

/// What text is filled with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Fill {
    /// One colour with its opacity from 0 to 1.
    Solid(Color, f32),
    /// A pattern in the page's resources, by name: a gradient, in page space.
    Pattern(String),
}
