//! Unknown fields of an order. Clients of older software send all fields of their forms, so an order is not
//! refused for them unless it is strict; but a typo must not go unnoticed.

use serde_json::{Map, Value};
use stampede_wire::ticketing::orders::Warning;

use crate::input::Fields;
use crate::unknown;

const ORDER: [&str; 8] =
    ["target", "quantity", "name", "email", "seat", "price", "holders", "strict"];
const HOLDER: [&str; 4] = ["name", "email", "seat", "price"];
/// Different names in one answer.
const TOLD: usize = 20;

/// An unknown name.
struct Name<'a> {
    name: &'a str,
    /// The first holder with this field, from 0; `None`: the order itself.
    holder: Option<usize>,
    /// Holders with this field.
    count: usize,
}

/// The unknown fields of an order, each with a remark.
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

    /// Notes each of them as a mistake.
    pub(super) fn refuse(&self, fields: &mut Fields<'_>) {
        for (field, message) in &self.0 {
            fields.wrong(field, message);
        }
    }

    /// Each of them as a warning.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let warning = |(field, message): &(String, String)| Warning {
            kind: "unknown_field".to_owned(),
            field: field.clone(),
            message: format!("{field} was ignored: it {message}"),
            index: None,
            ticket: None,
        };
        self.0.iter().map(warning).collect()
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
    use serde_json::json;

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
