//! Messages about unknown names: most likely typos, so the closest known name is offered.

use crate::problem::{Code, Problem};

/// Names longer than this are shown cut, and resemble nothing.
const LONGEST: usize = 40;

/// The message about an unknown name, to be put after the name itself.
pub(crate) fn remark(name: &str, known: &[&str]) -> String {
    if let Some(closest) = closest(name, known) {
        return format!("is not known here; did you mean {closest}?");
    }
    match known {
        [] => "is not known here: nothing is expected".to_owned(),
        known => format!("is not known here; known are {}", known.join(", ")),
    }
}

/// 404 for an action that a queue, a job or its letters do not have.
pub(crate) fn no_such_action(action: &str, known: &[&str]) -> Problem {
    let known = match known {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        known => known.join(", "),
    };
    let detail = format!("no such action {:?}; use {known}", shown(action));
    Problem::new(Code::NotFound, detail)
}

/// The known name that was most likely meant.
pub(crate) fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let plain = plain(name);
    let distance = |known: &str| strsim::osa_distance(&plain, &self::plain(known));
    let best = known.iter().map(|known| (distance(known), *known)).min()?;
    // A third of the letters, or else `qty` would be taken for `seat`.
    (best.0 <= (best.1.len() / 3).max(1)).then_some(best.1)
}

/// The name as it is shown.
pub(crate) fn shown(name: &str) -> String {
    let shown: String = name.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    if shown.len() < name.len() { format!("{shown}…") } else { shown }
}

/// A part of a path as people write it: `%20` is a space.
pub(crate) fn decoded(text: &str) -> String {
    // A plus is a plus in a path.
    let escaped = text.replace('+', "%2B");
    let pairs = url::form_urlencoded::parse(escaped.as_bytes());
    pairs.map(|(name, _)| name.into_owned()).next().unwrap_or_default()
}

/// `starts_at`, `StartsAt` and `starts-at` are all the same mistake.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_are_recognised_and_other_words_are_not() {
        let known = ["name", "email", "seat", "price", "startsAt", "limit"];
        for (name, meant) in [
            ("emial", Some("email")),
            ("e-mail", Some("email")),
            ("limt", Some("limit")),
            ("starts_at", Some("startsAt")),
            ("Name", Some("name")),
            ("prise", Some("price")),
            ("phone", None),
            ("qty", None),
            ("", None),
        ] {
            assert_eq!(closest(name, &known), meant, "{name}");
        }
        assert_eq!(closest(&"x".repeat(1_000_000), &known), None);
        assert_eq!(closest("x", &[]), None);
    }

    #[test]
    fn an_unknown_action_is_answered_with_the_known_ones() {
        let problem = no_such_action("relpay", &["replay", "purge"]).to_string();
        assert_eq!(problem, "404 no such action \"relpay\"; use replay or purge");
        let problem = no_such_action("x", &["retry", "promote", "cancel"]).to_string();
        assert!(problem.ends_with("use retry, promote or cancel"), "{problem}");
    }

    #[test]
    fn long_and_hostile_names_are_shown_cut() {
        assert_eq!(shown("emial"), "emial");
        assert_eq!(shown("a\u{1b}[2J"), "a[2J…");
        assert_eq!(shown(&"é".repeat(100)).chars().count(), LONGEST + 1);
    }
}
