//! Takes the fields out of laid-out pages: what is left is the same on every ticket.
//!
//! The prelude puts every field into a box with a label of ours. The walk goes through the frames in
//! drawing order, keeps what is static, and turns each labelled box into a [`Field`]: where it is on
//! the page (with rotation and scale), how large, and in which style its sample letter was set.
//! Whatever a stamper could not draw the same way is told as an obstacle; such a template is typeset.

mod around;
mod fill;
mod geometry;
mod labels;
mod samples;
mod spec;

use stampede_render::compiled::{Field, FieldKind, FontSource, TextField};
use typst::layout::{Abs, Frame, FrameItem, GroupItem, Point, Size, Transform};
use typst::text::TextItem;
use typst_layout::PagedDocument;

use self::around::{Around, clipped};
use self::geometry::{Area, covers, matrix};
use self::labels::Labels;
use self::samples::{collect_choices, samples_in, spec_in};
use self::spec::{CodeSpec, ImageSpec, TextSpec};
use crate::fonts::Fonts;

pub(crate) use self::fill::Gradient;

/// Everything a walk found.
pub(crate) struct Extracted {
    /// The pages without their fields.
    pub(crate) pages: Vec<Frame>,
    /// Fields in drawing order. Choices of images are not filled in yet: see `overlays`.
    pub(crate) fields: Vec<Field>,
    /// Drawings that a value of the ticket turns on, each of which becomes an object of its own.
    pub(crate) overlays: Vec<Overlay>,
    /// Gradients that texts are filled with, by the index that their pattern's name ends with.
    pub(crate) gradients: Vec<Gradient>,
    /// Fonts of the text fields.
    pub(crate) fonts: Vec<FontSource>,
    /// What a stamper could not do.
    pub(crate) obstacles: Vec<String>,
}

/// A drawing for one value of one field.
pub(crate) struct Overlay {
    /// Which of the fields draws it.
    pub(crate) field: usize,
    /// For which value; empty for any.
    pub(crate) value: String,
    /// What is drawn.
    pub(crate) frame: Frame,
}

/// Takes the fields out of all pages.
pub(crate) fn extract(document: &PagedDocument, fonts: &Fonts) -> Extracted {
    let mut walk = Walk::new(fonts);
    for page in document.pages() {
        let around = Around::page(page.frame.size());
        walk.page_size = page.frame.size();
        let frame = walk.frame(&page.frame, &around);
        walk.found.pages.push(frame);
        walk.find_painted_over();
        walk.page += 1;
    }
    walk.found
}

struct Walk<'a> {
    fonts: &'a Fonts,
    labels: Labels,
    page: u32,
    page_size: Size,
    found: Extracted,
    /// Font of the book → index among the fields' fonts.
    used: Vec<(usize, u32)>,
    /// Boxes of this page's fields, and where paint came later.
    boxes: Vec<(String, Area)>,
    painted_over: Vec<String>,
}

impl<'a> Walk<'a> {
    fn new(fonts: &'a Fonts) -> Self {
        Self {
            fonts,
            labels: Labels::new(),
            page: 0,
            page_size: Size::zero(),
            found: Extracted {
                pages: Vec::new(),
                fields: Vec::new(),
                overlays: Vec::new(),
                gradients: Vec::new(),
                fonts: Vec::new(),
                obstacles: Vec::new(),
            },
            used: Vec::new(),
            boxes: Vec::new(),
            painted_over: Vec::new(),
        }
    }

    /// The frame without its fields.
    fn frame(&mut self, frame: &Frame, around: &Around) -> Frame {
        let mut rest = Frame::new(frame.size(), frame.kind());
        if frame.has_baseline() {
            rest.set_baseline(frame.baseline());
        }
        for (pos, item) in frame.items() {
            match item {
                FrameItem::Group(group) => {
                    let inner = around.inside(*pos, group);
                    if let Some(kept) = self.group(group, &inner) {
                        rest.push(*pos, FrameItem::Group(kept));
                    }
                }
                item => {
                    self.note_paint(*pos, item, around);
                    rest.push(*pos, item.clone());
                }
            }
        }
        rest
    }

