//! How unfavourable a mask is for a reader, by the four rules of the standard, on whole rows.

use super::symbol::ROWS;

/// Penalty of the masked symbol; anything at least `limit` once it is certain to be that much.
pub(super) fn penalty(
    across: &[u64; ROWS],
    down: &[u64; ROWS],
    mask: &[u64; ROWS],
    mask_down: &[u64; ROWS],
    size: usize,
    limit: u32,
) -> u32 {
    let mut cost = 0;
    let mut dark = 0;
    let mut above = 0;
    let mut pairs_above = 0;
    for y in 0..size.min(ROWS) {
        let row = across[y] ^ mask[y];
        let column = down[y] ^ mask_down[y];
        dark += row.count_ones();
        cost += line(row, size) + line(column, size);
        // Rule 2: every square of 2 × 2 equal modules.
        let pairs = equal_neighbours(row, size);
        if y > 0 {
            cost += 3 * (pairs & pairs_above & !(row ^ above)).count_ones();
        }
        (above, pairs_above) = (row, pairs);
        if cost >= limit {
            return cost;
        }
    }
    // Rule 4: every 5 % that the dark modules are away from half.
    let total = (size * size) as u32;
    let off = (dark * 20).abs_diff(total * 10);
    cost + 10 * (off.div_ceil(total).saturating_sub(1))
}

/// Bit x tells whether modules x and x + 1 are equal.
fn equal_neighbours(line: u64, size: usize) -> u64 {
    !(line ^ (line >> 1)) & ((1 << (size - 1)) - 1)
}

/// Rules 1 and 3 for one row or column.
fn line(line: u64, size: usize) -> u32 {
    // Rule 1: a run of n ≥ 5 equal modules costs n − 2. It has n − 4 places where five are equal:
    // one for each, and two more for each run.
    let equal = equal_neighbours(line, size);
    let three = equal & (equal >> 1);
    let five = three & (three >> 2);
    let mut cost = five.count_ones() + 2 * (five & !(five << 1)).count_ones();
    // Rule 3: 1:1:3:1:1 with four light modules on either side, beyond the edge counting as light.
    // Shifted by four, the edge on the left is there; on the right, words have room above 57 bits,
    // and shifting brings in light modules.
    let low = line << 4;
    let finder =
        low & !(low >> 1) & (low >> 2) & (low >> 3) & (low >> 4) & !(low >> 5) & (low >> 6);
    if finder != 0 {
        let light = !low & !(low >> 1) & !(low >> 2) & !(low >> 3);
        cost += 40 * ((finder & (light << 4)).count_ones() + (finder & (light >> 7)).count_ones());
    }
    cost
}
