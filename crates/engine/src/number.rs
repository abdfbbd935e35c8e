//! Parsing and formatting numbers as Redis does.
//!
//! Integers are strict: no sign `+`, no leading zeros, no spaces. Floats follow C's `strtod` (hex
//! and `inf` included) and are written as `%.17g`. `INCRBYFLOAT` computes with C's `long double`,
//! which has its own file.

pub(crate) mod long_double;

/// Parses an integer in its canonical form.
pub(crate) fn parse_int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value = 0_u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u64::from(digit - b'0');
    }
    if negative { 0_i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// Parses an unsigned integer as C's `strtoull` does if it consumes all of the text: leading
/// spaces, a sign and leading zeros are allowed. A negative number wraps around.
pub(crate) fn parse_uint(text: &[u8]) -> Option<u64> {
    if parse_int(text).is_some_and(|value| value < 0) {
        return None;
    }
    let start = text.iter().position(|byte| !is_space(*byte))?;
    let (negative, digits) = match &text[start..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative { value.wrapping_neg() } else { value })
}

/// Parses a float argument: all of the text, no overflow, no underflow to zero.
pub(crate) fn parse_float(text: &[u8]) -> Option<f64> {
    if text.first().is_none_or(|byte| is_space(*byte)) {
        return None;
    }
    let value = strtod(text)?;
    let infinite = value.is_infinite() && !text.iter().any(|byte| byte | 32 == b'i');
    let vanished = value == 0.0 && has_nonzero_digit(text);
    (!infinite && !vanished && !value.is_nan()).then_some(value)
}

/// Parses the bound of a score range as `strtod` does; `""` is 0.
pub(crate) fn parse_bound(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let start = text.iter().position(|byte| !is_space(*byte))?;
    strtod(&text[start..]).filter(|value| !value.is_nan())
}

/// Parses the weight of an element for `SORT`: as [`parse_bound`], but no overflow and no underflow
/// to zero.
pub(crate) fn parse_sortable(text: &[u8]) -> Option<f64> {
    let shown = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let value = parse_bound(text)?;
    let infinite = value.is_infinite() && !shown.iter().any(|byte| byte | 32 == b'i');
    let vanished = value == 0.0 && has_nonzero_digit(shown);
    // C's `strtod` reports numbers below the smallest normal one as out of range.
    (!infinite && !vanished && !value.is_subnormal()).then_some(value)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn has_nonzero_digit(text: &[u8]) -> bool {
    let hex = is_hex(text);
    let body = if hex { text } else { text.split(|b| b | 32 == b'e').next().unwrap_or_default() };
    let mut digits = body.iter().take_while(|b| !hex || **b | 32 != b'p');
    digits.any(|b| matches!(b, b'1'..=b'9') || hex && matches!(b | 32, b'a'..=b'f'))
}

fn is_hex(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
    unsigned.len() > 2 && unsigned[0] == b'0' && unsigned[1] | 32 == b'x'
}

fn strtod(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    if is_hex(text.as_bytes()) { strtod_hex(text) } else { text.parse().ok() }
}

/// Parses `[+-]0x1.8p3`; digits beyond 64 bits are dropped.
fn strtod_hex(text: &str) -> Option<f64> {
    let negative = text.starts_with('-');
    let body = text.trim_start_matches(['+', '-']).get(2..)?.to_ascii_lowercase();
    let (mantissa, exponent) = match body.split_once('p') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (body.as_str(), 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut value, mut scale) = (0.0_f64, exponent);
    for digit in whole.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    for digit in fraction.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
        scale = scale.saturating_sub(4);
    }
    let value = value * 2.0_f64.powi(scale);
    Some(if negative { -value } else { value })
}

/// Formats a float like C's `%.17g`.
pub(crate) fn format_float(value: f64) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan".into() } else { "nan".into() };
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == value.trunc() && value.abs() < 1e17 && (value != 0.0 || value.is_sign_positive()) {
        return itoa::Buffer::new().format(value as i64).to_owned();
    }
    let scientific = format!("{value:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..17).contains(&exponent) {
        let decimals = usize::try_from(16 - exponent).unwrap_or_default();
        return trim_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs())
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_form() {
        for (text, value) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-0", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("", None),
            ("-", None),
        ] {
            assert_eq!(parse_int(text.as_bytes()), value, "{text}");
        }
    }

    #[test]
    fn floats_are_read_as_c_reads_them() {
        for (text, value) in [
            ("1e3", Some(1000.0)),
            ("0x10", Some(16.0)),
            ("-0x1.8p1", Some(-3.0)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("1e999", None),
            ("1e-999", None),
            ("0e-999", Some(0.0)),
            ("nan", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
        ] {
            assert_eq!(parse_float(text.as_bytes()), value, "{text}");
        }
    }

    #[test]
    fn floats_are_written_with_seventeen_digits() {
        for (value, text) in [
            (0.1, "0.10000000000000001"),
            (3.0, "3"),
            (-0.0, "-0"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1.5e300, "1.5000000000000001e+300"),
            (1e-5, "1.0000000000000001e-05"),
            (0.0001, "0.0001"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(format_float(value), text);
        }
    }
}
