//! Whether a text that a person sent means "stop".

/// The words that mean "stop" unless an account has others.
pub const DEFAULT_STOP_WORDS: [&str; 4] = ["STOP", "СТОП", "UNSUBSCRIBE", "ОТПИСАТЬСЯ"];

/// Longest text that is looked at, in bytes: a stop word stands alone.
const LONGEST: usize = 256;

/// Whether a text is one of the stop words and nothing else, whatever its case; `/stop`, `"Stop!"` and ` stop. ` are.
///
/// "Please don't stop" is none: words inside a sentence often mean something else.
pub fn is_stop_word<W: AsRef<str>>(text: &str, words: &[W]) -> bool {
    if text.len() > LONGEST {
        return false;
    }
    let text = plain(text);
    !text.is_empty() && words.iter().any(|word| plain(word.as_ref()) == text)
}

/// The words of a text in small letters, without punctuation.
fn plain(text: &str) -> String {
    let letters = text.to_lowercase();
    let letters: String = letters.chars().map(|c| if c == 'ё' { 'е' } else { c }).collect();
    let words: Vec<&str> =
        letters.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_word_stands_alone_in_any_case_and_punctuation() {
        for text in [
            "STOP",
            "stop",
            " Stop. ",
            "/stop",
            "\"СТОП!\"",
            "стоп\n",
            "Отписаться",
            "unsubscribe",
            "🛑 stop 🛑",
        ] {
            assert!(is_stop_word(text, &DEFAULT_STOP_WORDS), "{text:?}");
        }
        for text in [
            "",
            "!!!",
            "don't stop",
            "stop it now",
            "nonstop",
            "остановка",
            "стопка",
            &"stop ".repeat(1_000),
        ] {
            assert!(!is_stop_word(text, &DEFAULT_STOP_WORDS), "{text:?}");
        }
    }

    #[test]
    fn stop_words_can_be_set() {
        let words = ["Opt-out".to_owned(), "ARRÊT".to_owned()];
        assert!(is_stop_word("opt out", &words) && is_stop_word("arrêt!", &words));
        assert!(!is_stop_word("stop", &words) && !is_stop_word("", &[""]));
    }
}
