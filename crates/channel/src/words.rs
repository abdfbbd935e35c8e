//! Messages that mean stop, or start again.

use serde::{Deserialize, Serialize};
use stampede_model::campaign::SuppressionReason;

use crate::notice::Notice;
use crate::settings::Reader;

/// Words that mean stop if an account has none of its own.
const STOP: [&str; 4] = ["STOP", "СТОП", "UNSUBSCRIBE", "ОТПИСАТЬСЯ"];
/// Words that mean start again.
const START: [&str; 3] = ["START", "СТАРТ", "UNSTOP"];
/// Longest text that is looked at, in bytes: a stop word stands alone.
const LONGEST: usize = 256;

/// The words by which people end messages of an account; `None`: the usual ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct StopWords(Option<Vec<String>>);

impl StopWords {
    pub(crate) fn read(reader: &mut Reader) -> Self {
        Self(reader.texts("stopWords", 50))
    }

    pub(crate) fn is_default(&self) -> bool {
        self.0.is_none()
    }

    /// What a message of a person means for the address.
    pub(crate) fn notice(&self, text: &str, address: impl FnOnce() -> String) -> Option<Notice> {
        if text.len() > LONGEST {
            return None;
        }
        let said = plain(text);
        let is_one = |words: &[&str]| words.iter().any(|word| plain(word) == said);
        let is_stop = match &self.0 {
            Some(words) => words.iter().any(|word| plain(word) == said),
            None => is_one(&STOP),
        };
        match (is_stop && !said.is_empty(), is_one(&START)) {
            (true, _) => Some(Notice::Stop { address: address(), reason: SuppressionReason::Stop }),
            (_, true) => Some(Notice::Start { address: address() }),
            _ => None,
        }
    }
}

/// The words of a text in small letters, without signs: `Stop!` means stop, `stop it` does not.
fn plain(text: &str) -> String {
    let letters = text.to_lowercase().replace('ё', "е");
    let words = letters.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_word_is_the_whole_message() {
        let words = StopWords::default();
        let said = |text: &str| words.notice(text, || "+49".to_owned());
        let stop = Notice::Stop { address: "+49".to_owned(), reason: SuppressionReason::Stop };
        for text in [
            "STOP",
            "stop",
            " Stop! ",
            "\"СТОП!\"",
            "стоп\n",
            "Отписаться.",
            "unsubscribe",
            "/stop",
            "🛑 stop 🛑",
        ] {
            assert_eq!(said(text), Some(stop.clone()), "{text}");
        }
        assert_eq!(said("старт"), Some(Notice::Start { address: "+49".to_owned() }));
        let long = "stop ".repeat(1_000);
        for text in ["", "!", "don't stop", "stop it", "non-stop", "nonstop", "стопка", &long]
        {
            assert_eq!(said(text), None, "{text}");
        }
        let own = StopWords(Some(vec!["halt".to_owned()]));
        assert_eq!(own.notice("Halt", || "+49".to_owned()), Some(stop));
        assert_eq!(own.notice("STOP", || "+49".to_owned()), None);
        let own = StopWords(Some(["Opt-out", "ОТБОЙ, всё", "!"].map(str::to_owned).to_vec()));
        for text in ["opt out", "OPT-OUT!", "Отбой всe".replace('e', "е").as_str()] {
            assert!(own.notice(text, || "+49".to_owned()).is_some(), "{text}");
        }
        assert_eq!(own.notice("?", || "+49".to_owned()), None, "a sign is no word");
    }
}