    /// What of the group stays on the page.
    fn group(&mut self, group: &GroupItem, inner: &Around) -> Option<GroupItem> {
        let label = group.label;
        if label == Some(self.labels.text) {
            self.text(group, inner);
        } else if label == Some(self.labels.qr) {
            self.code(group, inner);
        } else if label == Some(self.labels.image) {
            self.image(group, inner);
        } else if label == Some(self.labels.only) {
            self.only(group, inner);
        } else {
            return Some(GroupItem { frame: self.frame(&group.frame, inner), ..group.clone() });
        }
        None
    }

    fn text(&mut self, group: &GroupItem, inner: &Around) {
        let Some(spec) = spec_in(&group.frame).and_then(|dict| TextSpec::read(&dict)) else {
            return;
        };
        let samples = samples_in(&group.frame, Transform::identity());
        // A hidden field has no sample, and draws nothing.
        let Some((first, origin)) = samples.texts.first() else { return };
        if samples.other > 0 {
            self.obstacle(&spec.name, "is underlined or otherwise decorated");
        }
        if first.stroke.is_some() {
            self.obstacle(&spec.name, "has an outlined text");
        }
        if spec.has_coverage {
            self.obstacle(&spec.name, "has a font that covers only some characters");
        }
        let size = first.size.to_pt();
        let line_height = match samples.texts.get(1) {
            Some((_, next)) if size > 0.0 => (next.y - origin.y).to_pt() / size,
            _ => 1.2,
        };
        let baseline = Transform::translate(Abs::zero(), origin.y);
        let width = group.frame.width();
        let fill = match fill::read(&first.fill, inner, self.page_size, &mut self.found.gradients) {
            Ok(fill) => fill,
            Err(problem) => return self.obstacle(&spec.name, problem),
        };
        let fonts = self.chain(first, &spec);
        // Nearly as high as capitals: descenders may meet the next line's paint without harm.
        let (top, bottom) = (origin.y - first.size * 0.7, origin.y);
        let bottom = bottom + first.size * (line_height * f64::from(spec.lines - 1));
        let area =
            Area::of(Point::new(Abs::zero(), top), Point::new(width, bottom), inner.transform);
        let field = Field {
            name: spec.name.clone(),
            page: self.page,
            transform: matrix(inner.transform.pre_concat(baseline)),
            kind: FieldKind::Text(TextField {
                width: width.to_pt() as f32,
                size: size as f32,
                min_size: (size * spec.min) as f32,
                lines: spec.lines,
                line_height: line_height as f32,
                align: spec.align,
                // `upper(field(…))` shows in the sample.
                upper: spec.upper || first.text == "X",
                tracking: spec.tracking as f32,
                features: spec.features.clone(),
                lang: spec.lang.clone(),
                fonts,
                fill,
            }),
        };
        self.add(field, area, inner);
    }

    fn code(&mut self, group: &GroupItem, inner: &Around) {
        let Some(spec) = spec_in(&group.frame).and_then(|dict| CodeSpec::read(&dict)) else {
            return;
        };
        let size = group.frame.size();
        let has_background = spec.background.is_some();
        let field = Field {
            name: spec.name,
            page: self.page,
            transform: matrix(inner.transform),
            kind: FieldKind::Qr {
                side: size.x.min(size.y).to_pt() as f32,
                fill: spec.fill,
                background: spec.background,
            },
        };
        // Without a background, a clip may cut into the quiet zone's corners, which nobody sees: it
        // is four modules of at least 29.
        let quiet = if has_background { Abs::zero() } else { size.x * 0.1 };
        let area = Area::of(
            Point::splat(quiet),
            Point::new(size.x - quiet, size.y - quiet),
            inner.transform,
        );
        self.add(field, area, inner);
    }

    fn image(&mut self, group: &GroupItem, inner: &Around) {
        let Some(spec) = spec_in(&group.frame).and_then(|dict| ImageSpec::read(&dict)) else {
            return;
        };
        let size = group.frame.size();
        let field = Field {
            name: spec.name,
            page: self.page,
            transform: matrix(inner.transform),
            kind: FieldKind::Image {
                width: size.x.to_pt() as f32,
                height: size.y.to_pt() as f32,
                choices: Vec::new(),
            },
        };
        let number = self.found.fields.len();
        let mut choices = Vec::new();
        collect_choices(&group.frame, self.labels.choice, &mut choices);
        for (value, choice) in spec.values.into_iter().zip(choices) {
            let mut frame = Frame::hard(size);
            frame.push(Point::zero(), FrameItem::Group(GroupItem { label: None, ..choice }));
            self.found.overlays.push(Overlay { field: number, value, frame });
        }
        self.add(field, Area::of(Point::zero(), size.to_point(), inner.transform), inner);
    }

