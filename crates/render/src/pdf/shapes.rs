//! Drawing fills, QR codes and images, as PDF content streams.

use crate::compiled::{Color, Fill};
use crate::pdf::write::{integer, number, precise, precise_list};
use crate::qr::{QUIET_ZONE, Symbol};

/// Writes the fill of what follows.
pub(crate) fn fill(out: &mut Vec<u8>, fill: &Fill, opacity_state: Option<usize>) {
    match fill {
        Fill::Solid(color, _) => {
            if let Some(state) = opacity_state {
                out.extend_from_slice(b"/Sg");
                integer(out, state as u64);
                out.extend_from_slice(b" gs ");
            }
            solid(out, color);
        }
        Fill::Pattern(name) => {
            out.extend_from_slice(b"/Pattern cs/");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b" scn ");
        }
    }
}

fn solid(out: &mut Vec<u8>, color: &Color) {
    for &part in color {
        number(out, part);
        out.push(b' ');
    }
    out.extend_from_slice(b"rg ");
}

/// Draws a QR code into a square of `side` that includes its quiet zone.
pub(crate) fn code(
    out: &mut Vec<u8>,
    symbol: &Symbol,
    transform: &[f32; 6],
    page_height: f32,
    side: f32,
    color: &Color,
    background: Option<&Color>,
) {
    let modules = symbol.size() + 2 * QUIET_ZONE;
    let module = side / modules as f32;
    let quiet = module * QUIET_ZONE as f32;
    let [a, b, c, d, e, f] = *transform;
    out.extend_from_slice(b"q ");
    precise_list(out, &[a * module, -b * module, c * module, -d * module]);
    // The first module is the origin: coordinates are short.
    precise(out, (a + c) * quiet + e);
    out.push(b' ');
    precise(out, page_height - ((b + d) * quiet + f));
    out.extend_from_slice(b" cm\n");
    if let Some(background) = background {
        solid(out, background);
        out.extend_from_slice(b"-4 -4 ");
        integer(out, modules as u64);
        out.push(b' ');
        integer(out, modules as u64);
        out.extend_from_slice(b" re f\n");
    }
    solid(out, color);
    rectangles(out, symbol);
    out.extend_from_slice(b"f Q\n");
}

/// Numbers with a space behind them, and how long that is.
static NUMBERS: [([u8; 4], u8); 256] = {
    let mut table = [([b' '; 4], 0); 256];
    let mut value = 0;
    while value < 256 {
        let digits =
            [b'0' + value as u8 / 100, b'0' + value as u8 / 10 % 10, b'0' + value as u8 % 10];
        table[value] = match value {
            0..10 => ([digits[2], b' ', b' ', b' '], 2),
            10..100 => ([digits[1], digits[2], b' ', b' '], 3),
            _ => ([digits[0], digits[1], digits[2], b' '], 4),
        };
        value += 1;
    }
    table
};

/// The path of the dark modules. This is a fifth of all work, so lines are put together in pieces of
/// fixed length, of which the next overwrites what is too much.
fn rectangles(out: &mut Vec<u8>, symbol: &Symbol) {
    const LONGEST: usize = 4 * 4 + 4;
    let mut at = out.len();
    symbol.rectangles(|x, y, width, height| {
        if out.len() < at + LONGEST {
            out.resize(at + 400 * LONGEST, 0);
        }
        let line: &mut [u8; LONGEST] = match out[at..].first_chunk_mut() {
            Some(line) => line,
            None => return,
        };
        let mut length = 0;
        for value in [x, y, width, height] {
            // No symbol has more than 177 modules on a side.
            let (digits, long) = NUMBERS[value & 255];
            line[length..length + 4].copy_from_slice(&digits);
            length += usize::from(long & 7);
        }
        line[length..length + 3].copy_from_slice(b"re\n");
        at += length + 3;
    });
    out.truncate(at);
}

/// Draws an image XObject as large as fits the box, centred.
pub(crate) fn image(
    out: &mut Vec<u8>,
    name: usize,
    pixels: (u32, u32),
    transform: &[f32; 6],
    page_height: f32,
    (width, height): (f32, f32),
) {
    let scale = (width / pixels.0 as f32).min(height / pixels.1 as f32);
    let (w, h) = (pixels.0 as f32 * scale, pixels.1 as f32 * scale);
    let (x, y) = ((width - w) / 2.0, (height - h) / 2.0 + h);
    let [a, b, c, d, e, f] = *transform;
    out.extend_from_slice(b"q ");
    // An image's own square has its y axis upwards, from the lower left corner.
    precise_list(out, &[a * w, -b * w, -c * h, d * h]);
    precise_list(out, &[a * x + c * y + e, page_height - (b * x + d * y + f)]);
    out.extend_from_slice(b"cm/Si");
    integer(out, name as u64);
    out.extend_from_slice(b" Do Q\n");
}
