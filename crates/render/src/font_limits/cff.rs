//! CFF charstrings: how many bytes each glyph has once its subroutines are in place.
//!
//! Embedding a CFF font puts the subroutines of every used glyph in place, so a glyph of a few bytes can become any
//! number of them. This walk follows the calls and only counts; it stops at the first glyph beyond a limit.

use super::{MOST_CALLS, MOST_FONT_BYTES, MOST_GLYPH_BYTES, beyond};
use crate::face::FontError;

const DAMAGED: FontError = FontError::Damaged("its CFF table cannot be read");

/// Bytes of every glyph with its subroutines in place.
pub(crate) fn sizes(table: &[u8]) -> Result<Box<[u32]>, FontError> {
    let font = Font::read(table).ok_or(DAMAGED)?;
    let mut total = 0;
    let mut sizes = Vec::with_capacity(font.charstrings.count.min(1 << 16));
    for glyph in 0..font.charstrings.count.min(1 << 16) {
        let number = glyph as u16;
        let locals = font.locals(number);
        let mut walk = Walk { globals: font.globals, locals, glyph: number, ..Walk::default() };
        walk.run(font.charstrings.get(glyph).unwrap_or_default(), 0)?;
        total += u64::from(walk.bytes);
        if total > MOST_FONT_BYTES {
            let limit = format!(
                "is one too many: up to it, glyphs have more than {MOST_FONT_BYTES} bytes with their subroutines"
            );
            return Err(beyond(number, limit));
        }
        sizes.push(walk.bytes);
    }
    Ok(sizes.into())
}

/// Whether a charstring goes on after a subroutine.
#[derive(PartialEq, Eq)]
enum Flow {
    Returned,
    Ended,
}

/// Operands on the stack at most; whoever embeds the font refuses a glyph with more.
const MOST_OPERANDS: usize = 48;

/// Follows one glyph, in step with the `subsetter` crate: bytes that it takes for calls must be calls here.
#[derive(Default)]
struct Walk<'a> {
    globals: Index<'a>,
    locals: Index<'a>,
    glyph: u16,
    bytes: u32,
    /// Operands, as far as they can be numbers of subroutines.
    stack: Vec<Option<i32>>,
    stems: u16,
    mask_bytes: u16,
}

impl<'a> Walk<'a> {
    fn run(&mut self, code: &'a [u8], calls: u32) -> Result<Flow, FontError> {
        if calls > MOST_CALLS {
            let limit = format!("calls subroutines deeper than {MOST_CALLS} levels");
            return Err(beyond(self.glyph, limit));
        }
        let mut at = 0;
        while let Some(&first) = code.get(at) {
            let length = match first {
                28 => 3,
                247..=254 => 2,
                255 => 5,
                12 => 2,
                _ => 1,
            };
            let Some(token) = code.get(at..at + length) else { return Ok(Flow::Ended) };
            at += length;
            self.add(length)?;
            match first {
                28 | 32..=255 if self.stack.len() >= MOST_OPERANDS => return Ok(Flow::Ended),
                28 | 32..=255 => self.stack.push(integer(token)),
                10 | 29 => {
                    let subroutines = if first == 10 { self.locals } else { self.globals };
                    let number = self.stack.pop().flatten();
                    // A call of nothing ends the glyph: whoever draws it refuses it.
                    let Some(code) = number.and_then(|number| subroutines.called(number)) else {
                        return Ok(Flow::Ended);
                    };
                    if self.run(code, calls + 1)? == Flow::Ended {
                        return Ok(Flow::Ended);
                    }
                }
                11 => return Ok(Flow::Returned),
                14 => return Ok(Flow::Ended),
                1 | 3 | 18 | 23 => self.hints(),
                19 | 20 => {
                    if self.mask_bytes == 0 {
                        self.hints();
                        self.mask_bytes = self.stems.div_ceil(8);
                    }
                    at += usize::from(self.mask_bytes);
                    self.add(self.mask_bytes.into())?;
                }
                _ => self.stack.clear(),
            }
        }
        Ok(Flow::Returned)
    }

    fn add(&mut self, bytes: usize) -> Result<(), FontError> {
        self.bytes = self.bytes.saturating_add(bytes as u32);
        if self.bytes > MOST_GLYPH_BYTES {
            let limit =
                format!("has more than {MOST_GLYPH_BYTES} bytes with its subroutines in place");
            return Err(beyond(self.glyph, limit));
        }
        Ok(())
    }

    fn hints(&mut self) {
        self.stems = self.stems.wrapping_add(self.stack.len() as u16 / 2);
        self.stack.clear();
    }
}

/// The value of an operand, if it can be the number of a subroutine.
fn integer(token: &[u8]) -> Option<i32> {
    Some(match *token {
        [28, high, low] => i32::from(i16::from_be_bytes([high, low])),
        [byte @ 32..=246] => i32::from(byte) - 139,
        [byte @ 247..=250, low] => (i32::from(byte) - 247) * 256 + i32::from(low) + 108,
        [byte @ 251..=254, low] => -(i32::from(byte) - 251) * 256 - i32::from(low) - 108,
        [255, high, low, 0, 0] => i32::from(i16::from_be_bytes([high, low])),
        _ => return None,
    })
}

/// A list of byte strings in the table.
#[derive(Clone, Copy, Default)]
struct Index<'a> {
    offsets: &'a [u8],
    width: usize,
    count: usize,
    data: &'a [u8],
}

