//! QR codes at level M, quickly: the symbol of a ticket is most of the work that differs.
//!
//! Up to version 10 (57 × 57 modules) a row fits one machine word. Everything that does not depend on
//! the text (finder and timing patterns, the order of the data bits, masks with their format bits,
//! the Reed-Solomon tables) is computed once per version; masks are judged on whole rows. Larger
//! symbols, which no ticket needs, come from `qrcodegen`, with which the tests compare ours.

mod bits;
mod penalty;
mod symbol;

use bits::Codewords;
use symbol::Layout;

/// Modules on each side that must stay light around a symbol.
pub const QUIET_ZONE: usize = 4;
/// Largest version that is encoded here.
const MAX_FAST_VERSION: usize = 10;

/// Tables for encoding; makes a table when a version is first needed.
#[derive(Default)]
pub struct Encoder {
    layouts: [Option<Box<Layout>>; MAX_FAST_VERSION],
}

/// The modules of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    size: usize,
    /// `size` rows of `words` words each; bit x of a row is column x.
    rows: Vec<u64>,
    words: usize,
}

impl Symbol {
    /// No modules at all, to be encoded into.
    pub fn empty() -> Self {
        Self { size: 0, rows: Vec::new(), words: 1 }
    }

    /// Modules on each side, without the quiet zone.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether a module is dark.
    pub fn is_dark(&self, x: usize, y: usize) -> bool {
        x < self.size && y < self.size && self.rows[y * self.words + x / 64] >> (x % 64) & 1 == 1
    }

    /// Calls `run(x, y, width)` for every run of dark modules.
    pub fn runs(&self, mut run: impl FnMut(usize, usize, usize)) {
        for y in 0..self.size {
            self.row_runs(y, |x, width| run(x, y, width));
        }
    }

    /// Calls `draw(x, y, width, height)` for rectangles that together are the dark modules: runs of a
    /// row, made one with the same run in the rows below.
    #[inline]
    pub(crate) fn rectangles(&self, mut draw: impl FnMut(usize, usize, usize, usize)) {
        if self.words > 1 {
            return self.runs(|x, y, width| draw(x, y, width, 1));
        }
        // Bits of the runs that stand in the row below too.
        let mut again = [0; 64];
        for (again, pair) in again.iter_mut().zip(self.rows.windows(2)) {
            *again = repeated(pair[0], pair[1]);
        }
        for (y, &row) in self.rows.iter().enumerate() {
            let above = if y > 0 { again[y - 1] } else { 0 };
            bit_runs(row & !above, |x, width| {
                let mut end = y;
                while again[end] >> x & 1 == 1 {
                    end += 1;
                }
                draw(x, y, width, end - y + 1);
            });
        }
    }

    /// Calls `run(x, width)` for every run of dark modules in a row.
    fn row_runs(&self, y: usize, mut run: impl FnMut(usize, usize)) {
        if self.words == 1 {
            return bit_runs(self.rows[y], run);
        }
        let mut x = 0;
        while x < self.size {
            let start = x;
            while self.is_dark(x, y) {
                x += 1;
            }
            if x > start {
                run(start, x - start);
            }
            x += 1;
        }
    }
}

/// Calls `run(start, length)` for every run of ones. The highest bit is never one.
#[inline]
fn bit_runs(mut bits: u64, mut run: impl FnMut(usize, usize)) {
    while bits != 0 {
        let start = bits.trailing_zeros();
        let length = (!(bits >> start)).trailing_zeros();
        run(start as usize, length as usize);
        bits &= u64::MAX << (start + length);
    }
}

/// The runs of `row` that are runs of `below` too, with the same beginning and end.
fn repeated(row: u64, below: u64) -> u64 {
    // Where the rows differ, or beside it, a run is not the same; nor is any other part of it.
    let differ = row ^ below;
    let mut up = row & (differ | differ << 1 | differ >> 1);
    let mut down = up;
    let (mut room_up, mut room_down) = (row, row);
    for shift in [1, 2, 4, 8, 16, 32] {
        up |= room_up & up << shift;
        room_up &= room_up << shift;
        down |= room_down & down >> shift;
        room_down &= room_down >> shift;
    }
    row & !(up | down)
}

/// The text does not fit the largest QR code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is too long for a QR code")]
pub struct TooLong;

impl Encoder {
    /// An encoder without tables yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The smallest symbol at level M that holds `text`, in alphanumeric mode if all of it can be.
    pub fn encode(&mut self, text: &str) -> Result<Symbol, TooLong> {
        let mut symbol = Symbol::empty();
        self.encode_into(text, &mut symbol)?;
        Ok(symbol)
    }

    /// [`Self::encode`] into memory that is used again.
    pub fn encode_into(&mut self, text: &str, symbol: &mut Symbol) -> Result<(), TooLong> {
        let alphanumeric = bits::is_alphanumeric(text.as_bytes());
        for version in 1..=MAX_FAST_VERSION {
            if Codewords::fits(text.len(), alphanumeric, version) {
                let layout =
                    self.layouts[version - 1].get_or_insert_with(|| Box::new(Layout::new(version)));
                layout.draw(text.as_bytes(), &mut symbol.rows);
                symbol.size = symbol.rows.len();
                symbol.words = 1;
                return Ok(());
            }
        }
        encode_large(text, symbol)
    }
}

