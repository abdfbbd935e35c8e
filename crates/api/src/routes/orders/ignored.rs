//! Fields of an order that nobody knows. Clients of seed 000 send whatever they have in their forms, so
//! an order is not refused for it unless it is strict; but a typo must not go unnoticed.

use serde_json::{Map, Value, json};

use crate::input::Fields;
use crate::unknown;

const ORDER: [&str; 8] =
    ["target", "quantity", "name", "email", "seat", "price", "holders", "strict"];
const HOLDER: [&str; 4] = ["name", "email", "seat", "price"];
/// Different names that are told; more help nobody.
const TOLD: usize = 20;

/// A name that nobody knows.
struct Name<'a> {
    name: &'a str,
    /// The first holder who has it, from 0; `None`: the order itself.
    holder: Option<usize>,
    /// How many have it.
    count: usize,
}

/// What an order has that nobody reads: field, and what to say about it.
pub(super) struct Ignored(Vec<(String, String)>);

impl Ignored {
    pub(super) fn find(order: &Map<String, Value>) -> Self {
        let mut names: Vec<Name<'_>> = Fields::new(order)
            .unknown(&ORDER)
            .into_iter()
            .map(|name| Name { name, holder: None, count: 1 })
            .collect();
        let own = names.len();
        let holders = order.get("holders").and_then(Value::as_array).into_iter().flatten();
        for (index, holder) in holders.enumerate() {
            let Some(holder) = holder.as_object() else { continue };
            for name in Fields::new(holder).unknown(&HOLDER) {
                if let Some(known) = names[own..].iter_mut().find(|known| known.name == name) {
                    known.count += 1;
                } else if names.len() < TOLD {
                    names.push(Name { name, holder: Some(index), count: 1 });
                }
            }
        }
        Self(names.iter().map(Name::told).collect())
    }

    /// Refuses the order for them.
    pub(super) fn refuse(&self, fields: &mut Fields<'_>) {
        for (field, message) in &self.0 {
            fields.wrong(field, message);
        }
    }

    /// As warnings in the answer.
    pub(super) fn shown(&self) -> Vec<Value> {
        let shown = |(field, message): &(String, String)| {
            let message = format!("{field} was ignored: it {message}");
            json!({ "kind": "unknown_field", "field": field, "message": message })
        };
        self.0.iter().map(shown).collect()
    }
}

impl Name<'_> {
    fn told(&self) -> (String, String) {
        let name = unknown::shown(self.name);
        match self.holder {
            None => (name, unknown::remark(self.name, &ORDER)),
            Some(index) => {
                let mut remark = unknown::remark(self.name, &HOLDER);
                if self.count > 1 {
                    remark.push_str(&format!(" ({} of the holders have it)", self.count));
                }
                (format!("holders[{index}].{name}"), remark)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(order: Value) -> Vec<(String, String)> {
        Ignored::find(order.as_object().unwrap()).0
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
        let flood = |n: usize| -> Map<String, Value> {
            (0..100).map(|m| (format!("field-{n}-{m}"), json!(1))).collect()
        };
        let holders: Vec<Map<String, Value>> = (0..100).map(flood).collect();
        assert_eq!(found(json!({ "holders": holders })).len(), TOLD);
    }
}
