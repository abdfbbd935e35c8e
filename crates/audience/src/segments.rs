//! How many segments an SMS has: providers charge for each.
//!
//! A text of the GSM 7-bit alphabet has 160 characters in one segment, else 153 in each; characters of its extension table count
//! two. Any other text is sent as UTF-16: 70 units in one segment, else 67 in each. A character is never cut in two.

/// The alphabet of an SMS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alphabet {
    /// GSM 03.38, seven bits a character.
    Gsm7,
    /// UTF-16.
    Utf16,
}

/// The segments of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    /// The alphabet.
    pub alphabet: Alphabet,
    /// Characters of seven bits, or units of UTF-16.
    pub units: usize,
    /// How many segments are sent; an empty text is one.
    pub segments: usize,
}

/// The basic table of GSM 03.38, without its escape.
const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡\
                     ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
/// Its extension table.
const EXTENSION: &str = "\u{c}^{}\\[~]|€";

/// Counts the segments of a text.
pub fn segments(text: &str) -> Segments {
    let widths: Option<Vec<usize>> = text.chars().map(width).collect();
    let (alphabet, widths, single, part) = match widths {
        Some(widths) => (Alphabet::Gsm7, widths, 160, 153),
        None => (Alphabet::Utf16, text.chars().map(char::len_utf16).collect(), 70, 67),
    };
    let units = widths.iter().sum();
    let segments = if units <= single { 1 } else { parts(&widths, part) };
    Segments { alphabet, units, segments }
}

/// Units of seven bits; `None`: the alphabet does not have it.
fn width(c: char) -> Option<usize> {
    if BASIC.contains(c) {
        Some(1)
    } else if EXTENSION.contains(c) {
        Some(2)
    } else {
        None
    }
}

/// Fills segments of so many units; what does not fit whole goes to the next one.
fn parts(widths: &[usize], room: usize) -> usize {
    let (mut count, mut used) = (1, 0);
    for width in widths {
        if used + width > room {
            (count, used) = (count + 1, 0);
        }
        used += width;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> (Alphabet, usize, usize) {
        let Segments { alphabet, units, segments } = segments(text);
        (alphabet, units, segments)
    }

    #[test]
    fn latin_texts_have_160_characters_in_one_segment_and_153_in_more() {
        for (length, expected) in [(0, 1), (160, 1), (161, 2), (306, 2), (307, 3), (1_530, 10)] {
            assert_eq!(count(&"a".repeat(length)), (Alphabet::Gsm7, length, expected));
        }
        assert_eq!(BASIC.chars().count(), 127);
    }

    #[test]
    fn characters_of_the_extension_table_count_two() {
        assert_eq!(count("5 €"), (Alphabet::Gsm7, 4, 1));
        assert_eq!(count(&"€".repeat(80)), (Alphabet::Gsm7, 160, 1));
        assert_eq!(count(&"€".repeat(81)), (Alphabet::Gsm7, 162, 2));
        // 76 fit into 153 units: one unit of each segment stays empty.
        assert_eq!(count(&"€".repeat(152)), (Alphabet::Gsm7, 304, 2));
        assert_eq!(count(&"€".repeat(153)), (Alphabet::Gsm7, 306, 3));
    }

    #[test]
    fn one_other_letter_makes_a_text_utf_16() {
        assert_eq!(count(&"я".repeat(70)), (Alphabet::Utf16, 70, 1));
        assert_eq!(count(&"я".repeat(71)), (Alphabet::Utf16, 71, 2));
        assert_eq!(count(&"я".repeat(135)), (Alphabet::Utf16, 135, 3));
        assert_eq!(count(&format!("{}я", "a".repeat(100))), (Alphabet::Utf16, 101, 2));
        assert_eq!(count("ç"), (Alphabet::Utf16, 1, 1), "only Ç is in the table");
        // An emoji has two units and is not cut: 33 in a segment of 67.
        assert_eq!(count(&"😀".repeat(35)), (Alphabet::Utf16, 70, 1));
        assert_eq!(count(&"😀".repeat(67)), (Alphabet::Utf16, 134, 3));
    }
}
