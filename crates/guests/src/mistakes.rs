//! Mistakes in the rows of a file, and columns that were ignored.

/// Mistakes that are listed; more are only counted.
const LISTED: usize = 1_000;
/// Different columns or fields that are remarked on.
const REMARKED: usize = 20;
/// Longest name of a column that is shown, in characters.
const SHOWN: usize = 40;

/// A mistake in one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line of the file where the row begins, from 1; `None` in JSON, whose paths say more.
    pub line: Option<u64>,
    /// The field: `email`, `holders[3].email`; empty if it is about the whole row.
    pub field: String,
    /// The rule that it breaks.
    pub message: String,
}

/// The mistakes of a file.
#[derive(Debug, Clone, Default)]
pub struct Mistakes {
    /// The first thousand.
    pub listed: Vec<Mistake>,
    /// All of them.
    pub count: u64,
}

impl Mistakes {
    /// Notes a mistake.
    pub fn note(&mut self, place: Place, field: &str, message: impl std::fmt::Display) {
        self.count += 1;
        if self.listed.len() < LISTED {
            let (line, field) = match place {
                Place::Line(line) => (Some(line), field.to_owned()),
                Place::Entry(list, index) if field.is_empty() => (None, format!("{list}[{index}]")),
                Place::Entry(list, index) => (None, format!("{list}[{index}].{field}")),
                Place::Body => (None, field.to_owned()),
            };
            self.listed.push(Mistake { line, field, message: message.to_string() });
        }
    }
}

/// The place of a row in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line, from 1.
    Line(u64),
    /// An entry of a list with this name, from 0.
    Entry(&'static str, usize),
    /// The object around the list.
    Body,
}

/// A column or field that was ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Its name, as it is shown.
    pub name: String,
    /// What a person should know about it.
    pub message: String,
}

/// Fields that rows have and nobody knows, each told once.
#[derive(Debug, Default)]
pub struct Ignored(Vec<(String, u64)>);

impl Ignored {
    /// Counts a field of one row.
    pub fn note(&mut self, name: &str) {
        let cut = shown(name);
        if let Some((_, count)) = self.0.iter_mut().find(|(known, _)| *known == cut) {
            *count += 1;
        } else if self.0.len() < REMARKED {
            self.0.push((cut, 1));
        }
    }

    /// A remark for each.
    pub fn remarks(self, known: &[&str]) -> Vec<Remark> {
        let remark = |(name, count): (String, u64)| {
            let rows = if count == 1 {
                "1 row has it".to_owned()
            } else {
                format!("{count} rows have it")
            };
            Remark { message: format!("was ignored: it {} ({rows})", unknown(&name, known)), name }
        };
        self.0.into_iter().map(remark).collect()
    }
}

/// The message about an unknown name, with the name that was probably meant.
pub fn unknown(name: &str, known: &[&str]) -> String {
    let lower = name.to_lowercase();
    let distance = |known: &&&str| strsim::osa_distance(&lower, known);
    match known.iter().min_by_key(distance) {
        Some(closest) if distance(&closest) <= (closest.chars().count() / 3).max(1) => {
            format!("is not known here; did you mean {closest}?")
        }
        _ => format!("is not known here; known are {}", known.join(", ")),
    }
}

/// A name from the file as it is shown: short, without control characters.
pub fn shown(name: &str) -> String {
    let cut: String = name.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    if cut.len() < name.len() { format!("{cut}…") } else { cut }
}
