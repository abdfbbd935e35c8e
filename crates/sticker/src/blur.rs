//! Soft shadows and light: a mask at a quarter of the size, blurred by three box filters, drawn larger.

use tiny_skia::{FillRule, Mask, Path, Pixmap, PremultipliedColorU8, Transform};

use crate::Colour;

/// Pixels of the canvas along one side of the mask's pixel.
const SCALE: usize = 4;
const PASSES: usize = 3;

/// A blurred mask of paths.
pub(crate) struct Soft {
    data: Vec<u8>,
    width: usize,
    height: usize,
}

impl Soft {
    /// The filled paths on a canvas of this size, moved, blurred with a radius in the mask's pixels.
    pub(crate) fn of(
        paths: &[&Path],
        canvas: (u32, u32),
        moved: (f32, f32),
        radius: usize,
    ) -> Option<Self> {
        let (width, height) = (canvas.0.div_ceil(SCALE as u32), canvas.1.div_ceil(SCALE as u32));
        let mut mask = Mask::new(width, height)?;
        let scale = 1.0 / SCALE as f32;
        let transform =
            Transform::from_row(scale, 0.0, 0.0, scale, moved.0 * scale, moved.1 * scale);
        for path in paths {
            mask.fill_path(path, FillRule::Winding, true, transform);
        }
        let mut soft = Self { data: mask.take(), width: width as usize, height: height as usize };
        soft.blur(radius);
        Some(soft)
    }

    /// The stronger of the two at each place; `other` is weakened to so many 256ths.
    pub(crate) fn or(mut self, other: &Self, weight: u32) -> Self {
        for (own, other) in self.data.iter_mut().zip(&other.data) {
            *own = (*own).max(((u32::from(*other) * weight) >> 8) as u8);
        }
        self
    }

    fn blur(&mut self, radius: usize) {
        let mut lines = vec![0; self.data.len()];
        for _ in 0..PASSES {
            for (from, to) in
                self.data.chunks_exact(self.width).zip(lines.chunks_exact_mut(self.width))
            {
                box_filter(from, to, radius);
            }
            // Columns are filtered as rows of the transposed mask.
            let mut columns = vec![0; lines.len()];
            transpose(&lines, &mut columns, self.width);
            let mut filtered = vec![0; lines.len()];
            for (from, to) in
                columns.chunks_exact(self.height).zip(filtered.chunks_exact_mut(self.height))
            {
                box_filter(from, to, radius);
            }
            transpose(&filtered, &mut self.data, self.height);
        }
    }

    /// Fills an empty picture with the colour, `strength` 256ths of it where the mask is full.
    pub(crate) fn paint(&self, onto: &mut Pixmap, colour: Colour, strength: u32) {
        let width = onto.width() as usize;
        let shades = shades(colour, strength);
        let mut row = vec![0_u32; self.width];
        for (y, line) in onto.pixels_mut().chunks_exact_mut(width).enumerate() {
            let (upper, lower, weight) = neighbours(y, self.height);
            for (x, value) in row.iter_mut().enumerate() {
                let above = u32::from(self.data[upper * self.width + x]);
                let below = u32::from(self.data[lower * self.width + x]);
                *value = above * (8 - weight) + below * weight;
            }
            if row.iter().all(|&value| value == 0) {
                continue;
            }
            for (x, pixel) in line.iter_mut().enumerate() {
                let (left, right, weight) = neighbours(x, self.width);
                let value = row[left] * (8 - weight) + row[right] * weight;
                if value >= 64 {
                    *pixel = shades[(value >> 6) as usize];
                }
            }
        }
    }
}

/// The two nearest pixels of the mask, and how many eighths of the second.
fn neighbours(at: usize, most: usize) -> (usize, usize, u32) {
    // In eighths of the mask's pixels, whose middles are at 4, 12, ….
    let eighths = (2 * at + 1).saturating_sub(4);
    let first = (eighths / 8).min(most - 1);
    (first, (first + 1).min(most - 1), (eighths % 8) as u32)
}

/// The colour for every value of the mask.
fn shades(colour: Colour, strength: u32) -> Vec<PremultipliedColorU8> {
    let shade = |value: u32| {
        let alpha = (value * strength) >> 8;
        let part = |colour: u8| (u32::from(colour) * alpha / 255) as u8;
        let (red, green, blue) = (part(colour.red), part(colour.green), part(colour.blue));
        PremultipliedColorU8::from_rgba(red, green, blue, alpha as u8)
            .unwrap_or(PremultipliedColorU8::TRANSPARENT)
    };
    (0..256).map(shade).collect()
}

/// The mean of each value and `radius` neighbours on both sides.
fn box_filter(from: &[u8], to: &mut [u8], radius: usize) {
    let count = 2 * radius as u32 + 1;
    let inverse = (65_536 + count / 2) / count;
    let mut sum: u32 = from.iter().take(radius).map(|&value| u32::from(value)).sum();
    for at in 0..from.len() {
        sum += from.get(at + radius).map_or(0, |&value| u32::from(value));
        if at > radius {
            sum -= u32::from(from[at - radius - 1]);
        }
        to[at] = ((sum * inverse + 0x8000) >> 16).min(255) as u8;
    }
}

/// Turns rows of `width` into columns.
fn transpose(from: &[u8], to: &mut [u8], width: usize) {
    let height = from.len() / width;
    for (y, row) in from.chunks_exact(width).enumerate() {
        for (x, &value) in row.iter().enumerate() {
            to[x * height + y] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_filter_keeps_the_middle_of_an_even_field() {
        let mut to = [0; 9];
        box_filter(&[90; 9], &mut to, 2);
        assert_eq!(to, [54, 72, 90, 90, 90, 90, 90, 72, 54]);
    }

    #[test]
    fn turning_twice_changes_nothing() {
        let (from, mut turned, mut back) = ([1, 2, 3, 4, 5, 6], [0; 6], [0; 6]);
        transpose(&from, &mut turned, 3);
        assert_eq!(turned, [1, 4, 2, 5, 3, 6]);
        transpose(&turned, &mut back, 2);
        assert_eq!(back, from);
    }
}
