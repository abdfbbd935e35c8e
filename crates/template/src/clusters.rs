//! Puts letters and their marks together again.
//!
//! Typst cuts a line of text wherever a glyph is raised, and gives the whole text of a letter with its
//! mark to both sides of the cut: readers then find the letter twice (Thai `ดี` as `ดีดี`). Here the two sides
//! become one text again, for which the PDF writer knows what to do.

use typst::layout::{Em, Frame, FrameItem, GroupItem, Point};
use typst::text::{Glyph, TextItem};

/// How far the second side may be from the end of the first, in points: what rounding makes.
const SLACK: f64 = 0.01;

/// The frame with no letter cut from its marks.
pub(crate) fn joined(frame: &Frame) -> Frame {
    let mut whole = Frame::new(frame.size(), frame.kind());
    if frame.has_baseline() {
        whole.set_baseline(frame.baseline());
    }
    let mut last: Option<(Point, TextItem)> = None;
    for (pos, item) in frame.items() {
        if let FrameItem::Text(text) = item {
            last = Some(match last.take() {
                Some((begin, before)) => match join(begin, &before, *pos, text) {
                    Some(both) => (begin, both),
                    None => {
                        whole.push(begin, FrameItem::Text(before));
                        (*pos, text.clone())
                    }
                },
                None => (*pos, text.clone()),
            });
            continue;
        }
        if let Some((pos, text)) = last.take() {
            whole.push(pos, FrameItem::Text(text));
        }
        let item = match item {
            FrameItem::Group(group) => {
                FrameItem::Group(GroupItem { frame: joined(&group.frame), ..group.clone() })
            }
            item => item.clone(),
        };
        whole.push(*pos, item);
    }
    if let Some((pos, text)) = last {
        whole.push(pos, FrameItem::Text(text));
    }
    whole
}

/// Both texts as one, if a letter was cut between them.
fn join(begin: Point, first: &TextItem, pos: Point, second: &TextItem) -> Option<TextItem> {
    let alike = first.font == second.font
        && first.size == second.size
        && first.fill == second.fill
        && first.stroke == second.stroke;
    let (end, start) = (first.glyphs.last()?, second.glyphs.first()?);
    let shared = first.text.get(end.range())?;
    let cut = end.span == start.span && Some(shared) == second.text.get(start.range());
    let gap = (begin.x + first.width() - pos.x).to_pt().abs();
    if !alike || !cut || gap > SLACK {
        return None;
    }
    // Where text runs leftwards, the second side comes earlier in it.
    let (text, first_by, second_by) =
        if end.range().end == first.text.len() && start.range.start == 0 {
            let before = end.range().start;
            (format!("{}{}", &first.text[..before], second.text), 0, before)
        } else if end.range.start == 0 && start.range().end == second.text.len() {
            let rest = &first.text[shared.len()..];
            (format!("{}{rest}", second.text), second.text.len() - shared.len(), 0)
        } else {
            return None;
        };
    let (first_by, second_by) = (u16::try_from(first_by).ok()?, u16::try_from(second_by).ok()?);
    let rise = Em::from_abs(begin.y - pos.y, first.size);
    let moved = |glyph: &Glyph, by: u16, rise: Em| Glyph {
        range: glyph.range.start.saturating_add(by)..glyph.range.end.saturating_add(by),
        y_offset: glyph.y_offset + rise,
        ..glyph.clone()
    };
    let glyphs = first.glyphs.iter().map(|glyph| moved(glyph, first_by, Em::zero()));
    let glyphs = glyphs.chain(second.glyphs.iter().map(|glyph| moved(glyph, second_by, rise)));
    Some(TextItem { text: text.into(), glyphs: glyphs.collect(), ..first.clone() })
}
