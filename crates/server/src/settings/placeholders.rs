//! Placeholders: settings that were copied from a profile (`deploy/profiles`) and not filled in.

use super::given::Texts;
use super::reader::Mistake;

/// The beginning of a placeholder. It means nothing to a shell, to systemd and to docker.
const MARK: &str = "FILL_IN";

/// A mistake for every setting that still has a placeholder.
pub(super) fn find(texts: &Texts) -> Vec<Mistake> {
    texts.iter().filter_map(|(name, text)| mistake(name, text)).collect()
}

fn mistake(name: &'static str, value: &str) -> Option<Mistake> {
    let marks = marks(value);
    if marks.is_empty() {
        return None;
    }
    let hint =
        if name == "TICKET_KEY_SECRET" { "; make it with: openssl rand -hex 32" } else { "" };
    let right = format!("is not filled in: put your own in place of {}{hint}", marks.join(" and "));
    // The rest of the value may hold a password already.
    Some(Mistake { name, value: "…".to_owned(), right })
}

/// The placeholders in a value: words that begin with the mark, and `<…>` as people write it.
fn marks(value: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut marks: Vec<&str> =
        value.split(|c| !is_word(c)).filter(|word| word.starts_with(MARK)).collect();
    let angle = value.split('<').skip(1).find_map(|rest| rest.split_once('>'));
    marks.extend(angle.map(|(word, _)| word).filter(|word| !word.is_empty()));
    marks
}

#[cfg(test)]
mod tests {
    use super::super::given::Given;
    use super::*;

    #[test]
    fn placeholders_are_named_and_what_is_beside_them_is_not() {
        for (value, wanted) in [
            ("redis://FILL_IN_REDIS_HOST:6379", &["FILL_IN_REDIS_HOST"][..]),
            (
                "postgres://me:FILL_IN_PASSWORD@FILL_IN_HOST/db",
                &["FILL_IN_PASSWORD", "FILL_IN_HOST"],
            ),
            ("redis://<redis host>:6379", &["redis host"]),
            ("redis://:pass<word@host", &[]),
            ("", &[]),
        ] {
            assert_eq!(marks(value), wanted, "{value}");
        }
        let shown = mistake("DATABASE_URL", "postgres://me:secret@FILL_IN_HOST/db").unwrap();
        assert_eq!(
            shown.to_string(),
            "DATABASE_URL=…: is not filled in: put your own in place of FILL_IN_HOST"
        );
    }

    #[test]
    fn every_profile_names_all_that_has_to_be_filled_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/profiles");
        for (profile, count) in
            [("development", 0), ("api-main", 4), ("worker-n", 4), ("hybrid", 4)]
        {
            let text = std::fs::read_to_string(format!("{folder}/{profile}.env")).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let pairs: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once('=')).collect();
            let variable = |name: &str| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            let found = find(&Given::default().texts(&variable));
            assert_eq!(found.len(), count, "{profile}: {found:?}");
            // Neither a shell nor systemd nor docker may take any of it for something else.
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@=".contains(c);
            assert!(pairs.iter().all(|(_, value)| value.chars().all(plain)), "{profile}");
            assert_eq!(variable("PORT"), None, "{profile}: PORT is the environment's");
        }
    }
}
