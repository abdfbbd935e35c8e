//! Shaping: characters become positioned glyphs, with HarfBuzz's rules.

use std::ops::Range;

use harfrust::{
    Buffer, BufferFlags, Direction, Feature, Language, ShapeOptions, ShapePlan, ShaperFont, Tag,
};
use unicode_script::Script;

use super::runs::{Choice, Directions, Run, split};
use crate::compiled::TextField;
use crate::face::Face;

/// Plans that are kept; a text in many scripts must not fill the memory.
const MAX_PLANS: usize = 128;
/// Glyphs of a line that are kept: a font can make thousands of one character.
const MAX_GLYPHS: usize = 4096;

/// A glyph in its place. Distances are thousandths of an em.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Glyph {
    /// Index of its face.
    pub face: u16,
    /// Its number in the font; 0 if the font has none for the text.
    pub glyph: u16,
    /// From here to the next glyph, tracking included.
    pub advance: f32,
    /// Moved to the right by this.
    pub dx: f32,
    /// Moved up by this.
    pub dy: f32,
    /// The text it stands for, together with the other glyphs of the same start.
    pub start: u32,
    /// Where that text ends.
    pub end: u32,
    /// Whether its text runs leftwards.
    pub leftwards: bool,
}

/// What shaping needs to know of a text field.
pub(crate) struct Setting {
    /// Tells the settings of a template apart; part of the key of plans.
    number: u16,
    fonts: Choice,
    features: Vec<Feature>,
    language: Option<Language>,
    /// In thousandths of an em.
    tracking: f32,
}

impl Setting {
    pub(crate) fn new(number: u16, field: &TextField) -> Self {
        let features = field
            .features
            .iter()
            .map(|(tag, value)| Feature::new(Tag::new(tag), *value, ..))
            .collect();
        Self {
            number,
            fonts: Choice {
                fonts: field.fonts.iter().map(|&font| font as u16).collect(),
                pictures: None,
            },
            features,
            language: Language::new(&field.lang),
            tracking: field.tracking * 1000.0,
        }
    }

    /// A setting without a template: these faces, no features, language or tracking.
    pub(crate) fn plain(number: u16, fonts: Choice) -> Self {
        Self { number, fonts, features: Vec::new(), language: None, tracking: 0.0 }
    }

    /// Faces to try, in this order.
    pub(crate) fn fonts(&self) -> &[u16] {
        &self.fonts.fonts
    }
}

/// Memory that shaping uses again and again.
#[derive(Default)]
pub(crate) struct Workshop {
    buffer: Buffer,
    plans: Vec<(PlanKey, ShapePlan)>,
    runs: Vec<Run>,
}

#[derive(PartialEq, Eq, Clone, Copy)]
struct PlanKey {
    setting: u16,
    face: u16,
    script: Option<Script>,
    leftwards: bool,
}

/// Shapes texts with the faces of one template.
pub(crate) struct Shaper<'a> {
    workshop: &'a mut Workshop,
    faces: &'a [Face],
    fonts: Vec<Option<ShaperFont<'a, 'a>>>,
}

impl<'a> Shaper<'a> {
    /// `workshop` must always be used with the same template, whose plans it keeps.
    pub(crate) fn new(workshop: &'a mut Workshop, faces: &'a [Face]) -> Self {
        let fonts = faces.iter().map(|_| None).collect();
        Self { workshop, faces, fonts }
    }

    /// Appends the glyphs of `text[line]` from left to right, and gives their width in em.
    pub(crate) fn shape(
        &mut self,
        setting: &Setting,
        text: &str,
        line: Range<usize>,
        directions: &Directions<'_>,
        out: &mut Vec<Glyph>,
    ) -> f32 {
        let first = out.len();
        let mut runs = std::mem::take(&mut self.workshop.runs);
        directions.visit(line, |stretch, leftwards| {
            runs.clear();
            split(text, stretch, self.faces, &setting.fonts, &mut runs);
            if leftwards {
                runs.iter().rev().for_each(|run| self.run(setting, text, run, true, out));
            } else {
                runs.iter().for_each(|run| self.run(setting, text, run, false, out));
            }
        });
        self.workshop.runs = runs;
        out.truncate(first + MAX_GLYPHS);
        out[first..].iter().map(|glyph| glyph.advance).sum::<f32>() / 1000.0
    }