impl<'a> Index<'a> {
    /// Reads the index at `at`; returns where it ends, too.
    fn read(table: &'a [u8], at: usize) -> Option<(Self, usize)> {
        let count = usize::from(u16::from_be_bytes(*table.get(at..)?.first_chunk()?));
        if count == 0 {
            return Some((Self::default(), at + 2));
        }
        let width = usize::from(*table.get(at + 2)?);
        let begin = at + 3;
        let offsets = table.get(begin..begin + (count + 1) * width)?;
        // Offsets count from the byte before the data.
        let before = begin + offsets.len() - 1;
        let mut index = Self { offsets, width, count, data: table.get(before..)? };
        let end = index.offset(count)?;
        index.data = index.data.get(..end)?;
        (1..=4).contains(&width).then_some((index, before + end))
    }

    fn offset(&self, index: usize) -> Option<usize> {
        let bytes = self.offsets.get(index * self.width..(index + 1) * self.width)?;
        Some(bytes.iter().fold(0, |offset, byte| offset << 8 | usize::from(*byte)))
    }

    fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.data.get(self.offset(index)?..self.offset(index + 1)?)
    }

    /// The subroutine that is called by this number.
    fn called(&self, number: i32) -> Option<&'a [u8]> {
        let bias = match self.count {
            ..1_240 => 107,
            1_240..33_900 => 1_131,
            _ => 32_768,
        };
        self.get(usize::try_from(number.checked_add(bias)?).ok()?)
    }
}

/// The parts of a CFF table that glyphs are made of.
struct Font<'a> {
    charstrings: Index<'a>,
    globals: Index<'a>,
    /// Local subroutines of each font dictionary; one for a font that has no dictionaries.
    locals: Vec<Index<'a>>,
    /// Which dictionary a glyph belongs to, if the font has several.
    select: Option<&'a [u8]>,
}

impl<'a> Font<'a> {
    fn read(table: &'a [u8]) -> Option<Self> {
        let header = usize::from(*table.get(2)?);
        let (_, at) = Index::read(table, header)?;
        let (tops, at) = Index::read(table, at)?;
        let (_, at) = Index::read(table, at)?;
        let (globals, _) = Index::read(table, at)?;
        let top = tops.get(0)?;
        let (charstrings, _) = Index::read(table, offset(top, 17, 0)?)?;
        let Some(array) = offset(top, ESCAPE + 36, 0) else {
            return Some(Self {
                charstrings,
                globals,
                locals: vec![local(table, top)],
                select: None,
            });
        };
        let (dictionaries, _) = Index::read(table, array)?;
        let locals = (0..dictionaries.count).map(|number| {
            dictionaries.get(number).map_or(Index::default(), |own| local(table, own))
        });
        let select = table.get(offset(top, ESCAPE + 37, 0)?..)?;
        Some(Self { charstrings, globals, locals: locals.collect(), select: Some(select) })
    }

    fn locals(&self, glyph: u16) -> Index<'a> {
        let number = self.select.map_or(Some(0), |select| dictionary_of(select, glyph));
        number.and_then(|number| self.locals.get(number)).copied().unwrap_or_default()
    }
}

/// Two-byte operators count from here.
const ESCAPE: u16 = 1_200;

/// The local subroutines that a top or font dictionary leads to.
fn local<'a>(table: &'a [u8], dictionary: &[u8]) -> Index<'a> {
    let find = || {
        let (length, start) = (offset(dictionary, 18, 0)?, offset(dictionary, 18, 1)?);
        let private = table.get(start..start.checked_add(length)?)?;
        Index::read(table, start.checked_add(offset(private, 19, 0)?)?)
    };
    find().map(|(index, _)| index).unwrap_or_default()
}

/// The operand of an operator in a dictionary, counted from the first.
fn offset(dictionary: &[u8], operator: u16, operand: usize) -> Option<usize> {
    let mut operands: Vec<Option<i64>> = Vec::new();
    let mut at = 0;
    while let Some(&first) = dictionary.get(at) {
        at += 1;
        let rest = dictionary.get(at..).unwrap_or_default();
        match first {
            0..=21 => {
                let mut found = u16::from(first);
                if first == 12 {
                    found = ESCAPE + u16::from(*rest.first()?);
                    at += 1;
                }
                if found == operator {
                    return usize::try_from((*operands.get(operand)?)?).ok();
                }
                operands.clear();
            }
            28 => {
                operands.push(Some(i16::from_be_bytes(*rest.first_chunk()?).into()));
                at += 2;
            }
            29 => {
                operands.push(Some(i32::from_be_bytes(*rest.first_chunk()?).into()));
                at += 4;
            }
            30 => {
                // A real number ends with the half byte 15.
                let length = rest.iter().position(|byte| byte & 15 == 15 || byte >> 4 == 15)? + 1;
                operands.push(None);
                at += length;
            }
            32..=246 => operands.push(Some(i64::from(first) - 139)),
            247..=254 => {
                let low = i64::from(*rest.first()?);
                let high = i64::from(first);
                operands.push(Some(match first {
                    ..=250 => (high - 247) * 256 + low + 108,
                    _ => -(high - 251) * 256 - low - 108,
                }));
                at += 1;
            }
            _ => return None,
        }
    }
    None
}

/// The dictionary of a glyph, by the table that says so.
fn dictionary_of(select: &[u8], glyph: u16) -> Option<usize> {
    let word = |at: usize| Some(u16::from_be_bytes(*select.get(at..)?.first_chunk()?));
    match select.first()? {
        0 => select.get(1 + usize::from(glyph)).map(|number| usize::from(*number)),
        3 => {
            let ranges = usize::from(word(1)?);
            // Ranges are sorted by their first glyph.
            let (mut low, mut high) = (0, ranges);
            while low < high {
                let middle = (low + high) / 2;
                if word(3 + middle * 3)? <= glyph { low = middle + 1 } else { high = middle }
            }
            let range = low.checked_sub(1)?;
            select.get(3 + range * 3 + 2).map(|number| usize::from(*number))
        }
        _ => None,
    }
}