fn encode_large(text: &str, symbol: &mut Symbol) -> Result<(), TooLong> {
    use qrcodegen::{QrCode, QrCodeEcc, QrSegment, Version};
    let segment = if bits::is_alphanumeric(text.as_bytes()) {
        QrSegment::make_alphanumeric(text)
    } else {
        // `make_bytes` counts in a usize that cannot overflow at this length.
        if text.len() > 3000 {
            return Err(TooLong);
        }
        QrSegment::make_bytes(text.as_bytes())
    };
    let code = QrCode::encode_segments_advanced(
        &[segment],
        QrCodeEcc::Medium,
        Version::new(1),
        Version::new(40),
        None,
        false,
    )
    .map_err(|_| TooLong)?;
    let size = usize::try_from(code.size()).unwrap_or_default();
    symbol.size = size;
    symbol.words = size.div_ceil(64);
    symbol.rows.clear();
    symbol.rows.resize(size * symbol.words, 0);
    for y in 0..size {
        for x in 0..size {
            if code.get_module(x as i32, y as i32) {
                symbol.rows[y * symbol.words + x / 64] |= 1 << (x % 64);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The symbol of an independent encoder with each of the masks.
    fn references(text: &str) -> Vec<Vec<bool>> {
        let segment = if bits::is_alphanumeric(text.as_bytes()) {
            qrcodegen::QrSegment::make_alphanumeric(text)
        } else {
            qrcodegen::QrSegment::make_bytes(text.as_bytes())
        };
        let with_mask = |mask| {
            let code = qrcodegen::QrCode::encode_segments_advanced(
                std::slice::from_ref(&segment),
                qrcodegen::QrCodeEcc::Medium,
                qrcodegen::Version::new(1),
                qrcodegen::Version::new(40),
                Some(qrcodegen::Mask::new(mask)),
                false,
            )
            .unwrap();
            let size = code.size();
            (0..size * size).map(|at| code.get_module(at % size, at / size)).collect()
        };
        (0..8).map(with_mask).collect()
    }

    fn assert_same(encoder: &mut Encoder, text: &str) {
        let symbol = encoder.encode(text).unwrap();
        let size = symbol.size();
        let modules: Vec<bool> =
            (0..size * size).map(|at| symbol.is_dark(at % size, at / size)).collect();
        assert!(references(text).contains(&modules), "{text:?}");
    }

    #[test]
    fn symbols_are_those_of_an_independent_encoder() {
        let mut encoder = Encoder::new();
        let alphabet = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:";
        let mut state = 1_u64;
        for length in 1..=420 {
            let mut alphanumeric = String::new();
            let mut bytes = String::new();
            for _ in 0..length {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let random = (state >> 33) as usize;
                alphanumeric.push(char::from(alphabet[random % 45]));
                bytes.push(char::from((random % 95 + 32) as u8));
            }
            assert_same(&mut encoder, &alphanumeric);
            assert_same(&mut encoder, &bytes);
        }
    }

    #[test]
    fn rectangles_cover_exactly_the_dark_modules() {
        let mut encoder = Encoder::new();
        for text in ["A", &"K7".repeat(75), &"long ".repeat(200)] {
            let symbol = encoder.encode(text).unwrap();
            let mut covered = vec![false; symbol.size() * symbol.size()];
            symbol.rectangles(|x, y, width, height| {
                for at in 0..width * height {
                    let (x, y) = (x + at % width, y + at / width);
                    assert!(!std::mem::replace(&mut covered[y * symbol.size() + x], true));
                }
            });
            for y in 0..symbol.size() {
                for x in 0..symbol.size() {
                    assert_eq!(covered[y * symbol.size() + x], symbol.is_dark(x, y));
                }
            }
        }
    }

    #[test]
    fn only_whole_runs_are_repeated() {
        for (row, below, expected) in [
            (0b0110, 0b0110, 0b0110),
            (0b0110, 0b1110, 0),
            (0b1110, 0b0110, 0),
            (0b1101_1011, 0b1101_0011, 0b1100_0011),
            ((1 << 57) - 1, (1 << 57) - 1, (1 << 57) - 1),
            ((1 << 57) - 1, (1 << 57) - 2, 0),
        ] {
            assert_eq!(repeated(row, below), expected, "{row:b} over {below:b}");
        }
    }

    #[test]
    fn a_token_is_a_symbol_of_41_modules() {
        assert_eq!(Encoder::new().encode(&"A7".repeat(75)[..149]).unwrap().size(), 41);
    }

    #[test]
    fn a_text_that_no_symbol_holds_is_refused() {
        assert_eq!(Encoder::new().encode(&"x".repeat(2400)), Err(TooLong));
        assert_eq!(Encoder::new().encode(&"x".repeat(1_000_000)), Err(TooLong));
        assert_eq!(Encoder::new().encode(&"A".repeat(1_000_000)), Err(TooLong));
    }
}
