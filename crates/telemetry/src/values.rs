//! Counters, gauges and histograms. Counting is one or two atomic additions: no lock, so that it may happen on hot paths.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus::proto::{self, Bucket, LabelPair, MetricType};

use crate::told::Amount;

/// Something that can be exported, told by a worker and added up by a node.
pub(crate) trait Value: Send + Sync + 'static {
    /// Its type in the text format.
    const TYPE: MetricType;

    /// A value that nothing was added to.
    fn new(bounds: &'static [f64]) -> Self;

    /// The value as Prometheus reads it.
    fn export(&self, labels: Vec<LabelPair>) -> proto::Metric;

    /// The value as a worker tells it; `None`: nothing was added yet.
    fn amount(&self) -> Option<Amount>;

    /// Adds what a worker has counted since it told `before`. Amounts of another type or shape are not added.
    fn add_since(&self, before: Option<&Amount>, now: &Amount);
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Value for Counter {
    const TYPE: MetricType = MetricType::COUNTER;

    fn new(_: &'static [f64]) -> Self {
        Self::default()
    }

    fn export(&self, labels: Vec<LabelPair>) -> proto::Metric {
        counter(labels, self.value() as f64)
    }

    fn amount(&self) -> Option<Amount> {
        let count = self.value();
        (count > 0).then_some(Amount::Count(count))
    }

    fn add_since(&self, before: Option<&Amount>, now: &Amount) {
        let Amount::Count(now) = now else { return };
        let before = if let Some(Amount::Count(before)) = before { *before } else { 0 };
        self.add(now.saturating_sub(before));
    }
}

fn counter(labels: Vec<LabelPair>, value: f64) -> proto::Metric {
    let mut counter = proto::Counter::default();
    counter.set_value(value);
    let mut metric = proto::Metric::from_label(labels);
    metric.set_counter(counter);
    metric
}

/// A number that grows and falls.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn value(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn add(&self, change: f64) {
        let sum = |bits: u64| (f64::from_bits(bits) + change).to_bits();
        // Never refused: the closure always has a value.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |bits| Some(sum(bits)));
    }
}

impl Value for Gauge {
    const TYPE: MetricType = MetricType::GAUGE;

    fn new(_: &'static [f64]) -> Self {
        Self::default()
    }

    fn export(&self, labels: Vec<LabelPair>) -> proto::Metric {
        let mut gauge = proto::Gauge::default();
        gauge.set_value(self.value());
        let mut metric = proto::Metric::from_label(labels);
        metric.set_gauge(gauge);
        metric
    }

    fn amount(&self) -> Option<Amount> {
        Some(Amount::Level(self.value()))
    }

    fn add_since(&self, before: Option<&Amount>, now: &Amount) {
        let Amount::Level(now) = now else { return };
        let before = if let Some(Amount::Level(before)) = before { *before } else { 0.0 };
        self.add(now - before);
    }
}

/// A total that is read elsewhere, with a fraction: seconds of a processor.
#[derive(Debug, Default)]
pub(crate) struct Total(Gauge);

impl Total {
    pub(crate) fn set(&self, value: f64) {
        self.0.set(value);
    }
}

impl Value for Total {
    const TYPE: MetricType = MetricType::COUNTER;

    fn new(_: &'static [f64]) -> Self {
        Self::default()
    }

    fn export(&self, labels: Vec<LabelPair>) -> proto::Metric {
        counter(labels, self.0.value())
    }

    fn amount(&self) -> Option<Amount> {
        None
    }

    fn add_since(&self, _: Option<&Amount>, _: &Amount) {}
}

/// How long things took: how many took at most as long as each bound, and all together.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One for each bound, not cumulative, and one for what took longer.
    buckets: Box<[AtomicU64]>,
    nanos: AtomicU64,
}

impl Histogram {
    /// Adds one duration.
    pub fn observe(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = self.bounds.iter().take_while(|bound| seconds > **bound).count();
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    fn counts(&self) -> Vec<u64> {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect()
    }
}

impl Value for Histogram {
    const TYPE: MetricType = MetricType::HISTOGRAM;

    fn new(bounds: &'static [f64]) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::default()).collect();
        Self { bounds, buckets, nanos: AtomicU64::default() }
    }

    fn export(&self, labels: Vec<LabelPair>) -> proto::Metric {
        let counts = self.counts();
        let mut count = 0;
        let mut buckets = Vec::with_capacity(self.bounds.len());
        for (bound, more) in self.bounds.iter().zip(&counts) {
            count += more;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(count);
            buckets.push(bucket);
        }
        let mut histogram = proto::Histogram::default();
        // Of the same reading as the buckets: Prometheus refuses a count that is not that of the last bucket.
        histogram.set_sample_count(counts.iter().sum());
        histogram.set_sample_sum(self.nanos.load(Ordering::Relaxed) as f64 / 1e9);
        histogram.set_bucket(buckets);
        let mut metric = proto::Metric::from_label(labels);
        metric.set_histogram(histogram);
        metric
    }

    fn amount(&self) -> Option<Amount> {
        let counts = self.counts();
        let nanos = self.nanos.load(Ordering::Relaxed);
        (counts.iter().any(|count| *count > 0)).then_some(Amount::Times { counts, nanos })
    }

    fn add_since(&self, before: Option<&Amount>, now: &Amount) {
        let Amount::Times { counts, nanos } = now else { return };
        if counts.len() != self.buckets.len() {
            return;
        }
        let (before, nanos_before) = match before {
            Some(Amount::Times { counts, nanos }) => (counts.as_slice(), *nanos),
            _ => (&[][..], 0),
        };
        for (at, (bucket, now)) in self.buckets.iter().zip(counts).enumerate() {
            let before = before.get(at).copied().unwrap_or_default();
            bucket.fetch_add(now.saturating_sub(before), Ordering::Relaxed);
        }
        self.nanos.fetch_add(nanos.saturating_sub(nanos_before), Ordering::Relaxed);
    }
}

/// How much of a total that is kept elsewhere was counted already.
#[derive(Debug, Default)]
pub(crate) struct Seen(AtomicU64);

impl Seen {
    /// What the total has grown by since the last call.
    pub(crate) fn growth(&self, total: u64) -> u64 {
        total.saturating_sub(self.0.fetch_max(total, Ordering::Relaxed))
    }
}
