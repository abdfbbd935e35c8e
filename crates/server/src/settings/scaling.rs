//! The thresholds of autoscaling and the memory limit of workers.

use std::time::Duration;

use stampede_cluster::{ApiLimits, Limits};

use super::table::Values;

/// How a node and its coordinator scale.
#[derive(Debug, Clone)]
pub(crate) struct Scaling {
    pub(crate) limits: Limits,
    pub(crate) api: ApiLimits,
    pub(crate) interval: Duration,
    pub(crate) stuck_after: Duration,
    /// Most memory of one worker in bytes.
    pub(crate) worker_memory: Option<u64>,
}

impl Scaling {
    pub(super) fn of(values: &Values) -> Self {
        let memory_mb = values.worker_memory_limit_mb;
        Self {
            limits: Limits {
                pressure: values.scale_up_pressure,
                waiting: values.scale_up_waiting,
                load: values.scale_up_load,
                busy: values.scale_down_busy,
                up_cooldown: values.scale_up_cooldown,
                down_cooldown: values.scale_down_cooldown,
            },
            api: ApiLimits { latency: values.api_latency_limit, ..ApiLimits::default() },
            interval: values.scale_interval,
            stuck_after: values.stuck_queue_after,
            worker_memory: (memory_mb > 0).then_some(memory_mb << 20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::given::{Environment, Given};
    use super::super::{Mistake, Settings};
    use super::*;

    fn scaling(environment: Environment<'_>) -> Result<Scaling, Vec<Mistake>> {
        Settings::resolve(&Given::default(), environment).map(|settings| settings.scaling)
    }

    #[test]
    fn the_defaults_are_those_of_the_autoscaler_and_each_can_be_set() {
        let defaults = scaling(&|_| None).unwrap();
        assert_eq!(defaults.limits, Limits::default());
        assert_eq!(defaults.api.latency, ApiLimits::default().latency);
        let environment = |name: &str| match name {
            "SCALE_UP_PRESSURE" => Some("2.5".to_owned()),
            "SCALE_UP_COOLDOWN" => Some("1".to_owned()),
            "WORKER_MEMORY_LIMIT_MB" => Some("0".to_owned()),
            _ => None,
        };
        let scaling = scaling(&environment).unwrap();
        assert_eq!(scaling.limits.pressure, 2.5);
        assert_eq!(scaling.limits.up_cooldown, Duration::from_secs(1));
        assert_eq!(scaling.worker_memory, None);
    }

    #[test]
    fn thresholds_that_are_no_numbers_are_refused_by_name() {
        let environment = |name: &str| (name == "SCALE_DOWN_BUSY").then(|| "NaN".to_owned());
        let mistakes = scaling(&environment).unwrap_err();
        assert!(mistakes[0].to_string().contains("SCALE_DOWN_BUSY=NaN"));
    }
}
