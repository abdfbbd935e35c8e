//! The 80-bit `long double` that `INCRBYFLOAT` and `HINCRBYFLOAT` compute with.
//!
//! Adding 0.1 ten times must print the same as Redis, which adds with a mantissa of 64 bits and prints
//! 17 decimals. The three steps (parse, add, print) are exact on big integers and then rounded to 64
//! bits, half to even. Speed does not matter here.

use num_bigint::{BigInt, BigUint, Sign};

const MANTISSA_BITS: u64 = 64;
/// Numbers of this power of two or more are infinite.
const MAX_EXPONENT: i64 = 16384;
/// The exponent of the last bit of the smallest number.
const MIN_EXPONENT: i64 = -16445;
/// The maximum length of a number in Redis.
const MAX_CHARS: usize = 5 * 1024;

/// A finite number `mantissa × 2^exponent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LongDouble {
    mantissa: BigInt,
    exponent: i64,
}

/// The result of parsing a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// A number.
    Finite(LongDouble),
    /// `inf` in one of its spellings.
    Infinite,
}

impl LongDouble {
    /// Zero.
    pub(crate) fn zero() -> Self {
        Self { mantissa: BigInt::ZERO, exponent: 0 }
    }

    /// The sum, or `None` if it is infinite.
    pub(crate) fn add(&self, other: &Self) -> Option<Self> {
        let exponent = self.exponent.min(other.exponent);
        let left = &self.mantissa << (self.exponent - exponent) as u64;
        let right = &other.mantissa << (other.exponent - exponent) as u64;
        round(left + right, BigUint::from(1_u8), exponent)
    }

    /// Formats with up to 17 decimals, without trailing zeros.
    pub(crate) fn to_text(&self) -> String {
        const DECIMALS: u32 = 17;
        let scaled = self.mantissa.magnitude() * BigUint::from(10_u8).pow(DECIMALS);
        let digits = if self.exponent >= 0 {
            scaled << self.exponent as u64
        } else {
            divide_to_even(&scaled, &(BigUint::from(1_u8) << (-self.exponent) as u64))
        };
        let padded = format!("{digits:0>18}");
        let (whole, fraction) = padded.split_at(padded.len() - DECIMALS as usize);
        let sign = if self.mantissa.sign() == Sign::Minus { "-" } else { "" };
        let text = format!("{sign}{whole}.{fraction}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        if text == "-0" { "0".to_owned() } else { text.to_owned() }
    }
}

/// Parses a number as `strtold` does; `None` if text is left over or the number is out of range.
pub(crate) fn parse(text: &[u8]) -> Option<Parsed> {
    if text.len() >= MAX_CHARS {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let negative = text.starts_with('-');
    let body = text.strip_prefix(['-', '+']).unwrap_or(text).to_ascii_lowercase();
    if body == "inf" || body == "infinity" {
        return Some(Parsed::Infinite);
    }
    let hex = body.strip_prefix("0x");
    let (radix, digits, mark) = match hex {
        Some(digits) => (16, digits, 'p'),
        None => (10, body.as_str(), 'e'),
    };
    let (number, exponent) = match digits.split_once(mark) {
        Some((number, exponent)) => (number, read_exponent(exponent)?),
        None => (digits, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let magnitude = BigUint::parse_bytes(all.as_bytes(), radix)?;
    if magnitude == BigUint::ZERO {
        return Some(Parsed::Finite(LongDouble::zero()));
    }
    let sign = if negative { Sign::Minus } else { Sign::Plus };
    let shift = fraction.len() as i64;
    let one = BigUint::from(1_u8);
    let rounded = if hex.is_some() {
        round(BigInt::from_biguint(sign, magnitude), one, exponent - 4 * shift)
    } else {
        let power = exponent - shift;
        if power.abs() > 20_000 {
            return None;
        }
        let factor = BigUint::from(10_u8).pow(power.unsigned_abs() as u32);
        let (numerator, denominator) =
            if power >= 0 { (magnitude * factor, one) } else { (magnitude, factor) };
        round(BigInt::from_biguint(sign, numerator), denominator, 0)
    }?;
    // An underflow to zero is out of range.
    (rounded.mantissa != BigInt::ZERO).then_some(Parsed::Finite(rounded))
}

fn read_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Far out of range; the caller detects it.
    Some(text.parse().unwrap_or(if text.starts_with('-') { -100_000 } else { 100_000 }))
        .map(|exponent: i64| exponent.clamp(-100_000, 100_000))
}

/// Rounds `numerator / denominator × 2^exponent` to 64 bits; `None` if that is infinite.
fn round(numerator: BigInt, denominator: BigUint, exponent: i64) -> Option<LongDouble> {
    let (sign, magnitude) = numerator.into_parts();
    if sign == Sign::NoSign {
        return Some(LongDouble::zero());
    }
    // Scale so that the quotient has 64 or 65 bits, then round.
    let bits = magnitude.bits() as i64 - denominator.bits() as i64;
    let mut drop = bits - MANTISSA_BITS as i64;
    loop {
        drop = drop.max(MIN_EXPONENT - exponent);
        let quotient = if drop >= 0 {
            divide_to_even(&magnitude, &(&denominator << drop as u64))
        } else {
            divide_to_even(&(&magnitude << (-drop) as u64), &denominator)
        };
        if quotient.bits() > MANTISSA_BITS && quotient != BigUint::from(1_u8) << MANTISSA_BITS {
            drop += 1;
            continue;
        }
        if quotient.bits() as i64 + exponent + drop > MAX_EXPONENT {
            return None;
        }
        let mantissa = BigInt::from_biguint(sign, quotient);
        return Some(LongDouble { mantissa, exponent: exponent + drop });
    }
}

fn divide_to_even(numerator: &BigUint, denominator: &BigUint) -> BigUint {
    let quotient = numerator / denominator;
    let twice = (numerator - &quotient * denominator) * 2_u8;
    let up = twice > *denominator || twice == *denominator && quotient.bit(0);
    if up { quotient + 1_u8 } else { quotient }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(left: &str, right: &str) -> Option<String> {
        match (parse(left.as_bytes())?, parse(right.as_bytes())?) {
            (Parsed::Finite(left), Parsed::Finite(right)) => {
                left.add(&right).map(|sum| sum.to_text())
            }
            _ => None,
        }
    }

    #[test]
    fn sums_are_those_of_redis() {
        for (left, right, total) in [
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("0.1", "0.2", "0.3"),
            ("3", "-3", "0"),
            ("-1.5", "0", "-1.5"),
            ("1e17", "0.5", "100000000000000000.5"),
            ("0x10", "1", "17"),
            // Printed by redis-server 7.0.15.
            ("3.3", "3.3", "6.6"),
            ("1234567.891", "0.0000001", "1234567.89100009999992835"),
            ("10.6", "1e17", "100000000000000010.6015625"),
        ] {
            assert_eq!(sum(left, right).as_deref(), Some(total), "{left} + {right}");
        }
    }

    #[test]
    fn odd_texts_are_refused() {
        for text in ["", " 1", "1 ", "abc", "1e", "e1", "0x", "1e9999", "1e-9999", "nan", "--1"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
