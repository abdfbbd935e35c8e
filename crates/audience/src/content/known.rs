//! The fields that the recipients of a template have: all other names in it are mistakes.

use std::collections::BTreeSet;

use stampede_model::campaign::{Channel, Template};

use super::compile::compile;
use super::{BUILT_INS, Mistake};

/// Names that are told with an unknown field of which no near one is known.
const TOLD: usize = 20;

/// A place where a template reads a field.
#[derive(Debug, Clone)]
pub(super) struct Use {
    pub(super) part: String,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) name: String,
}

/// All mistakes of a template. With `known`, the fields that its recipients have, these are mistakes, too: fields that are neither
/// known nor built in nor have a default, with their places. A default may be empty.
pub fn check_template(
    template: &Template,
    channel: Channel,
    known: Option<&BTreeSet<String>>,
) -> Vec<Mistake> {
    let (compiler, _) = compile(template, channel);
    let mut mistakes = compiler.mistakes;
    if let Some(known) = known {
        let mut names: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        names.extend(BUILT_INS);
        names.extend(template.defaults.keys().map(String::as_str));
        let unknown = compiler.uses.iter().filter(|used| !names.contains(used.name.as_str()));
        mistakes.extend(unknown.map(|used| used.mistake(&names)));
    }
    mistakes
}

impl Use {
    fn mistake(&self, names: &BTreeSet<&str>) -> Mistake {
        let nearest = nearest(&self.name, names.iter().copied());
        let meant = match &nearest {
            Some(name) => format!("did you mean {name}?"),
            None => {
                let told: Vec<&str> = names.iter().copied().take(TOLD).collect();
                let more = if names.len() > TOLD { " …" } else { "" };
                format!("known are {}{more}", told.join(", "))
            }
        };
        Mistake {
            part: self.part.clone(),
            line: self.line,
            column: self.column,
            message: format!("the field {:?} is not known; {meant}", self.name),
            nearest,
        }
    }
}

/// The known name that was probably meant.
pub(super) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let lower = name.to_lowercase();
    let distance = |known: &str| strsim::osa_distance(&lower, &known.to_lowercase());
    let closest = known.into_iter().min_by_key(|known| distance(known))?;
    let is_close = distance(closest) <= (closest.chars().count() / 3).max(1);
    is_close.then(|| closest.to_owned())
}
