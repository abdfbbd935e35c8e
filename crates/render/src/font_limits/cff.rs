//! CFF charstrings: how many bytes each glyph has once its subroutines are in place.
//!
//! Embedding a CFF font puts the subroutines of every used glyph in place, so a glyph of a few bytes can become any
//! number of them. This walk follows the calls and only counts; it stops at the first glyph beyond a limit.
//!
//! Whoever embeds the font (the `subsetter` crate) must read it as this walk does. A table that can be read in two ways
//! is refused as damaged: operators that are given twice, bytes that are reserved, offsets that go back, unsorted ranges.

use std::collections::BTreeMap;

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
        let is_ordered = (0..count).all(|entry| index.offset(entry) <= index.offset(entry + 1));
        let is_whole = (1..=4).contains(&width) && index.offset(0) == Some(1) && is_ordered;
        is_whole.then_some((index, before + end))
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
        let top = Dictionary::read(tops.get(0)?)?;
        let (charstrings, _) = Index::read(table, top.offset(CHARSTRINGS, 0)?)?;
        if top.has(ROS) != top.has(FONT_DICTIONARIES) {
            return None;
        }
        if !top.has(ROS) {
            let locals = vec![local(table, &top)?];
            return Some(Self { charstrings, globals, locals, select: None });
        }
        let (dictionaries, _) = Index::read(table, top.offset(FONT_DICTIONARIES, 0)?)?;
        let locals = (0..dictionaries.count).map(|number| {
            Dictionary::read(dictionaries.get(number)?).and_then(|own| local(table, &own))
        });
        let locals: Vec<Index<'_>> = locals.collect::<Option<_>>()?;
        let select = table.get(top.offset(FONT_SELECT, 0)?..)?;
        is_sorted(select).then_some(Self { charstrings, globals, locals, select: Some(select) })
    }

    fn locals(&self, glyph: u16) -> Index<'a> {
        let number = self.select.map_or(Some(0), |select| dictionary_of(select, glyph));
        number.and_then(|number| self.locals.get(number)).copied().unwrap_or_default()
    }
}

/// Operators of dictionaries; those of two bytes count from [`ESCAPE`].
const ESCAPE: u16 = 1_200;
const CHARSTRINGS: u16 = 17;
const PRIVATE: u16 = 18;
const SUBROUTINES: u16 = 19;
const ROS: u16 = ESCAPE + 30;
const FONT_DICTIONARIES: u16 = ESCAPE + 36;
const FONT_SELECT: u16 = ESCAPE + 37;

/// The local subroutines that a top or font dictionary leads to; none is no mistake, an unreadable one is.
fn local<'a>(table: &'a [u8], dictionary: &Dictionary) -> Option<Index<'a>> {
    if !dictionary.has(PRIVATE) {
        return Some(Index::default());
    }
    let (length, start) = (dictionary.offset(PRIVATE, 0)?, dictionary.offset(PRIVATE, 1)?);
    let private = Dictionary::read(table.get(start..start.checked_add(length)?)?)?;
    if !private.has(SUBROUTINES) {
        return Some(Index::default());
    }
    let at = start.checked_add(private.offset(SUBROUTINES, 0)?)?;
    Index::read(table, at).map(|(index, _)| index)
}

/// Operators with their operands; `None` for an operand that is no whole number.
struct Dictionary(BTreeMap<u16, Vec<Option<i64>>>);

impl Dictionary {
    /// `None` for a dictionary that can be read in two ways.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (mut found, mut operands, mut at) = (BTreeMap::new(), Vec::new(), 0);
        while let Some(&first) = bytes.get(at) {
            at += 1;
            let rest = bytes.get(at..).unwrap_or_default();
            match first {
                0..=21 => {
                    let mut operator = u16::from(first);
                    if first == 12 {
                        operator = ESCAPE + u16::from(*rest.first()?);
                        at += 1;
                    }
                    if found.insert(operator, std::mem::take(&mut operands)).is_some() {
                        return None;
                    }
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
                    let ends = |byte: &u8| byte & 15 == 15 || byte >> 4 == 15;
                    at += rest.iter().position(ends)? + 1;
                    operands.push(None);
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
                22..=27 | 31 | 255 => return None,
            }
        }
        Some(Self(found))
    }

    fn has(&self, operator: u16) -> bool {
        self.0.contains_key(&operator)
    }

    /// An operand, counted from the first, that is an offset or a length.
    fn offset(&self, operator: u16, operand: usize) -> Option<usize> {
        usize::try_from((*self.0.get(&operator)?.get(operand)?)?).ok()
    }
}

/// Whether the ranges of a table that says which dictionary a glyph belongs to are in order.
fn is_sorted(select: &[u8]) -> bool {
    let word = |at: usize| Some(u16::from_be_bytes(*select.get(at..)?.first_chunk()?));
    match select.first() {
        Some(0) => true,
        Some(3) => {
            let firsts = || (0..=usize::from(word(1)?)).map(|range| word(3 + range * 3)).collect();
            let firsts: Option<Vec<u16>> = firsts();
            firsts.is_some_and(|all| all.first() == Some(&0) && all.is_sorted_by(|a, b| a < b))
        }
        _ => false,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_that_can_be_read_in_two_ways_is_refused() {
        assert_eq!(Dictionary::read(&[140, 17]).unwrap().offset(CHARSTRINGS, 0), Some(1));
        for twofold in [&[139, 17, 140, 17][..], &[22, 140, 17], &[31, 140, 17], &[255, 140, 17]] {
            assert!(Dictionary::read(twofold).is_none(), "{twofold:?}");
        }
    }

    #[test]
    fn an_index_whose_offsets_go_back_or_begin_late_is_refused() {
        assert!(Index::read(&[0, 2, 1, 1, 2, 3, 7, 8], 0).is_some());
        assert!(Index::read(&[0, 2, 1, 1, 4, 3, 7, 8], 0).is_none());
        assert!(Index::read(&[0, 1, 1, 2, 3, 7, 8], 0).is_none());
    }

    #[test]
    fn unsorted_ranges_of_glyphs_are_refused() {
        let ranges = |firsts: [u8; 3]| {
            let [a, b, end] = firsts;
            [3, 0, 2, 0, a, 0, 0, b, 1, 0, end]
        };
        assert!(is_sorted(&ranges([0, 5, 9])));
        for unsorted in [[0, 0, 9], [5, 0, 9], [0, 9, 5], [1, 5, 9]] {
            assert!(!is_sorted(&ranges(unsorted)), "{unsorted:?}");
        }
    }

    #[test]
    fn dictionaries_of_fonts_go_with_a_font_that_says_so() {
        // Header, no name, one top dictionary, no strings, no subroutines, no glyphs; then the dictionaries.
        let table = |top: &[u8]| {
            let mut table = vec![1, 0, 4, 1, 0, 0, 0, 1, 1, 1, top.len() as u8 + 1];
            table.extend_from_slice(top);
            table.extend_from_slice(&[0; 6]);
            table
        };
        // CharStrings at the empty index behind the top dictionary.
        let at = |length: u8| 139 + 11 + length;
        assert!(Font::read(&table(&[at(2), 17])).is_some());
        for half in [[at(7), 17, 139, 139, 139, 12, 30], [at(7), 17, 28, 0, at(7), 12, 36]] {
            assert!(Font::read(&table(&half)).is_none(), "{half:?}");
        }
    }
}
