//! A metric with all combinations of its label values that were counted.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{LabelPair, MetricFamily, MetricType};

use crate::labels::{Allowed, Label, LabelValues};
use crate::told::{Amount, Series};
use crate::values::Value;

/// A line of the table.
#[derive(Debug)]
pub struct About {
    /// The name of the metric.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// Its labels.
    pub labels: &'static [Label],
    /// Upper bounds of its buckets, if it is a histogram.
    pub bounds: &'static [f64],
    /// Workers count it, too, and tell their node.
    pub is_told: bool,
}

/// A metric. Clones are the same.
pub(crate) struct Family<V>(Arc<Shared<V>>);

struct Shared<V> {
    about: &'static About,
    allowed: Arc<Allowed>,
    series: RwLock<HashMap<Vec<String>, Arc<V>>>,
}

impl<V> Clone for Family<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// A metric, whatever its type.
pub(crate) trait AnyFamily {
    fn about(&self) -> &'static About;

    /// Makes the registry show the metric.
    fn register(&self, registry: &prometheus::Registry) -> prometheus::Result<()>;

    /// Adds what this process has counted.
    fn tell(&self, told: &mut Vec<Series>);

    /// Adds what a worker has counted since it told `before`.
    fn add_since(&self, labels: &[String], before: Option<&Amount>, now: &Amount);
}

impl<V: Value> Family<V> {
    pub(crate) fn new(about: &'static About, allowed: &Arc<Allowed>) -> Self {
        Self(Arc::new(Shared { about, allowed: allowed.clone(), series: RwLock::default() }))
    }

    /// The value for these label values, in the order of the table. Shown from now on. Hot paths keep what this returns.
    pub(crate) fn with(&self, values: &[&str]) -> Arc<V> {
        let Shared { about, series, .. } = &*self.0;
        let key = self.allowed(values);
        if let Some(found) = series.read().get(&key) {
            return found.clone();
        }
        let new = || Arc::new(V::new(about.bounds));
        series.write().entry(key).or_insert_with(new).clone()
    }

    /// Shows none of its values any more.
    pub(crate) fn clear(&self) {
        self.0.series.write().clear();
    }

    /// Label values as they are shown.
    pub(crate) fn allowed(&self, values: &[impl AsRef<str>]) -> Vec<String> {
        let Shared { about, allowed, .. } = &*self.0;
        debug_assert_eq!(values.len(), about.labels.len(), "labels of {}", about.name);
        let pairs = about.labels.iter().zip(values);
        pairs.map(|(label, value)| allowed.value(label, value.as_ref()).to_owned()).collect()
    }

    /// Shows all combinations of its label values, if all of them are of closed sets.
    pub(crate) fn show_all(&self) {
        let mut combinations: Vec<Vec<&'static str>> = vec![Vec::new()];
        for label in self.0.about.labels {
            let LabelValues::OneOf(values) = label.values else { return };
            let longer = |begin: Vec<&'static str>| {
                values.iter().map(move |value| [begin.as_slice(), &[*value]].concat())
            };
            combinations = combinations.into_iter().flat_map(longer).collect();
        }
        for values in combinations {
            let _ = self.with(&values);
        }
    }

    /// Calls a function with each value.
    pub(crate) fn each(&self, call: impl Fn(&V)) {
        self.0.series.read().values().for_each(|value| call(value));
    }

    /// Shows exactly these values, whose labels are allowed. Readers never see a part of them.
    pub(crate) fn replace_all(&self, all: impl Iterator<Item = (Vec<String>, V)>) {
        let shown = all.map(|(labels, value)| (labels, Arc::new(value))).collect();
        *self.0.series.write() = shown;
    }
}

impl<V: Value> AnyFamily for Family<V> {
    fn about(&self) -> &'static About {
        self.0.about
    }

    fn register(&self, registry: &prometheus::Registry) -> prometheus::Result<()> {
        let About { name, help, labels, .. } = self.0.about;
        let labels = labels.iter().map(|label| label.name.to_owned()).collect();
        let desc = Desc::new((*name).to_owned(), (*help).to_owned(), labels, HashMap::default())?;
        registry.register(Box::new(Exported { family: self.clone(), desc }))
    }

    fn tell(&self, told: &mut Vec<Series>) {
        for (labels, value) in self.0.series.read().iter() {
            if let Some(amount) = value.amount() {
                let (name, labels) = (self.0.about.name.to_owned(), labels.clone());
                told.push(Series { name, labels, amount });
            }
        }
    }

    fn add_since(&self, labels: &[String], before: Option<&Amount>, now: &Amount) {
        if labels.len() == self.0.about.labels.len() {
            let values: Vec<&str> = labels.iter().map(String::as_str).collect();
            self.with(&values).add_since(before, now);
        }
    }
}

/// A metric as the registry has it.
struct Exported<V> {
    family: Family<V>,
    desc: Desc,
}

impl<V: Value> Collector for Exported<V> {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let about = self.family.0.about;
        let pairs = |values: &[String]| {
            let pairs = about.labels.iter().zip(values).map(|(label, value)| {
                let mut pair = LabelPair::default();
                pair.set_name(label.name.to_owned());
                pair.set_value(value.clone());
                pair
            });
            pairs.collect::<Vec<_>>()
        };
        let series = self.family.0.series.read();
        let metrics = series.iter().map(|(values, value)| value.export(pairs(values))).collect();
        let mut family = MetricFamily::default();
        family.set_name(about.name.to_owned());
        family.set_help(about.help.to_owned());
        family.set_field_type(V::TYPE);
        family.set_metric(metrics);
        debug_assert!(about.bounds.is_empty() == (V::TYPE != MetricType::HISTOGRAM));
        vec![family]
    }
}
