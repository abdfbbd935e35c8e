//! The values that labels may have.
//!
//! Every value of a label is a time series that Prometheus keeps for weeks. So a label has values of a closed set, or names that
//! an administrator or a developer chose, and of those a limited number: all others are counted as [`OTHER`].

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

/// The value of a label for all values that are not allowed, or too many.
pub(crate) const OTHER: &str = "other";

/// A label of a metric.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// The values it may have.
    pub values: LabelValues,
}

/// The values that a label may have.
#[derive(Debug, Clone, Copy)]
pub enum LabelValues {
    /// These, and "other".
    OneOf(&'static [&'static str]),
    /// Names of queues: the first 200.
    Queue,
    /// Names of outside services: the first 100.
    Service,
    /// Patterns of the routes of this program, such as `/api/events/{id}`.
    Route,
    /// Status codes of HTTP.
    Status,
    /// The version of this program.
    Version,
}

/// Names that were seen, up to a limit.
#[derive(Debug)]
struct Names {
    most: usize,
    kind: &'static str,
    known: RwLock<HashSet<String>>,
    warned: AtomicBool,
}

impl Names {
    fn new(kind: &'static str, most: usize) -> Self {
        Self { most, kind, known: RwLock::default(), warned: AtomicBool::new(false) }
    }

    fn allow<'a>(&self, name: &'a str) -> &'a str {
        if self.known.read().contains(name) {
            return name;
        }
        let mut known = self.known.write();
        if known.len() < self.most || known.contains(name) {
            known.insert(name.to_owned());
            return name;
        }
        drop(known);
        if !self.warned.swap(true, Ordering::Relaxed) {
            let (kind, most) = (self.kind, self.most);
            tracing::warn!(
                kind,
                most,
                "too many names for metrics: the rest is counted as \"other\""
            );
        }
        OTHER
    }
}

/// The names that all metrics of a process share.
#[derive(Debug)]
pub(crate) struct Allowed {
    queues: Names,
    services: Names,
    routes: Names,
}

impl Default for Allowed {
    fn default() -> Self {
        Self {
            queues: Names::new("queue", 200),
            services: Names::new("service", 100),
            routes: Names::new("route", 500),
        }
    }
}

impl Allowed {
    /// The value itself, or "other".
    pub(crate) fn value<'a>(&self, label: &Label, value: &'a str) -> &'a str {
        match label.values {
            LabelValues::OneOf(values) if values.contains(&value) => value,
            LabelValues::Queue => self.queues.allow(value),
            LabelValues::Service => self.services.allow(value),
            LabelValues::Route => self.routes.allow(value),
            LabelValues::Status if is_status(value) => value,
            LabelValues::Version => value,
            LabelValues::OneOf(_) | LabelValues::Status => OTHER,
        }
    }
}

fn is_status(value: &str) -> bool {
    value.len() == 3 && value.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_not_of_the_set_are_counted_together() {
        let allowed = Allowed::default();
        let state = Label { name: "state", values: LabelValues::OneOf(&["up", "down"]) };
        assert_eq!(allowed.value(&state, "down"), "down");
        assert_eq!(allowed.value(&state, "ann@example.com"), OTHER);
        let status = Label { name: "status", values: LabelValues::Status };
        assert_eq!([allowed.value(&status, "404"), allowed.value(&status, "4o4")], ["404", OTHER]);
    }

    #[test]
    fn the_first_two_hundred_queues_keep_their_names() {
        let allowed = Allowed::default();
        let queue = Label { name: "queue", values: LabelValues::Queue };
        let names: Vec<String> = (0..300).map(|n| format!("q{n}")).collect();
        let shown: HashSet<&str> = names.iter().map(|name| allowed.value(&queue, name)).collect();
        assert_eq!((shown.len(), shown.contains(OTHER), shown.contains("q199")), (201, true, true));
        assert_eq!(allowed.value(&queue, "q0"), "q0", "a name that is known stays");
    }
}
