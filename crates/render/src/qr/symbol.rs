//! What a symbol of one version looks like before there is a text, and drawing a text into it.

use super::bits::Codewords;
use super::penalty::penalty;

/// More rows than version 10 has.
pub(super) const ROWS: usize = 64;

/// Masks that are tried. Any mask is readable; the standard's choice between all eight is for texts
/// that happen to look like one of them, and a text cannot look like two.
const MASKS: [usize; 2] = [0, 6];

/// Everything about a version that does not depend on the text.
pub(super) struct Layout {
    size: usize,
    codewords: Codewords,
    /// The fixed patterns.
    fixed: [u64; ROWS],
    /// Where the data bits go, in order: column and row.
    order: Vec<(u8, u8)>,
    /// For every mask: what it flips, and its format bits; as rows and as columns.
    masks: [[[u64; ROWS]; 2]; MASKS.len()],
}

impl Layout {
    pub(super) fn new(version: usize) -> Self {
        let size = version * 4 + 17;
        let mut canvas = Canvas { size, dark: [0; ROWS], taken: [0; ROWS] };
        canvas.patterns(version);
        let masks = MASKS.map(|mask| {
            let rows = mask_rows(mask, size, &canvas.taken);
            [rows, transposed(&rows)]
        });
        let codewords = Codewords::new(version);
        let mut order = data_order(size, &canvas.taken);
        // A few modules at the end are left over in most versions; they stay as the mask has them.
        order.truncate(codewords.total() * 8);
        Self { size, codewords, fixed: canvas.dark, order, masks }
    }

    /// Draws `text`, which fits, with the first mask that leaves nothing a reader could stumble over,
    /// or else the one of less penalty.
    pub(super) fn draw(&self, text: &[u8], rows: &mut Vec<u64>) {
        let codewords = self.codewords.encode(text);
        let mut across = self.fixed;
        for (places, &codeword) in self.order.chunks_exact(8).zip(&codewords) {
            for (bit, &(x, y)) in places.iter().enumerate() {
                let dark = u64::from(codeword >> (7 - bit) & 1);
                across[usize::from(y) % ROWS] |= dark << x;
            }
        }
        let down = transposed(&across);
        let mut best = (u32::MAX, &self.masks[0][0]);
        for [mask, mask_down] in &self.masks {
            let cost = penalty(&across, &down, mask, mask_down, self.size, best.0);
            if cost < best.0 {
                best = (cost, mask);
            }
            // Nine of ten random texts have less: the finder patterns' 800, and 0.7 for each module.
            if (cost as usize) < 900 + self.size * self.size * 3 / 4 {
                break;
            }
        }
        rows.clear();
        rows.extend(across.iter().zip(best.1).take(self.size).map(|(row, mask)| row ^ mask));
    }
}

struct Canvas {
    size: usize,
    dark: [u64; ROWS],
    taken: [u64; ROWS],
}

impl Canvas {
    fn set(&mut self, x: isize, y: isize, dark: bool) {
        let inside = 0..self.size as isize;
        if inside.contains(&x) && inside.contains(&y) {
            let (x, y) = (x as usize, y as usize);
            self.taken[y] |= 1 << x;
            self.dark[y] = self.dark[y] & !(1 << x) | u64::from(dark) << x;
        }
    }

    fn patterns(&mut self, version: usize) {
        let size = self.size as isize;
        for i in 0..size {
            self.set(6, i, i % 2 == 0);
            self.set(i, 6, i % 2 == 0);
        }
        for (x, y) in [(3, 3), (size - 4, 3), (3, size - 4)] {
            self.rings(x, y, 4, |ring| ring != 2 && ring != 4);
        }
        let centres = alignment_centres(version, self.size);
        let last = centres.len().saturating_sub(1);
        for (i, &x) in centres.iter().enumerate() {
            for (j, &y) in centres.iter().enumerate() {
                // The other three corners have finder patterns.
                if !matches!((i, j), (0, 0)) && (i, j) != (0, last) && (i, j) != (last, 0) {
                    self.rings(x, y, 2, |ring| ring != 1);
                }
            }
        }
        // Room for the format, which belongs to the mask; row and column 6 are timing.
        for i in (0..9).filter(|&i| i != 6) {
            self.set(8, i, false);
            self.set(i, 8, false);
        }
        for i in 0..8 {
            self.set(8, size - 1 - i, false);
            self.set(size - 1 - i, 8, false);
        }
        self.set(8, size - 8, true);
        if version >= 7 {
            let mut remainder = version as u32;
            for _ in 0..12 {
                remainder = (remainder << 1) ^ ((remainder >> 11) * 0x1F25);
            }
            let bits = (version as u32) << 12 | remainder;
            for i in 0..18 {
                let (a, b) = (size - 11 + i % 3, i / 3);
                self.set(a, b, bits >> i & 1 == 1);
                self.set(b, a, bits >> i & 1 == 1);
            }
        }
    }

