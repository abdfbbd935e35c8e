//! Animations: keyframes of the whole and of each unit.
//!
//! Every animation begins at rest and is at rest again some frames before its end, so that the first frame equals the
//! last and the loop has no seam.

use crate::variant::{Animation, Shape, Variant};

/// Frames of a second.
pub(crate) const RATE: u32 = 60;
/// Frames at rest at the end.
const REST: f32 = 6.0;

/// How far an animation moves things; layouts leave that much free.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Room {
    /// Largest factor of size, from the middle of the canvas.
    pub(crate) scale: f32,
    /// Pixels to both sides.
    pub(crate) x: f32,
    /// Pixels up and down.
    pub(crate) y: f32,
}

impl Room {
    /// Nothing moves.
    pub(crate) const NONE: Self = Self { scale: 1.0, x: 0.0, y: 0.0 };
}

/// How a value goes on from a keyframe to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ease {
    /// Slow, fast, slow.
    Smooth,
    /// Ever slower, as something thrown up.
    Rising,
    /// Ever faster, as something that falls.
    Falling,
    /// Not at all, then at once.
    Jump,
}

/// A keyframe of one or two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Key<const N: usize> {
    pub(crate) frame: f32,
    pub(crate) value: [f32; N],
    pub(crate) ease: Ease,
}

/// What moves everything at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whole {
    /// Factors of size.
    pub(crate) scale: Vec<Key<2>>,
    /// Degrees.
    pub(crate) turn: Vec<Key<1>>,
    /// 1 is opaque.
    pub(crate) opacity: Vec<Key<1>>,
}

/// What moves one unit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Single {
    /// Pixels to the right and down.
    pub(crate) offset: Vec<Key<2>>,
    /// Factors of size, from the middle of the unit's foot.
    pub(crate) scale: Vec<Key<2>>,
}

/// Length of an animation in frames.
pub(crate) fn length(animation: Animation) -> u32 {
    match animation {
        Animation::None => RATE,
        Animation::Pulse => 90,
        Animation::Shake => 96,
        Animation::Fade => 120,
        Animation::Bounce | Animation::Wave => 132,
        Animation::Type => 168,
    }
}

/// The room that an animation needs.
pub(crate) fn room(variant: &Variant) -> Room {
    let height = unit_height(variant);
    match variant.animation {
        // Units on a plate move within it.
        Animation::Bounce | Animation::Wave if variant.shape != Shape::None => Room::NONE,
        // Half of what a unit as wide as the sticker becomes wider.
        Animation::Bounce => Room { x: (WIDER - 1.0) * 230.0, y: height, ..Room::NONE },
        Animation::Wave => Room { y: height, ..Room::NONE },
        Animation::Pulse => Room { scale: PULSE, ..Room::NONE },
        // Half of the canvas times the sine of the angle.
        Animation::Shake => Room { x: 13.0, y: 13.0, ..Room::NONE },
        Animation::None | Animation::Type | Animation::Fade => Room::NONE,
    }
}

/// How much wider a unit is before it jumps. It never is higher than at rest.
const WIDER: f32 = 1.03;
const PULSE: f32 = 1.07;
const SHAKE: f32 = 2.8;

/// How high a unit goes.
fn unit_height(variant: &Variant) -> f32 {
    match (variant.animation, variant.shape) {
        (Animation::Bounce, Shape::None) => 30.0,
        (Animation::Wave, Shape::None) => 20.0,
        (_, Shape::None) => 0.0,
        (Animation::Bounce, _) => 18.0,
        (_, _) => 12.0,
    }
}

fn keys<const N: usize>(list: &[(f32, [f32; N], Ease)]) -> Vec<Key<N>> {
    list.iter().map(|&(frame, value, ease)| Key { frame, value, ease }).collect()
}

/// What moves everything at once.
pub(crate) fn whole(animation: Animation) -> Whole {
    use Ease::Smooth;
    let mut whole = Whole::default();
    match animation {
        Animation::Pulse => {
            let (large, less) = (PULSE, 1.0 + (PULSE - 1.0) * 0.6);
            whole.scale = keys(&[
                (0.0, [1.0; 2], Smooth),
                (14.0, [large; 2], Smooth),
                (28.0, [0.99; 2], Smooth),
                (40.0, [less; 2], Smooth),
                (58.0, [1.0; 2], Smooth),
            ]);
        }
        Animation::Shake => {
            let turns = [0.0, -1.0, 1.0, -0.9, 0.9, -0.6, 0.5, -0.25, 0.0];
            let key = |(index, turn): (usize, &f32)| Key {
                frame: 8.0 + 7.0 * index as f32,
                value: [turn * SHAKE],
                ease: Smooth,
            };
            whole.turn = keys(&[(0.0, [0.0], Smooth)]);
            whole.turn.extend(turns.iter().enumerate().map(key));
        }
        Animation::Fade => {
            whole.opacity = keys(&[
                (0.0, [1.0], Smooth),
                (24.0, [1.0], Smooth),
                (54.0, [0.08], Smooth),
                (62.0, [0.08], Smooth),
                (96.0, [1.0], Smooth),
            ]);
        }
        Animation::None | Animation::Bounce | Animation::Wave | Animation::Type => {}
    }
    whole
}

