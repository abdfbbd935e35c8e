//! Pages of lists: the same parameters, and the same `next`, everywhere.
//!
//! | parameter | meaning |
//! |---|---|
//! | `limit` | records on the page |
//! | `after` | the cursor: `next` of the page before |
//! | `order` | `asc` or `desc`; every list has a default |
//! | `from`, `to` | records that were made from one moment on and before another one |
//!
//! A cursor names the last record of its page, not a number: records that come or go meanwhile move no other record, so that
//! none is shown twice and none is left out.

use std::str::FromStr;

use stampede_model::Timestamp;
use stampede_store::{Slice, Sorted};
use stampede_wire::Paged;

use crate::problem::Problem;
use crate::query::{FromQuery, Query};
use crate::routes::Paging;

/// `?limit=…&after=…&order=…` of a list.
#[derive(Debug)]
pub(crate) struct Page {
    paging: Paging,
    sorted: Option<Sorted>,
}

impl FromQuery for Page {
    fn from_query(query: &mut Query) -> Self {
        let paging = Paging::from_query(query);
        let order = query
            .about("`asc`: oldest or smallest first, `desc`: newest or largest first.")
            .word("order", &["asc", "desc"], "must be asc or desc");
        let sorted = order.map(|order| match order {
            "asc" => Sorted::OldestFirst,
            _ => Sorted::NewestFirst,
        });
        Self { paging, sorted }
    }
}

impl Page {
    /// The part of a list in the store; `usual` is its order unless the request names one.
    pub(crate) fn slice<I: FromStr>(
        &self,
        usual: Sorted,
        times: &Times,
    ) -> Result<Slice<I>, Problem> {
        Ok(Slice {
            after: self.paging.after()?,
            from: times.from,
            to: times.to,
            sorted: self.sorted.unwrap_or(usual),
            limit: self.paging.limit(),
        })
    }

    /// The `after` of the next page; `None` on the last.
    pub(crate) fn next<T, I>(&self, page: &[T], id: impl Fn(&T) -> I) -> Option<I> {
        self.paging.next(page, id)
    }

    /// A page of a list that is held in memory, which has all records unless the request has a `limit`. `key` names a record;
    /// records are sorted by it when the request asks for a part or an order.
    pub(crate) fn cut<T, L>(
        &self,
        mut records: Vec<T>,
        key: impl Fn(&T) -> String,
        list: impl FnOnce(Vec<T>) -> L,
    ) -> Paged<L> {
        let limit = self.paging.chosen_limit();
        let after = self.paging.chosen_after();
        if limit.is_none() && after.is_none() && self.sorted.is_none() {
            return Paged { list: list(records), next: None };
        }
        records.sort_by_cached_key(&key);
        let newest_first = self.sorted == Some(Sorted::NewestFirst);
        if newest_first {
            records.reverse();
        }
        if let Some(after) = after {
            // The record of the cursor may be gone: the page begins where it would be.
            records.retain(|record| match newest_first {
                true => key(record).as_str() < after,
                false => key(record).as_str() > after,
            });
        }
        let limit = limit.unwrap_or(usize::MAX);
        let is_full = records.len() > limit;
        records.truncate(limit);
        let next = records.last().filter(|_| is_full).map(&key);
        Paged { list: list(records), next }
    }
}

/// `?from=…&to=…`: when records were made.
#[derive(Debug, Default)]
pub(crate) struct Times {
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
}

impl FromQuery for Times {
    fn from_query(query: &mut Query) -> Self {
        const RIGHT: &str = "must be a time such as 2026-11-21T19:30:00Z";
        Self {
            from: query.about("Records of this moment or later.").parsed("from", RIGHT),
            to: query.about("Records before this moment.").parsed("to", RIGHT),
        }
    }
}

/// A part of a list that is sorted by age.
pub(crate) struct Part {
    pub(crate) page: Page,
    pub(crate) times: Times,
}

impl FromQuery for Part {
    fn from_query(query: &mut Query) -> Self {
        Self { page: Page::from_query(query), times: Times::from_query(query) }
    }
}

