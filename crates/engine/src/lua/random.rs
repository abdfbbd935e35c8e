//! `math.random` as in Redis: the same numbers for the same seed on every platform. As in Redis 7,
//! the generator is not seeded for each script.

use super::native::Raise;
use super::numeric::to_i32;
use super::stack::Stack;

/// The generator of `drand48`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Random(u64);

impl Random {
    fn seeded(seed: i32) -> Self {
        Self((u64::from(seed as u32) << 16) | 0x330e)
    }

    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & 0xffff_ffff_ffff;
        (self.0 >> 17) as u32
    }
}

impl Default for Random {
    /// The state of `drand48` before it is seeded.
    fn default() -> Self {
        Self(0x1234_abcd_330e)
    }
}

/// `math.random([from,] to)`.
pub(super) fn random(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    const MAX: u32 = i32::MAX as u32;
    let mut random = stack.state().random.get();
    let fraction = f64::from(random.next() % MAX) / f64::from(MAX);
    stack.state().random.set(random);
    let (low, high) = match stack.args() {
        0 => {
            stack.push_number(fraction);
            return Ok(1);
        }
        1 => {
            let high = to_i32(stack.check_number(1)?);
            if high < 1 {
                return Err(Raise::Argument(1, "interval is empty".to_owned()));
            }
            (1, high)
        }
        2 => {
            let (low, high) = (to_i32(stack.check_number(1)?), to_i32(stack.check_number(2)?));
            if low > high {
                return Err(Raise::Argument(2, "interval is empty".to_owned()));
            }
            (low, high)
        }
        _ => return Err(Raise::Here("wrong number of arguments".to_owned())),
    };
    // The width overflows in C too, where Redis computes it in 32 bits.
    let width = f64::from(high.wrapping_sub(low).wrapping_add(1));
    stack.push_number((fraction * width).floor() + f64::from(low));
    Ok(1)
}

/// `math.randomseed(seed)`.
pub(super) fn randomseed(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let seed = to_i32(stack.check_number(1)?);
    stack.state().random.set(Random::seeded(seed));
    Ok(0)
}