/// What moves the unit at `index` of `count`; `size` is that of letters, for small ones go less far.
pub(crate) fn single(variant: &Variant, size: f32, index: usize, count: usize) -> Single {
    let height = unit_height(variant).min(size * 0.16);
    match variant.animation {
        Animation::Bounce => hop(height, index, count),
        Animation::Wave => lift(height, index, count),
        _ => Single::default(),
    }
}

/// Frame at which a unit begins: one after the other, the last early enough to end.
fn begin(variant: Animation, takes: f32, index: usize, count: usize, most_apart: f32) -> f32 {
    let free = length(variant) as f32 - takes - REST - 4.0;
    4.0 + index as f32 * (free / count.max(1) as f32).min(most_apart)
}

/// Crouches, jumps, lands softly.
fn hop(height: f32, index: usize, count: usize) -> Single {
    use Ease::{Falling, Rising, Smooth};
    let at = begin(Animation::Bounce, 40.0, index, count, 6.0);
    Single {
        offset: keys(&[
            (0.0, [0.0; 2], Smooth),
            (at + 6.0, [0.0; 2], Rising),
            (at + 18.0, [0.0, -height], Falling),
            (at + 30.0, [0.0; 2], Smooth),
        ]),
        scale: keys(&[
            (0.0, [1.0; 2], Smooth),
            (at, [1.0; 2], Smooth),
            (at + 6.0, [WIDER, 0.9], Smooth),
            (at + 14.0, [0.96, 1.0], Smooth),
            (at + 28.0, [1.0; 2], Smooth),
            (at + 33.0, [WIDER, 0.94], Smooth),
            (at + 40.0, [1.0; 2], Smooth),
        ]),
    }
}

/// Up, a little below, back.
fn lift(height: f32, index: usize, count: usize) -> Single {
    use Ease::Smooth;
    let at = begin(Animation::Wave, 46.0, index, count, 5.0);
    let offset = keys(&[
        (0.0, [0.0; 2], Smooth),
        (at, [0.0; 2], Smooth),
        (at + 16.0, [0.0, -height], Smooth),
        (at + 34.0, [0.0, height * 0.3], Smooth),
        (at + 46.0, [0.0; 2], Smooth),
    ]);
    Single { offset, scale: Vec::new() }
}

/// Opacity of part `index` of `count` while the text is typed: all is seen, all is gone, one after the other appears.
pub(crate) fn typed(index: usize, count: usize) -> Vec<Key<1>> {
    let (gone, begins, ends) = (24.0, 34.0, 128.0);
    let apart = ((ends - begins) / count.max(1) as f32).min(8.0);
    let appears = begins + (index as f32 * apart).round();
    keys(&[(0.0, [1.0], Ease::Jump), (gone, [0.0], Ease::Jump), (appears, [1.0], Ease::Jump)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped;

    const ALL: [Animation; 7] = [
        Animation::None,
        Animation::Bounce,
        Animation::Wave,
        Animation::Pulse,
        Animation::Shake,
        Animation::Type,
        Animation::Fade,
    ];

    fn check<const N: usize>(track: &[Key<N>], length: f32, what: &str) {
        let Some((first, last)) = track.first().zip(track.last()) else { return };
        assert_eq!((first.frame, first.value), (0.0, last.value), "{what} begins as it ends");
        assert!(last.frame <= length - 4.0, "{what} rests at its end");
        assert!(track.windows(2).all(|pair| pair[0].frame < pair[1].frame), "{what} goes forward");
    }

    #[test]
    fn every_track_begins_and_ends_at_rest_in_time() {
        for animation in ALL {
            let frames = length(animation) as f32;
            assert!(frames <= 3.0 * RATE as f32);
            let of = whole(animation);
            check(&of.scale, frames, "scale");
            check(&of.turn, frames, "turn");
            check(&of.opacity, frames, "opacity");
            for count in [1, 2, 30, 200] {
                for index in 0..count {
                    let variant = Variant { animation, ..shipped()[0].variant };
                    let of = single(&variant, 60.0, index, count);
                    check(&of.offset, frames, "offset");
                    check(&of.scale, frames, "a unit's scale");
                    let room = room(&variant);
                    assert!(of.offset.iter().all(|key| key.value[1].abs() <= room.y));
                    assert!(
                        of.scale.iter().all(|key| key.value[0] <= WIDER && key.value[1] <= 1.0)
                    );
                    if animation == Animation::Type {
                        check(&typed(index, count), frames, "typing");
                    }
                }
            }
        }
    }
}
