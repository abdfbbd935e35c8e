//! A recipient that a request gives: it keeps the rules that the rows of files keep.

use std::collections::BTreeMap;

use super::columns::Meaning;
use super::draft::{Draft, Value};

/// A recipient as a request gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecipientRow {
    /// The address, as it was given.
    pub address: String,
    /// The fields that fill a template.
    pub fields: BTreeMap<String, String>,
    /// The recipient's own message.
    pub message: Option<String>,
    /// The recipient's own time zone.
    pub time_zone: Option<String>,
}

impl RecipientRow {
    /// The recipient with trimmed values, and with fields under names that templates can use; else all of its mistakes, each with
    /// its field (empty: the recipient as a whole). Whether the address is one is found out when it is normalised.
    pub fn checked(self) -> Result<Self, Vec<(String, String)>> {
        let mut draft = Draft::default();
        draft.set(&Meaning::Address, "address", Value::from(self.address.as_str()));
        if let Some(message) = &self.message {
            draft.set(&Meaning::Message, "message", Value::from(message.as_str()));
        }
        if let Some(zone) = &self.time_zone {
            draft.set(&Meaning::TimeZone, "timeZone", Value::from(zone.as_str()));
        }
        for (name, value) in &self.fields {
            draft.set_field(name, Value::from(value.as_str()));
        }
        let (row, mistakes) = draft.check(false);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let address = row.address.unwrap_or_default();
        Ok(Self { address, fields: row.fields, message: row.message, time_zone: row.time_zone })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LONGEST_FIELD, LONGEST_MESSAGE, MOST_FIELDS};
    use super::*;

    fn row(fields: &[(&str, &str)]) -> RecipientRow {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        RecipientRow {
            address: " +79991234567 ".to_owned(),
            fields: fields.iter().map(text).collect(),
            message: Some(" Hello\nAnn ".to_owned()),
            time_zone: Some("Europe/Berlin".to_owned()),
        }
    }

    #[test]
    fn values_are_trimmed_and_fields_get_names_that_templates_can_use() {
        let read = row(&[("First name", " Ann "), ("seat", "  ")]).checked().unwrap();
        let wanted = RecipientRow {
            address: "+79991234567".to_owned(),
            message: Some("Hello\nAnn".to_owned()),
            ..row(&[("First_name", "Ann"), ("seat", "")])
        };
        assert_eq!(read, wanted);
        let blank = RecipientRow { message: Some(" \n".to_owned()), ..row(&[]) };
        assert_eq!(blank.checked().unwrap().message, None);
        let nobody = RecipientRow::default().checked().unwrap();
        assert_eq!(nobody.address, "", "it is told when it is normalised");
    }

    #[test]
    fn every_rule_of_a_row_in_a_file_holds() {
        let long = "x".repeat(LONGEST_FIELD + 1);
        let many: Vec<String> = (0..=MOST_FIELDS).map(|n| format!("field{n:02}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "x")).collect();
        for (wrong, told) in [
            (row(&[("name", "N\0l")]), ("name", "contains U+0000; remove it")),
            (row(&[("name", &long)]), ("name", "is longer than 4096 bytes, has 4097")),
            (row(&[("a b", "1"), ("a_b", "2")]), ("a_b", "is given twice")),
            (row(&[("---", "1")]), ("---", "is no name of a field; give it letters")),
            (row(&many), ("", "has more than 16 fields")),
            (
                RecipientRow { time_zone: Some("Mars/Base".to_owned()), ..row(&[]) },
                ("timeZone", "\"Mars/Base\" is no time zone; write one such as Europe/Berlin"),
            ),
            (
                RecipientRow { message: Some("x\u{7}".to_owned()), ..row(&[]) },
                ("message", "contains U+0007; remove it"),
            ),
            (
                RecipientRow { message: Some("x".repeat(LONGEST_MESSAGE + 1)), ..row(&[]) },
                ("message", "is longer than 32768 bytes, has 32769"),
            ),
            (
                RecipientRow { address: "7999\0".to_owned(), ..row(&[]) },
                ("address", "contains U+0000; remove it"),
            ),
        ] {
            let shown = format!("{told:?}");
            let mistakes = wrong.checked().unwrap_err();
            assert_eq!(mistakes, [(told.0.to_owned(), told.1.to_owned())], "{shown}");
        }
        let both = RecipientRow { time_zone: Some("x".to_owned()), ..row(&[("a", "\0")]) };
        assert_eq!(both.checked().unwrap_err().len(), 2, "all mistakes at once");
    }
}
