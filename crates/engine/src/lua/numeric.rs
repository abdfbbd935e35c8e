//! Number formatting and conversion as in C, which Redis and Lua 5.1 use.

use std::io::Write;

/// Appends `value` like C's `%.{precision}g`.
pub(super) fn append_general(out: &mut Vec<u8>, value: f64, precision: usize) {
    const EXACT: [f64; 18] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17,
    ];
    let negative_zero = value == 0.0 && value.is_sign_negative();
    if value.trunc() == value && value.abs() < EXACT[precision.min(15)] && !negative_zero {
        // The common case: an integer with fewer digits than the precision.
        let _ = write!(out, "{}", value as i64);
    } else if value.is_finite() {
        append_rounded(out, value, precision);
    } else {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        let _ = write!(out, "{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
}

fn append_rounded(out: &mut Vec<u8>, value: f64, precision: usize) {
    let scientific = format!("{:.*e}", precision - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        out.extend_from_slice(without_trailing_zeros(mantissa).as_bytes());
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
    } else {
        let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
        let fixed = format!("{value:.decimals$}");
        out.extend_from_slice(without_trailing_zeros(&fixed).as_bytes());
    }
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A C cast to `long long` as on x86-64: out of range gives the smallest number.
pub(super) fn to_i64(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// A C cast to `int` via `long long`, like `luaL_checkint`.
pub(super) fn to_i32(value: f64) -> i32 {
    to_i64(value) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn general(value: f64, precision: usize) -> String {
        let mut out = Vec::new();
        append_general(&mut out, value, precision);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_look_as_c_prints_them() {
        let table: &[(f64, usize, &str)] = &[
            (0.0, 14, "0"),
            (-0.0, 17, "-0"),
            (1.5, 14, "1.5"),
            (0.1, 17, "0.10000000000000001"),
            (0.1, 14, "0.1"),
            (1e14, 14, "1e+14"),
            (99_999_999_999_999.0, 14, "99999999999999"),
            (1e15, 17, "1000000000000000"),
            (123_456_789_012_345_680.0, 17, "1.2345678901234568e+17"),
            (1e20, 17, "1e+20"),
            (1e-5, 14, "1e-05"),
            (1.5e-300, 14, "1.5e-300"),
            (0.0001, 14, "0.0001"),
            (2.5, 1, "2"),
            (9.99, 1, "1e+01"),
            (f64::INFINITY, 14, "inf"),
            (f64::NEG_INFINITY, 14, "-inf"),
        ];
        for (value, precision, expected) in table {
            assert_eq!(general(*value, *precision), *expected, "{value} with {precision} digits");
        }
    }

    #[test]
    fn casts_out_of_range_give_the_smallest_number() {
        assert_eq!(to_i64(2.9), 2);
        assert_eq!(to_i64(-2.9), -2);
        assert_eq!(to_i64(1e30), i64::MIN);
        assert_eq!(to_i64(f64::NAN), i64::MIN);
    }
}
