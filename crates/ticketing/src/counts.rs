//! What is counted of tickets, for metrics.

use std::sync::Arc;

use stampede_press::Ready;
use stampede_telemetry::{Histogram, Metrics, Printed};

/// The metrics of tickets. What every ticket counts is looked up once.
pub(crate) struct Counts {
    metrics: Metrics,
    stamped: Arc<Histogram>,
    typeset: Arc<Histogram>,
}

impl Counts {
    pub(crate) fn new(metrics: Metrics) -> Self {
        Self {
            stamped: metrics.renders(Printed::Stamped),
            typeset: metrics.renders(Printed::Typeset),
            metrics,
        }
    }

    /// The durations of tickets with this template.
    pub(crate) fn renders(&self, template: &Ready) -> &Histogram {
        if template.slow_because().is_some() { &self.typeset } else { &self.stamped }
    }

    /// A ticket will not be made.
    pub(crate) fn failed(&self) {
        self.metrics.tickets_failed(1);
    }
}
