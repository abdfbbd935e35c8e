//! What the prelude left in the box of a field: its description, its sample letters, its choices.

use typst::foundations::{Dict, Label, Value};
use typst::introspection::{MetadataElem, Tag};
use typst::layout::{Frame, FrameItem, GroupItem, Point, Transform};
use typst::text::TextItem;

/// The first dictionary that the prelude left in the frame.
pub(super) fn spec_in(frame: &Frame) -> Option<Dict> {
    frame.items().find_map(|(_, item)| match item {
        FrameItem::Tag(Tag::Start(content, _)) => match &content.to_packed::<MetadataElem>()?.value
        {
            Value::Dict(dict) => Some(dict.clone()),
            _ => None,
        },
        FrameItem::Group(group) => spec_in(&group.frame),
        _ => None,
    })
}

/// What the prelude set in place of a value.
#[derive(Default)]
pub(super) struct Samples {
    /// Texts with their origin in the box.
    pub(super) texts: Vec<(TextItem, Point)>,
    /// How many other things are drawn.
    pub(super) other: usize,
}

/// Everything that is drawn in the box of a field.
pub(super) fn samples_in(frame: &Frame, transform: Transform) -> Samples {
    let mut found = Samples::default();
    for (pos, item) in frame.items() {
        match item {
            FrameItem::Text(text) => found.texts.push((text.clone(), pos.transform(transform))),
            FrameItem::Group(group) => {
                let inner = transform
                    .pre_concat(Transform::translate(pos.x, pos.y))
                    .pre_concat(group.transform);
                let below = samples_in(&group.frame, inner);
                found.texts.extend(below.texts);
                found.other += below.other;
            }
            FrameItem::Tag(_) => {}
            _ => found.other += 1,
        }
    }
    found
}

/// The groups with this label.
pub(super) fn collect_choices(frame: &Frame, label: Label, found: &mut Vec<GroupItem>) {
    for (_, item) in frame.items() {
        let FrameItem::Group(group) = item else { continue };
        if group.label == Some(label) {
            found.push(group.clone());
        } else {
            collect_choices(&group.frame, label, found);
        }
    }
}
