//! Where lines are broken: the largest size at which the text fits.
//!
//! A larger size leaves less room, so more lines are needed and the text is higher: whether a size fits is decided by
//! filling lines greedily, and the largest is found by halving. Given line breaks stay. Words are broken only if that
//! makes the text much larger. At last lines are made as equal as the number of lines allows.

use std::ops::Range;

use stampede_render::lettering::Measured;

use crate::text::MAX_LINES;

/// From one line to the next, in em, as long as nobody has looked at the glyphs.
const PITCH: f32 = 1.1;
/// Height of the first line, in em.
const FIRST: f32 = 0.78;
/// Halvings: the size is exact to a fifth of a pixel.
const STEPS: u32 = 14;
/// Letters smaller than this may be made larger by breaking words.
const SMALL: f32 = 48.0;
/// How much larger they must become.
const WORTH_BREAKING: f32 = 1.3;
const SIZES: Range<f32> = 0.2..1200.0;

/// A given line of the text.
pub(crate) struct Paragraph<'a> {
    /// Where it begins in the whole text.
    pub(crate) start: usize,
    pub(crate) text: &'a str,
    pub(crate) measured: Measured<'a>,
}

/// A line as it is set: which paragraph, and which part of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) paragraph: usize,
    pub(crate) range: Range<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Words {
    Whole,
    Broken,
}

/// The lines with which the text is largest in a box of this width and height.
pub(crate) fn best(paragraphs: &[Paragraph<'_>], width: f32, height: f32) -> Vec<Line> {
    let largest = |words| {
        let (mut low, mut high) = (SIZES.start, SIZES.end);
        for _ in 0..STEPS {
            let size = (low * high).sqrt();
            let lines = fill(paragraphs, width / size, words);
            if lines.is_some_and(|lines| height_of(lines.len()) * size <= height) {
                low = size;
            } else {
                high = size;
            }
        }
        low
    };
    let (mut size, mut words) = (largest(Words::Whole), Words::Whole);
    if size < SMALL {
        let broken = largest(Words::Broken);
        if broken > size * WORTH_BREAKING {
            (size, words) = (broken, Words::Broken);
        }
    }
    let Some(lines) = fill(paragraphs, width / size, words) else { return unbroken(paragraphs) };
    balanced(paragraphs, width / size, words, lines)
}

/// Height of so many lines, in em.
fn height_of(lines: usize) -> f32 {
    FIRST + PITCH * lines.saturating_sub(1) as f32
}

/// Lines filled greedily; `None` if there are too many or a word is too wide.
fn fill(paragraphs: &[Paragraph<'_>], room: f32, words: Words) -> Option<Vec<Line>> {
    let mut lines = Vec::new();
    for (index, paragraph) in paragraphs.iter().enumerate() {
        let (mut start, text) = (0, paragraph.text);
        loop {
            let mut end = paragraph.measured.greedy(start, room);
            if end.is_none() && words == Words::Broken {
                end = paragraph.measured.broken(start, room);
            }
            // An empty paragraph is an empty line.
            let end = if text.is_empty() { 0 } else { end? };
            let kept = start..start + text[start..end].trim_end().len();
            lines.push(Line { paragraph: index, range: kept });
            if lines.len() > MAX_LINES {
                return None;
            }
            start = end;
            if start >= text.len() {
                break;
            }
        }
    }
    Some(lines)
}

/// As many lines, each paragraph in the least room for its own number of lines.
fn balanced(paragraphs: &[Paragraph<'_>], room: f32, words: Words, lines: Vec<Line>) -> Vec<Line> {
    if lines.len() == paragraphs.len() {
        return lines;
    }
    let mut all = Vec::with_capacity(lines.len());
    for (index, paragraph) in paragraphs.iter().enumerate() {
        let own = lines.iter().filter(|line| line.paragraph == index);
        let own = narrowest(std::slice::from_ref(paragraph), room, words, own.cloned().collect());
        all.extend(own.into_iter().map(|line| Line { paragraph: index, ..line }));
    }
    all
}

fn narrowest(one: &[Paragraph<'_>], room: f32, words: Words, lines: Vec<Line>) -> Vec<Line> {
    if lines.len() == 1 {
        return lines;
    }
    let (mut narrow, mut wide, mut best) = (0.0, room, lines);
    for _ in 0..STEPS {
        let middle = (narrow + wide) / 2.0;
        match fill(one, middle, words) {
            Some(lines) if lines.len() <= best.len() => (best, wide) = (lines, middle),
            _ => narrow = middle,
        }
    }
    best
}

fn unbroken(paragraphs: &[Paragraph<'_>]) -> Vec<Line> {
    let line =
        |(paragraph, of): (usize, &Paragraph<'_>)| Line { paragraph, range: 0..of.text.len() };
    paragraphs.iter().enumerate().map(line).collect()
}
