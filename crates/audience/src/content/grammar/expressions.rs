//! What stands inside of outputs and tags: values, filters, conditions.

use super::{Writer, field_name, named};
use crate::content::filters::{FILTERS, check_date_format};
use crate::content::scan::Piece;
use crate::content::tokens::{Token, tokens};

/// Words that are no fields.
const RESERVED: [&str; 7] = ["true", "false", "nil", "null", "blank", "empty", "forloop"];

impl<'t> Writer<'t, '_> {
    /// Reads a value and its filters.
    pub(super) fn chain(&mut self, mut words: Words<'t>) -> Option<String> {
        if words.peek().is_none() {
            self.mistake(words.ends, "is empty; write the name of a field");
            return None;
        }
        let mut chain = self.value(&mut words)?;
        while let Some((position, token)) = words.take() {
            if token != Token::Pipe {
                self.unexpected(position, token);
                return None;
            }
            chain.push_str(&format!(" | {}", self.filter(&mut words)?));
        }
        Some(chain)
    }

    fn filter(&mut self, words: &mut Words<'t>) -> Option<String> {
        let (position, name) = match words.take() {
            Some((position, Token::Name(name))) => (position, name),
            Some((position, token)) => return self.refuse(position, token),
            None => {
                self.mistake(words.ends, "a filter is missing after |");
                return None;
            }
        };
        let Some((_, fewest, most)) = FILTERS.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<&str> = FILTERS.iter().map(|(known, ..)| *known).collect();
            self.mistake(position, named("filter", name, &known));
            return None;
        };
        let mut arguments = Vec::new();
        if matches!(words.peek(), Some((_, Token::Colon))) {
            words.take();
            loop {
                arguments.push(self.argument(name, words)?);
                match words.peek() {
                    Some((_, Token::Comma)) => words.take(),
                    _ => break,
                };
            }
        }
        if !(*fewest..=*most).contains(&arguments.len()) {
            let wanted =
                if fewest == most { fewest.to_string() } else { format!("{fewest} to {most}") };
            let given = arguments.len();
            self.mistake(
                position,
                format!("the filter {name} takes {wanted} values after its colon, has {given}"),
            );
            return None;
        }
        let colon = if arguments.is_empty() { "" } else { ": " };
        Some(format!("{name}{colon}{}", arguments.join(", ")))
    }

    fn argument(&mut self, filter: &str, words: &mut Words<'t>) -> Option<String> {
        match words.peek() {
            Some((position, Token::Number(number))) => {
                words.take();
                if number.parse::<i32>().is_err() {
                    self.mistake(position, format!("{number} is no whole number"));
                    return None;
                }
                Some(number.to_owned())
            }
            Some((position, Token::Text(text))) if filter == "date" => {
                words.take();
                if let Err(message) = check_date_format(&text[1..text.len() - 1]) {
                    self.mistake(position, message);
                    return None;
                }
                Some(text.to_owned())
            }
            _ => self.value(words),
        }
    }

    pub(super) fn condition_tag(&mut self, piece: &Piece<'t>, name: &str, mut words: Words<'t>) {
        let mut condition = String::from(name);
        loop {
            let Some(one) = self.comparison(&mut words) else { return };
            condition.push_str(&format!(" {one}"));
            match words.take() {
                None => break,
                Some((_, Token::Name(word @ ("and" | "or")))) => {
                    condition.push_str(&format!(" {word}"))
                }
                Some((position, token)) => return self.unexpected(position, token),
            }
        }
        self.braces(piece, "{%", &condition, "%}");
    }

    fn comparison(&mut self, words: &mut Words<'t>) -> Option<String> {
        let is_field = matches!(words.peek(), Some((_, Token::Name(_))));
        let left = self.value(words)?;
        let operator = match words.peek() {
            Some((_, Token::Operator(operator @ ("==" | "!=" | "<>")))) => operator,
            Some((_, Token::Name("contains"))) => "contains",
            Some((position, Token::Operator(operator))) => {
                self.mistake(
                    position,
                    format!("{operator} is not allowed: fields are texts; use ==, != or contains"),
                );
                return None;
            }
            // A field alone asks whether it has a visible character.
            _ if is_field => return Some(format!("{left} != blank")),
            _ => return Some(left),
        };
        words.take();
        let operator = if operator == "<>" { "!=" } else { operator };
        let right = match words.peek() {
            Some((_, Token::Name(state @ ("blank" | "empty")))) if operator != "contains" => {
                words.take();
                state.to_owned()
            }
            _ => self.value(words)?,
        };
        Some(format!("{left} {operator} {right}"))
    }

    pub(super) fn when(&mut self, piece: &Piece<'t>, mut words: Words<'t>) {
        let mut values = Vec::new();
        loop {
            let Some(value) = self.value(&mut words) else { return };
            values.push(value);
            match words.take() {
                None => break,
                Some((_, Token::Comma | Token::Name("or"))) => {}
                Some((position, token)) => return self.unexpected(position, token),
            }
        }
        self.braces(piece, "{%", &format!("when {}", values.join(", ")), "%}");
    }

    /// Reads a field or a text.
    pub(super) fn value(&mut self, words: &mut Words<'t>) -> Option<String> {
        match words.take() {
            Some((_, Token::Text(text))) => Some(text.to_owned()),
            Some((position, Token::Name(name))) if RESERVED.contains(&name) => {
                self.mistake(
                    position,
                    format!("{name} is no field; fields are texts: write \"{name}\""),
                );
                None
            }
            Some((position, Token::Name(name))) => Some(self.field(position, name)),
            Some((position, Token::Number(number))) => {
                self.mistake(position, format!("fields are texts: write \"{number}\" in quotes"));
                None
            }
            Some((position, token)) => self.refuse(position, token),
            None => {
                self.mistake(words.ends, "a value is missing; write a field, or a text in quotes");
                None
            }
        }
    }

    fn field(&mut self, position: usize, name: &str) -> String {
        let place = self.places.of(position);
        self.written.uses.push((place, name.to_owned()));
        let index = self.fields.iter().position(|known| known == name).unwrap_or_else(|| {
            self.fields.push(name.to_owned());
            self.fields.len() - 1
        });
        field_name(index)
    }
}

/// The words of one piece, taken one after the other.
pub(super) struct Words<'t> {
    words: std::iter::Peekable<std::vec::IntoIter<(usize, Token<'t>)>>,
    /// Where the piece begins in the template.
    begins: usize,
    /// Where it ends.
    ends: usize,
}

impl<'t> Words<'t> {
    pub(super) fn new(piece: &Piece<'t>) -> Self {
        let begins = piece.inner_begins;
        let words = tokens(piece.inner).into_iter().peekable();
        Self { words, begins, ends: begins + piece.inner.len() }
    }

    pub(super) fn take(&mut self) -> Option<(usize, Token<'t>)> {
        let (position, token) = self.words.next()?;
        Some((self.begins + position, token))
    }

    pub(super) fn peek(&mut self) -> Option<(usize, Token<'t>)> {
        let (position, token) = self.words.peek()?;
        Some((self.begins + position, *token))
    }
}