    fn run(
        &mut self,
        setting: &Setting,
        text: &str,
        run: &Run,
        leftwards: bool,
        out: &mut Vec<Glyph>,
    ) {
        let Some(face) = self.faces.get(usize::from(run.face)) else { return };
        let font = self.fonts[usize::from(run.face)]
            .get_or_insert_with(|| ShaperFont::new(face.shaping()));
        let Workshop { buffer, plans, .. } = &mut *self.workshop;
        let direction = if leftwards { Direction::RightToLeft } else { Direction::LeftToRight };
        let script = run.script.and_then(script_of);
        let key =
            PlanKey { setting: setting.number, face: run.face, script: run.script, leftwards };
        let plan = match plans.iter().position(|(other, _)| *other == key) {
            Some(index) => &plans[index].1,
            None => {
                if plans.len() >= MAX_PLANS {
                    plans.clear();
                }
                let language = setting.language.as_ref();
                let plan =
                    ShapePlan::new(face.shaping(), direction, script, language, &setting.features);
                plans.push((key, plan));
                &plans[plans.len() - 1].1
            }
        };
        buffer.clear();
        buffer.set_flags(BufferFlags::REMOVE_DEFAULT_IGNORABLES);
        buffer.push_str(&text[run.range.clone()]);
        buffer.set_direction(direction);
        buffer.set_script(script);
        let options = ShapeOptions::new().plan(Some(plan)).features(&setting.features);
        // Fails only if plan and buffer disagree, and both were just made from the same.
        if harfrust::shape(font, buffer, options).is_err() {
            return;
        }
        let scale = 1000.0 / f32::from(face.units_per_em);
        let first = out.len();
        let glyphs = buffer.glyph_infos().iter().zip(buffer.glyph_positions());
        out.extend(glyphs.take(MAX_GLYPHS).map(|(info, position)| Glyph {
            face: run.face,
            glyph: u16::try_from(info.glyph_id).unwrap_or(0),
            advance: position.x_advance as f32 * scale,
            dx: position.x_offset as f32 * scale,
            dy: position.y_offset as f32 * scale,
            start: run.range.start as u32 + info.cluster,
            end: 0,
            leftwards,
        }));
        let glyphs = &mut out[first..];
        finish_clusters(glyphs, run.range.end as u32, leftwards);
        track(glyphs, setting.tracking);
    }
}

/// A cluster ends where the next one of the text begins.
fn finish_clusters(glyphs: &mut [Glyph], end: u32, leftwards: bool) {
    let mut next = end;
    let mut current = (u32::MAX, end);
    let mut finish = |glyph: &mut Glyph| {
        if glyph.start != current.0 {
            current = (glyph.start, next);
            next = glyph.start;
        }
        glyph.end = current.1;
    };
    if leftwards {
        glyphs.iter_mut().for_each(&mut finish);
    } else {
        glyphs.iter_mut().rev().for_each(&mut finish);
    }
}

/// Adds the tracking after each cluster.
fn track(glyphs: &mut [Glyph], tracking: f32) {
    if tracking == 0.0 {
        return;
    }
    for index in 0..glyphs.len() {
        if glyphs.get(index + 1).is_none_or(|next| next.start != glyphs[index].start) {
            glyphs[index].advance += tracking;
        }
    }
}

fn script_of(script: Script) -> Option<harfrust::Script> {
    let tag: [u8; 4] = script.short_name().as_bytes().try_into().ok()?;
    harfrust::Script::from_iso15924_tag(Tag::new(&tag))
}