    fn rings(&mut self, x: isize, y: isize, radius: isize, dark: fn(isize) -> bool) {
        for dy in -radius..=radius {
            for dx in -radius..=radius {
                self.set(x + dx, y + dy, dark(dx.abs().max(dy.abs())));
            }
        }
    }
}

fn alignment_centres(version: usize, size: usize) -> Vec<isize> {
    if version == 1 {
        return Vec::new();
    }
    let count = version / 7 + 2;
    let step = (version * 8 + count * 3 + 5) / (count * 4 - 4) * 2;
    let mut centres: Vec<isize> = (0..count - 1).map(|i| (size - 7 - i * step) as isize).collect();
    centres.push(6);
    centres.reverse();
    centres
}

/// The zigzag of the data: two columns at a time from the right, up and down in turns.
fn data_order(size: usize, taken: &[u64; ROWS]) -> Vec<(u8, u8)> {
    let mut order = Vec::new();
    let mut right = size - 1;
    loop {
        if right == 6 {
            right = 5;
        }
        let upward = (right + 1) & 2 == 0;
        for step in 0..size {
            let y = if upward { size - 1 - step } else { step };
            for x in [right, right - 1] {
                if taken[y] >> x & 1 == 0 {
                    order.push((x as u8, y as u8));
                }
            }
        }
        if right < 2 {
            return order;
        }
        right -= 2;
    }
}

fn mask_rows(mask: usize, size: usize, taken: &[u64; ROWS]) -> [u64; ROWS] {
    let mut rows = [0; ROWS];
    for y in 0..size {
        for x in 0..size {
            let flips = match mask {
                0 => (x + y) % 2 == 0,
                1 => y % 2 == 0,
                2 => x % 3 == 0,
                3 => (x + y) % 3 == 0,
                4 => (x / 3 + y / 2) % 2 == 0,
                5 => x * y % 2 + x * y % 3 == 0,
                6 => (x * y % 2 + x * y % 3) % 2 == 0,
                _ => ((x + y) % 2 + x * y % 3) % 2 == 0,
            };
            if flips && taken[y] >> x & 1 == 0 {
                rows[y] |= 1 << x;
            }
        }
    }
    // Level M is 0 in the two bits above the mask.
    let mut remainder = mask as u32;
    for _ in 0..10 {
        remainder = (remainder << 1) ^ ((remainder >> 9) * 0x537);
    }
    let format = ((mask as u32) << 10 | remainder) ^ 0x5412;
    let mut set = |x: usize, y: usize, bit: usize| rows[y] |= u64::from(format >> bit & 1) << x;
    for i in 0..6 {
        set(8, i, i);
    }
    set(8, 7, 6);
    set(8, 8, 7);
    set(7, 8, 8);
    for i in 9..15 {
        set(14 - i, 8, i);
    }
    for i in 0..8 {
        set(size - 1 - i, 8, i);
    }
    for i in 8..15 {
        set(8, size - 15 + i, i);
    }
    rows
}

/// Rows as columns: blocks of 32, 16, … modules change places across the diagonal.
fn transposed(rows: &[u64; ROWS]) -> [u64; ROWS] {
    let mut rows = *rows;
    let mut block = 32;
    let mut low = u64::MAX >> 32;
    while block > 0 {
        let mut at = 0;
        while at < ROWS {
            for y in at..at + block {
                let swapped = ((rows[y] >> block) ^ rows[y + block]) & low;
                rows[y] ^= swapped << block;
                rows[y + block] ^= swapped;
            }
            at += 2 * block;
        }
        block /= 2;
        low ^= low << block;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_turns_rows_into_columns() {
        let mut state = 7_u64;
        let rows: [u64; ROWS] = std::array::from_fn(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state ^ state << 31
        });
        let columns = transposed(&rows);
        for (y, row) in rows.iter().enumerate() {
            for (x, column) in columns.iter().enumerate() {
                assert_eq!(row >> x & 1, column >> y & 1, "{x}, {y}");
            }
        }
    }
}
