//! Strings as arrays of bits: bit 0 is the highest bit of the first byte.

/// Reads a bit; bits beyond the end are 0.
pub(crate) fn get(text: &[u8], bit: usize) -> bool {
    text.get(bit / 8).is_some_and(|byte| byte & mask(bit) != 0)
}

/// Writes a bit within the text.
pub(crate) fn set(text: &mut [u8], bit: usize, on: bool) {
    if let Some(byte) = text.get_mut(bit / 8) {
        *byte = if on { *byte | mask(bit) } else { *byte & !mask(bit) };
    }
}

fn mask(bit: usize) -> u8 {
    0x80 >> (bit % 8)
}

/// The number of ones from bit `first` to bit `last`, both inclusive and within the text.
pub(crate) fn count(text: &[u8], first: usize, last: usize) -> usize {
    let (from, to) = (first / 8, last / 8);
    let Some(bytes) = text.get(from..=to) else { return 0 };
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones() as usize);
    let rest = rest.iter().map(|byte| byte.count_ones() as usize);
    let whole = words.sum::<usize>() + rest.sum::<usize>();
    whole - before(text, first) - after(text, last)
}

/// The ones before a bit, in its byte.
fn before(text: &[u8], bit: usize) -> usize {
    (u32::from(text[bit / 8]) >> (8 - bit % 8)).count_ones() as usize
}

/// The ones after a bit, in its byte.
fn after(text: &[u8], bit: usize) -> usize {
    (text[bit / 8] & (mask(bit) - 1)).count_ones() as usize
}

/// The first bit with this value from bit `first` to bit `last`, both inclusive and within the text.
pub(crate) fn position(text: &[u8], on: bool, first: usize, last: usize) -> Option<usize> {
    // A byte without the wanted bit.
    let none = if on { 0x00 } else { 0xff };
    let mut bit = first;
    while bit <= last {
        if bit.is_multiple_of(8) && text[bit / 8] == none {
            bit += 8;
        } else if get(text, bit) == on {
            return Some(bit);
        } else {
            bit += 1;
        }
    }
    None
}

/// The type of an integer inside a bitmap: up to 64 bits signed, or up to 63 bits unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    /// Whether the integer has a sign.
    pub(crate) signed: bool,
    /// The number of bits.
    pub(crate) bits: usize,
}

/// The result of an operation that does not fit its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// The bits that do not fit are dropped.
    Wrap,
    /// The nearest integer that fits.
    Saturate,
    /// No result, and no change.
    Fail,
}

impl Field {
    /// Parses `i16` or `u63`.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let (kind, digits) = text.split_first()?;
        let signed = match kind {
            b'i' => true,
            b'u' => false,
            _ => return None,
        };
        let bits = crate::number::parse_int(digits)?;
        let most = if signed { 64 } else { 63 };
        (1..=most).contains(&bits).then_some(Self { signed, bits: bits as usize })
    }

    /// Reads the integer at a bit; bits beyond the end are 0.
    pub(crate) fn read(self, text: &[u8], bit: usize) -> i64 {
        let value =
            (bit..bit + self.bits).fold(0_u64, |value, bit| value << 1 | u64::from(get(text, bit)));
        self.wrapped(i128::from(value))
    }

    /// Writes an integer at a bit within the text.
    pub(crate) fn write(self, text: &mut [u8], bit: usize, value: i64) {
        for index in 0..self.bits {
            set(text, bit + index, value as u64 >> (self.bits - 1 - index) & 1 == 1);
        }
    }

    /// Fits a value into the field; `None` if it does not fit and may not be changed.
    pub(crate) fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (low, high) = self.range();
        match overflow {
            _ if (low..=high).contains(&value) => Some(value as i64),
            Overflow::Wrap => Some(self.wrapped(value)),
            Overflow::Saturate => Some(value.clamp(low, high) as i64),
            Overflow::Fail => None,
        }
    }

    /// Fits a value that a client sets, with two peculiarities of Redis: a negative number counts as a
    /// very large one for an unsigned field; and so does, if it is saturated, a number so low that
    /// its distance from the largest one of the field overflows.
    pub(crate) fn fit_new(self, value: i64, overflow: Overflow) -> Option<i64> {
        let (_, high) = self.range();
        let far = self.signed && self.bits < 64 && (high as i64).checked_sub(value).is_none();
        match overflow {
            Overflow::Saturate if far => Some(high as i64),
            _ if self.signed => self.fit(i128::from(value), overflow),
            _ => self.fit(i128::from(value as u64), overflow),
        }
    }

    fn range(self) -> (i128, i128) {
        if self.signed {
            (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        } else {
            (0, (1 << self.bits) - 1)
        }
    }

    /// The lowest bits of a value, as the field shows them.
    fn wrapped(self, value: i128) -> i64 {
        let low = value & ((1 << self.bits) - 1);
        let negative = self.signed && low >> (self.bits - 1) == 1;
        (if negative { low - (1 << self.bits) } else { low }) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_and_finding_agree_with_reading_bit_by_bit() {
        let text: Vec<u8> = (0..40_u8).map(|byte| byte.wrapping_mul(37) & 0xf3).collect();
        for first in 0..100 {
            for last in first..320 {
                let all = first..=last;
                let ones = all.clone().filter(|bit| get(&text, *bit)).count();
                assert_eq!(count(&text, first, last), ones, "{first} {last}");
                for on in [true, false] {
                    let found = all.clone().find(|bit| get(&text, *bit) == on);
                    assert_eq!(position(&text, on, first, last), found, "{on} {first} {last}");
                }
            }
        }
    }

    #[test]
    fn fields_of_any_width_keep_their_limits() {
        for (text, value, overflow, expected) in [
            ("u8", 256, Overflow::Wrap, Some(0)),
            ("u8", -1, Overflow::Wrap, Some(255)),
            ("i8", 128, Overflow::Wrap, Some(-128)),
            ("i8", 128, Overflow::Saturate, Some(127)),
            ("i8", -129, Overflow::Saturate, Some(-128)),
            ("u63", i128::from(i64::MAX) + 1, Overflow::Saturate, Some(i64::MAX)),
            ("i64", i128::from(i64::MAX) + 1, Overflow::Wrap, Some(i64::MIN)),
            ("i64", i128::from(i64::MIN) - 1, Overflow::Fail, None),
            ("i1", 0, Overflow::Fail, Some(0)),
        ] {
            let field = Field::parse(text.as_bytes()).unwrap();
            assert_eq!(field.fit(value, overflow), expected, "{text} {value}");
        }
        let i8 = Field::parse(b"i8").unwrap();
        assert_eq!(i8.fit_new(-200, Overflow::Saturate), Some(-128));
        assert_eq!(i8.fit_new(i64::MIN, Overflow::Saturate), Some(127));
        assert_eq!(i8.fit_new(i64::MIN, Overflow::Wrap), Some(0));
        for text in ["", "i", "u64", "i65", "i0", "x8", "u-1", "u08"] {
            assert_eq!(Field::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_field_is_read_as_it_was_written_at_any_bit() {
        for bit in 0..20 {
            for (name, value) in [("i64", i64::MIN), ("u63", i64::MAX), ("i5", -3), ("u1", 1)] {
                let field = Field::parse(name.as_bytes()).unwrap();
                let mut text = vec![0xaa; 12];
                field.write(&mut text, bit, value);
                assert_eq!(field.read(&text, bit), value, "{name} at {bit}");
            }
        }
    }
}
