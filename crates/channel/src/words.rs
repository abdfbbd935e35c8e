//! Messages that mean stop, or start again.

use serde::{Deserialize, Serialize};
use stampede_model::campaign::SuppressionReason;

use crate::notice::Notice;
use crate::settings::Reader;

/// Words that mean stop if an account has none of its own.
const STOP: [&str; 4] = ["STOP", "СТОП", "UNSUBSCRIBE", "ОТПИСАТЬСЯ"];
/// Words that mean start again.
const START: [&str; 3] = ["START", "СТАРТ", "UNSTOP"];

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
        let said = plain(text);
        let is_stop = match &self.0 {
            Some(words) => words.iter().any(|word| plain(word) == said),
            None => STOP.contains(&said.as_str()),
        };
        match (is_stop, START.contains(&said.as_str())) {
            (true, _) => Some(Notice::Stop { address: address(), reason: SuppressionReason::Stop }),
            (_, true) => Some(Notice::Start { address: address() }),
            _ => None,
        }
    }
}

/// The text in capitals, without spaces and signs around it: `Stop!` means stop, `stop it` does not.
fn plain(text: &str) -> String {
    text.trim_matches(|c: char| !c.is_alphanumeric()).to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_word_is_the_whole_message() {
        let words = StopWords::default();
        let said = |text: &str| words.notice(text, || "+49".to_owned());
        let stop = Notice::Stop { address: "+49".to_owned(), reason: SuppressionReason::Stop };
        for text in ["STOP", "stop", " Stop! ", "стоп", "Отписаться.", "unsubscribe", "/stop"]
        {
            assert_eq!(said(text), Some(stop.clone()), "{text}");
        }
        assert_eq!(said("старт"), Some(Notice::Start { address: "+49".to_owned() }));
        for text in ["", "!", "don't stop", "stop it", "non-stop"] {
            assert_eq!(said(text), None, "{text}");
        }
        let own = StopWords(Some(vec!["halt".to_owned()]));
        assert_eq!(own.notice("Halt", || "+49".to_owned()), Some(stop));
        assert_eq!(own.notice("STOP", || "+49".to_owned()), None);
    }
}