    /// The whole page with nothing on it but this group, so that everything stays where it is.
    fn only(&mut self, group: &GroupItem, inner: &Around) {
        let Some(name) = spec_in(&group.frame).and_then(|dict| spec::name(&dict)) else { return };
        if inner.only.is_some() {
            self.obstacle(&name, "has an only-with inside another");
        }
        let number = self.found.fields.len();
        self.found.fields.push(Field {
            name: name.clone(),
            page: self.page,
            transform: matrix(Transform::identity()),
            kind: FieldKind::Image {
                width: self.page_size.x.to_pt() as f32,
                height: self.page_size.y.to_pt() as f32,
                choices: Vec::new(),
            },
        });
        let within = Around { only: Some(name), ..inner.clone() };
        let kept = self.frame(&group.frame, &within);
        let mut page = Frame::hard(self.page_size);
        let mut placed = GroupItem::new(kept);
        placed.transform = inner.transform;
        page.push(Point::zero(), FrameItem::Group(clipped(placed, &inner.clips)));
        self.found.overlays.push(Overlay { field: number, value: String::new(), frame: page });
    }

    fn add(&mut self, field: Field, area: Area, around: &Around) {
        for (transform, clip) in &around.clips {
            if !covers(*transform, clip, &area) {
                self.obstacle(&field.name, "is cut off by the box around it");
            }
        }
        if around.only.as_ref().is_some_and(|name| *name != field.name) {
            self.obstacle(&field.name, "is inside an only-with of another value");
        }
        self.boxes.push((field.name.clone(), area));
        self.found.fields.push(field);
    }

    /// Fonts to try for every cluster: those of the style, then the shipped ones.
    fn chain(&mut self, sample: &TextItem, spec: &TextSpec) -> Vec<u32> {
        let variant = sample.font.font().info().variant;
        let mut chain = Vec::new();
        for family in &spec.families {
            let Some(face) = self.fonts.book.select(&family.to_lowercase(), variant) else {
                continue;
            };
            if let Some(file) = self.fonts.variable(face) {
                let problem = format!("has the variable font {file}: use a file for each weight");
                self.obstacle(&spec.name, &problem);
            }
            let known = self.used.iter().find(|(used, _)| *used == face).map(|(_, index)| *index);
            let index = match known {
                Some(index) => index,
                None => {
                    let Some(source) = self.fonts.source(face) else { continue };
                    let index = self.found.fonts.len() as u32;
                    self.found.fonts.push(source);
                    self.used.push((face, index));
                    index
                }
            };
            if !chain.contains(&index) {
                chain.push(index);
            }
        }
        chain
    }

    /// Remembers fields that something is painted on after them: fields are drawn last.
    fn note_paint(&mut self, pos: Point, item: &FrameItem, around: &Around) {
        if around.only.is_some() || self.boxes.is_empty() {
            return;
        }
        let (min, max) = match item {
            FrameItem::Shape(shape, _) if shape.fill.is_some() || shape.stroke.is_some() => {
                let bounds = shape.bbox(true);
                (bounds.min, bounds.max)
            }
            FrameItem::Image(_, size, _) => (Point::zero(), size.to_point()),
            _ => return,
        };
        let painted = Area::of(pos + min, pos + max, around.transform);
        for (name, area) in &self.boxes {
            if area.meets(&painted) && !self.painted_over.contains(name) {
                self.painted_over.push(name.clone());
            }
        }
    }

    fn find_painted_over(&mut self) {
        for name in std::mem::take(&mut self.painted_over) {
            self.obstacle(&name, "has something painted over it");
        }
        self.boxes.clear();
    }

    fn obstacle(&mut self, name: &str, problem: &str) {
        let obstacle = format!("field \"{name}\" {problem}");
        if !self.found.obstacles.contains(&obstacle) {
            self.found.obstacles.push(obstacle);
        }
    }
}