impl Part {
    /// The part; `usual` is the order unless the request names one.
    pub(crate) fn slice<I: FromStr>(&self, usual: Sorted) -> Result<Slice<I>, Problem> {
        self.page.slice(usual, &self.times)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn page(limit: Option<u32>, after: Option<&str>, sorted: Option<Sorted>) -> Page {
        Page { paging: Paging::of(limit, after), sorted }
    }

    fn cut(page: &Page, records: &[&str]) -> (Vec<String>, Option<String>) {
        let records: Vec<String> = records.iter().map(|&record| record.to_owned()).collect();
        let Paged { list, next } = page.cut(records, String::clone, |records| records);
        (list, next)
    }

    #[test]
    fn without_parameters_a_list_is_whole_and_in_its_own_order() {
        let (list, next) = cut(&page(None, None, None), &["b", "a"]);
        assert_eq!((list.join(""), next), ("ba".to_owned(), None));
    }

    #[test]
    fn pages_show_each_record_once_though_others_come_and_go() {
        for sorted in [Sorted::OldestFirst, Sorted::NewestFirst] {
            let (mut seen, mut after) = (Vec::new(), None::<String>);
            let mut records = vec!["b", "d", "f", "h", "j"];
            loop {
                let (list, next) = cut(&page(Some(2), after.as_deref(), Some(sorted)), &records);
                seen.extend(list);
                // One that was shown goes, and others come on both sides of the cursor.
                if seen.len() == 2 {
                    records.retain(|record| *record != seen[1].as_str());
                    records.extend(["a", "z"]);
                }
                let Some(next) = next else { break };
                after = Some(next);
            }
            let old: String =
                seen.iter().filter(|r| "bdfhj".contains(r.as_str())).cloned().collect();
            let wanted = if sorted == Sorted::OldestFirst { "bdfhj" } else { "jhfdb" };
            assert_eq!(old, wanted);
        }
    }

    /// Answers with an array that have no pages, and why.
    const WHOLE: [(&str, &str); 9] = [
        ("listTicketKeys", "an event has at most a hundred keys, and verifiers need all of them"),
        ("listDecisions", "there are at most a hundred"),
        ("getDoor", "what one key may do"),
        ("getBundle", "packed; parts of it follow by `since`"),
        ("getCheckInStatistics", "sums"),
        ("getReport", "sums"),
        ("listStickerVariants", "there are eight"),
        ("getCluster", "the alerts of one coordinator"),
        ("getHealth", "the state of one node"),
    ];
    /// Lists that have one order, and why.
    const ONE_ORDER: [(&str, &str); 6] = [
        ("listScans", "the log is read from its end, and its cursor is a number of it"),
        ("listRevisions", "the last one is what people look for"),
        ("listJobs", "the queue has an order of its own"),
        ("listDeadLetters", "the queue has an order of its own"),
        ("listRecipients", "in the order in which they are sent to"),
        ("listSuppressions", "sorted by address"),
    ];

    #[test]
    fn every_answer_with_a_list_takes_limit_after_and_order() {
        let document: Value = serde_json::from_str(crate::describe::openapi()).unwrap();
        let resolved = |schema: &Value| match schema["$ref"].as_str() {
            Some(reference) => document.pointer(&reference[1..]).unwrap().clone(),
            None => schema.clone(),
        };
        let is_among = |list: &[(&str, &str)], id: &str| list.iter().any(|(other, _)| *other == id);
        let mut seen = Vec::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            let operation = &operations["get"];
            // A path that ends with an id is that of one record, which may have arrays.
            if operation.is_null() || path.ends_with('}') {
                continue;
            }
            let id = operation["operationId"].as_str().unwrap();
            let answer = &operation["responses"]["200"]["content"]["application/json"]["schema"];
            let schema = resolved(answer);
            let is_array =
                |property: &Value| resolved(property)["type"].to_string().contains("array");
            let properties = schema["properties"].as_object();
            let has_array = properties.is_some_and(|all| all.values().any(is_array));
            if schema["type"] != "array" && !has_array {
                continue;
            }
            seen.push(id);
            let takes = |name: &str| {
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                parameters.into_iter().any(|parameter| parameter["name"] == name)
            };
            let is_whole = is_among(&WHOLE, id);
            for name in ["limit", "after"] {
                assert!(takes(name) != is_whole, "{id} and {name}: take it, or say why not");
            }
            let has_one_order = is_whole || is_among(&ONE_ORDER, id);
            assert!(takes("order") != has_one_order, "{id} and order: take it, or say why not");
            assert!(is_whole || properties.is_some_and(|all| all.contains_key("next")), "{id}");
        }
        assert!(seen.len() > 20, "{seen:?}");
        for (id, _) in WHOLE.iter().chain(&ONE_ORDER) {
            assert!(seen.contains(id), "{id} is no list any more: {seen:?}");
        }
    }

    #[test]
    fn the_last_page_has_no_next() {
        let (list, next) = cut(&page(Some(2), None, None), &["a", "b"]);
        assert_eq!((list.len(), next), (2, None));
        let (list, next) = cut(&page(Some(1), None, None), &["a", "b"]);
        assert_eq!((list.len(), next.as_deref()), (1, Some("a")));
    }
}
