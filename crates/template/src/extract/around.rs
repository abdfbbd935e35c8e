//! What surrounds an item of a page: where its coordinates are, and what cuts it off.

use typst::layout::{Frame, FrameItem, GroupItem, Point, Size, Transform};
use typst::visualize::Curve;

/// What surrounds an item.
#[derive(Clone)]
pub(super) struct Around {
    /// To the page.
    pub(super) transform: Transform,
    /// The nearest frame that gradients of texts stretch over.
    pub(super) container: Transform,
    pub(super) container_size: Size,
    /// Clips, with the transform of their own coordinates to the page.
    pub(super) clips: Vec<(Transform, Curve)>,
    /// The value of the `only-with` around it.
    pub(super) only: Option<String>,
}

impl Around {
    pub(super) fn page(size: Size) -> Self {
        Self {
            transform: Transform::identity(),
            container: Transform::identity(),
            container_size: size,
            clips: Vec::new(),
            only: None,
        }
    }

    pub(super) fn inside(&self, pos: Point, group: &GroupItem) -> Self {
        let mut inner = self.clone();
        inner.transform = self
            .transform
            .pre_concat(Transform::translate(pos.x, pos.y))
            .pre_concat(group.transform);
        if let Some(clip) = &group.clip {
            inner.clips.push((inner.transform, clip.clone()));
        }
        if group.frame.kind().is_hard() {
            inner.container = inner.transform;
            inner.container_size = group.frame.size();
        }
        inner
    }
}

/// The group inside the clips that were around it on the page.
pub(super) fn clipped(group: GroupItem, clips: &[(Transform, Curve)]) -> GroupItem {
    clips.iter().rev().fold(group, |inner, (transform, clip)| {
        let Some(back) = transform.invert() else { return inner };
        let size = inner.frame.size();
        let mut frame = Frame::soft(size);
        let placed = GroupItem { transform: back.pre_concat(inner.transform), ..inner };
        frame.push(Point::zero(), FrameItem::Group(placed));
        let mut outer = GroupItem::new(frame);
        outer.transform = *transform;
        outer.clip = Some(clip.clone());
        outer
    })
}
