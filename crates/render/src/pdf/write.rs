//! Numbers and strings as PDF spells them.

/// Most digits behind the point that [`number`] writes.
const SCALE: f64 = 1000.0;

/// Appends an integer.
pub(crate) fn integer(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a number with up to three digits behind the point. What is not finite becomes 0.
pub(crate) fn number(out: &mut Vec<u8>, value: f32) {
    fixed(out, rounded(f64::from(value) * SCALE));
}

/// The nearest integer; 0 for what is not a number. Conversion truncates, and unlike `round` it is one
/// instruction on every processor.
fn rounded(value: f64) -> i64 {
    (value + 0.5_f64.copysign(value)) as i64
}

/// Appends a number given in thousandths.
fn fixed(out: &mut Vec<u8>, thousandths: i64) {
    if thousandths < 0 {
        out.push(b'-');
    }
    let magnitude = thousandths.unsigned_abs();
    let fraction = magnitude % 1000;
    if magnitude >= 1000 || fraction == 0 {
        integer(out, magnitude / 1000);
    }
    if fraction != 0 {
        let digits =
            [fraction / 100, fraction / 10 % 10, fraction % 10].map(|digit| b'0' + digit as u8);
        let used = if digits[2] != b'0' {
            3
        } else if digits[1] != b'0' {
            2
        } else {
            1
        };
        out.push(b'.');
        out.extend_from_slice(&digits[..used]);
    }
}

/// Appends a number with one digit behind the point, and gives what was written.
pub(crate) fn decimal(out: &mut Vec<u8>, value: f32) -> f32 {
    let tenths = rounded(f64::from(value) * 10.0);
    fixed(out, tenths.saturating_mul(100));
    tenths as f32 / 10.0
}

/// Appends a number with up to six digits behind the point, for matrices whose error is multiplied.
pub(crate) fn precise(out: &mut Vec<u8>, value: f32) {
    let millionths = rounded(f64::from(value) * 1e6);
    if millionths % 1000 == 0 {
        return fixed(out, millionths / 1000);
    }
    if millionths < 0 {
        out.push(b'-');
    }
    let magnitude = millionths.unsigned_abs();
    integer(out, magnitude / 1_000_000);
    out.push(b'.');
    let mut fraction = magnitude % 1_000_000;
    let mut unit = 100_000;
    while fraction != 0 {
        out.push(b'0' + (fraction / unit) as u8);
        fraction %= unit;
        unit /= 10;
    }
}

/// Appends numbers, each followed by a space.
pub(crate) fn precise_list(out: &mut Vec<u8>, values: &[f32]) {
    for &value in values {
        precise(out, value);
        out.push(b' ');
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Appends four hexadecimal digits.
pub(crate) fn hex16(out: &mut Vec<u8>, value: u16) {
    let digit = |shift: u16| HEX[usize::from(value >> shift & 15)];
    out.extend_from_slice(&[digit(12), digit(8), digit(4), digit(0)]);
}

/// Appends bytes as a hexadecimal string.
pub(crate) fn hex_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'<');
    for &byte in bytes {
        out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
    out.push(b'>');
}

/// Appends text as UTF-16BE digits, as ToUnicode wants it.
pub(crate) fn utf16_digits(out: &mut Vec<u8>, text: &str) {
    for unit in text.encode_utf16() {
        hex16(out, unit);
    }
}

/// Appends a text string: a literal if it is plain ASCII, else UTF-16BE with its mark.
pub(crate) fn text_string(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        out.push(b'(');
        for byte in text.bytes() {
            if matches!(byte, b'(' | b')' | b'\\') {
                out.push(b'\\');
            }
            out.push(byte);
        }
        out.push(b')');
    } else {
        out.extend_from_slice(b"<FEFF");
        utf16_digits(out, text);
        out.push(b'>');
    }
}

/// Appends `number 0 R`.
pub(crate) fn reference(out: &mut Vec<u8>, object: u32) {
    integer(out, u64::from(object));
    out.extend_from_slice(b" 0 R");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0004, "0"),
            (1.0, "1"),
            (-12.5, "-12.5"),
            (0.25, ".25"),
            (-0.001, "-.001"),
            (841.89, "841.89"),
            (f32::NAN, "0"),
        ] {
            assert_eq!(written(|out| number(out, value)), text);
        }
        assert_eq!(written(|out| assert_eq!(decimal(out, -33.691), -33.7)), "-33.7");
        assert_eq!(written(|out| precise(out, 0.707_106_77)), "0.707107");
        assert_eq!(written(|out| precise(out, -3.5)), "-3.5");
        assert_eq!(written(|out| precise(out, -0.000_002)), "-0.000002");
    }

    #[test]
    fn texts_cannot_leave_their_string() {
        assert_eq!(written(|out| text_string(out, r"a)>>(\b")), r"(a\)>>\(\\b)");
        assert_eq!(written(|out| text_string(out, "é\n")), "<FEFF00E9000A>");
        assert_eq!(written(|out| text_string(out, "😀")), "<FEFFD83DDE00>");
    }
}
