//! Unknown fields of an order. Clients of older software send all fields of their forms, so an order is not
//! refused for them unless it is strict; but a typo must not go unnoticed.

use stampede_wire::ticketing::orders::Warning;

use super::request::{HolderForm, OrderForm};
use crate::forms::{Form, Mistakes, Unknown};
use crate::unknown;

/// Different names in one answer.
const TOLD: usize = 20;

/// An unknown name.
#[derive(Debug, Clone)]
struct Name {
    name: String,
    /// The first holder with this field, from 0; `None`: the order itself.
    holder: Option<usize>,
    /// Holders with this field.
    count: usize,
}

/// The unknown fields of an order.
#[derive(Debug, Clone, Default)]
pub(super) struct Ignored(Vec<Name>);

impl Ignored {
    /// Notes the unknown fields of one holder.
    pub(super) fn note_holder(&mut self, index: usize, unknown: &Unknown) {
        for name in unknown.names() {
            if let Some(known) = self.0.iter_mut().find(|known| known.name == name) {
                known.count += 1;
            } else if self.0.len() < TOLD {
                self.0.push(Name { name: name.to_owned(), holder: Some(index), count: 1 });
            }
        }
    }

    /// The unknown fields of an order, then those of its holders.
    pub(super) fn of_order(unknown: &Unknown, holders: Self) -> Self {
        let own =
            unknown.names().map(|name| Name { name: name.to_owned(), holder: None, count: 1 });
        Self(own.chain(holders.0).take(TOLD).collect())
    }

    /// Notes each of them as a mistake.
    pub(super) fn refuse(&self, mistakes: &mut Mistakes) {
        for (field, message) in self.0.iter().map(Name::told) {
            mistakes.wrong(&field, message);
        }
    }

    /// Notes those that are probably typos as mistakes: they may explain the others.
    pub(super) fn refuse_typos(&self, mistakes: &mut Mistakes) {
        for (field, message) in self.0.iter().filter(|name| name.is_typo()).map(Name::told) {
            mistakes.wrong(&field, message);
        }
    }

    /// Each of them as a warning.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let warning = |(field, message): (String, String)| Warning {
            kind: "unknown_field".to_owned(),
            message: format!("{field} was ignored: it {message}"),
            field,
            index: None,
            line: None,
            ticket: None,
        };
        self.0.iter().map(Name::told).map(warning).collect()
    }
}

impl Name {
    fn known(&self) -> &'static [&'static str] {
        if self.holder.is_some() { HolderForm::NAMES } else { OrderForm::NAMES }
    }

    fn is_typo(&self) -> bool {
        unknown::closest(&self.name, self.known()).is_some()
    }

    fn told(&self) -> (String, String) {
        let name = unknown::shown(&self.name);
        let mut remark = unknown::remark(&self.name, self.known());
        let Some(index) = self.holder else { return (name, remark) };
        if self.count > 1 {
            remark.push_str(&format!(" ({} of the holders have it)", self.count));
        }
        (format!("holders[{index}].{name}"), remark)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::forms::{ReadingLimits, parse};

    fn found(order: Value) -> Vec<(String, String)> {
        let limits = ReadingLimits { holders: 10_000, payload: 0 };
        let (form, _) = parse::<OrderForm>(order.to_string().as_bytes(), limits, None).unwrap();
        let holders = form.holders.value().cloned().unwrap_or_default();
        Ignored::of_order(&form.unknown, holders.ignored).0.iter().map(Name::told).collect()
    }

    #[test]
    fn each_unknown_name_is_told_once() {
        let holders: Vec<Value> =
            (0..1_000).map(|n| json!({ "name": "A", "emial": "a@b.c", "x": n })).collect();
        let told = found(json!({ "target": "t", "seats": "A", "holders": holders }));
        let [(seats, meant), (emial, typo), (x, other)] = &told[..] else { panic!("{told:?}") };
        assert_eq!((seats.as_str(), emial.as_str()), ("seats", "holders[0].emial"));
        assert!(meant.contains("did you mean seat?"), "{meant}");
        assert!(typo.contains("did you mean email? (1000 of the holders have it)"), "{typo}");
        assert!(x == "holders[0].x" && other.contains("known are name, email"), "{other}");
        assert_eq!(found(json!({ "target": "t", "name": "A", "strict": true })), []);
    }

    #[test]
    fn a_flood_of_names_is_told_shortly() {
        let flood = |n: usize| -> serde_json::Map<String, Value> {
            (0..100).map(|m| (format!("field-{n}-{m}"), json!(1))).collect()
        };
        let holders: Vec<_> = (0..100).map(flood).collect();
        assert_eq!(found(json!({ "holders": holders })).len(), TOLD);
    }
}
