//! The library `bit`: operations on 32-bit numbers.

use super::native::{Raise, native};
use super::stack::Stack;

/// Pushes the library.
pub(super) fn push_library(stack: &mut Stack<'_>) {
    let functions = [
        ("tobit", native!(|stack| unary(stack, |bits| bits))),
        ("bnot", native!(|stack| unary(stack, |bits| !bits))),
        ("bswap", native!(|stack| unary(stack, u32::swap_bytes))),
        ("band", native!(|stack| fold(stack, |left, right| left & right))),
        ("bor", native!(|stack| fold(stack, |left, right| left | right))),
        ("bxor", native!(|stack| fold(stack, |left, right| left ^ right))),
        ("lshift", native!(|stack| shift(stack, |bits, by| bits << by))),
        ("rshift", native!(|stack| shift(stack, |bits, by| bits >> by))),
        ("arshift", native!(|stack| shift(stack, |bits, by| ((bits as i32) >> by) as u32))),
        ("rol", native!(|stack| shift(stack, u32::rotate_left))),
        ("ror", native!(|stack| shift(stack, u32::rotate_right))),
        ("tohex", native!(tohex)),
    ];
    stack.push_table(0, functions.len());
    for (name, function) in functions {
        stack.push_function(function);
        stack.raw_set_field(-2, name);
    }
}

/// The low 32 bits of argument `index`, rounded to an integer.
fn bits(stack: &Stack<'_>, index: usize) -> Result<u32, Raise> {
    // Adding 2^52 + 2^51 leaves the integer in the low bits, as in the original.
    Ok((stack.check_number(index)? + 6_755_399_441_055_744.0).to_bits() as u32)
}

fn push(stack: &mut Stack<'_>, bits: u32) -> Result<usize, Raise> {
    stack.push_number((bits as i32).into());
    Ok(1)
}

fn unary(stack: &mut Stack<'_>, change: fn(u32) -> u32) -> Result<usize, Raise> {
    let value = bits(stack, 1)?;
    push(stack, change(value))
}

fn fold(stack: &mut Stack<'_>, join: fn(u32, u32) -> u32) -> Result<usize, Raise> {
    let mut value = bits(stack, 1)?;
    for index in (2..=stack.args()).rev() {
        value = join(value, bits(stack, index)?);
    }
    push(stack, value)
}

fn shift(stack: &mut Stack<'_>, change: fn(u32, u32) -> u32) -> Result<usize, Raise> {
    let (value, by) = (bits(stack, 1)?, bits(stack, 2)? & 31);
    push(stack, change(value, by))
}

fn tohex(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    let value = bits(stack, 1)?;
    let digits = if stack.args() < 2 { 8 } else { bits(stack, 2)? as i32 };
    let text = if digits < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    let digits = digits.unsigned_abs().min(8) as usize;
    stack.push_bytes(&text.as_bytes()[8 - digits..]);
    Ok(1)
}
