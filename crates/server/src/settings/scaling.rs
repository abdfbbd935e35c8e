//! When to scale, and what a worker may use: the thresholds of seed 000, all of them settings.

use std::time::Duration;

use stampede_cluster::{ApiLimits, Limits};

use super::reader::Reader;

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

pub(super) fn read_scaling(reader: &mut Reader<'_>) -> Scaling {
    let limits = Limits::default();
    let api = ApiLimits::default();
    let limits = Limits {
        pressure: fraction(reader, "SCALE_UP_PRESSURE", limits.pressure, 1e6),
        waiting: whole(reader, "SCALE_UP_WAITING", limits.waiting, 0, 1_000_000_000),
        load: fraction(reader, "SCALE_UP_LOAD", limits.load, 1e6),
        busy: fraction(reader, "SCALE_DOWN_BUSY", limits.busy, 1.0),
        up_cooldown: seconds(reader, "SCALE_UP_COOLDOWN", limits.up_cooldown),
        down_cooldown: seconds(reader, "SCALE_DOWN_COOLDOWN", limits.down_cooldown),
    };
    let latency_ms = api.latency.as_millis() as u64;
    let api = ApiLimits {
        latency: Duration::from_millis(whole(
            reader,
            "API_LATENCY_LIMIT_MS",
            latency_ms,
            1,
            600_000,
        )),
        ..api
    };
    let memory_mb = whole(reader, "WORKER_MEMORY_LIMIT_MB", 1024, 0, 1 << 30);
    Scaling {
        limits,
        api,
        interval: Duration::from_millis(whole(reader, "SCALE_INTERVAL_MS", 2_000, 100, 3_600_000)),
        stuck_after: seconds(reader, "STUCK_QUEUE_AFTER", Duration::from_secs(60)),
        worker_memory: (memory_mb > 0).then_some(memory_mb << 20),
    }
}

fn whole(reader: &mut Reader<'_>, name: &'static str, default: u64, min: u64, max: u64) -> u64 {
    let given = reader.variable(name);
    reader.number(name, given.as_deref(), default, min..=max)
}

fn seconds(reader: &mut Reader<'_>, name: &'static str, default: Duration) -> Duration {
    Duration::from_secs(whole(reader, name, default.as_secs(), 0, 86_400))
}

fn fraction(reader: &mut Reader<'_>, name: &'static str, default: f64, max: f64) -> f64 {
    let given = reader.variable(name);
    reader.read(name, given.as_deref(), default, |value| {
        let number = value.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0 && *n <= max);
        number.ok_or_else(|| format!("must be a number from 0 to {max}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_seed_000_and_each_can_be_set() {
        let scaling = read_scaling(&mut Reader::new(&|_| None));
        assert_eq!(scaling.limits, Limits::default());
        let environment = |name: &str| match name {
            "SCALE_UP_PRESSURE" => Some("2.5".to_owned()),
            "SCALE_UP_COOLDOWN" => Some("1".to_owned()),
            "WORKER_MEMORY_LIMIT_MB" => Some("0".to_owned()),
            _ => None,
        };
        let scaling = read_scaling(&mut Reader::new(&environment));
        assert_eq!(scaling.limits.pressure, 2.5);
        assert_eq!(scaling.limits.up_cooldown, Duration::from_secs(1));
        assert_eq!(scaling.worker_memory, None);
    }

    #[test]
    fn thresholds_that_are_no_numbers_are_refused_by_name() {
        let environment = |name: &str| (name == "SCALE_DOWN_BUSY").then(|| "NaN".to_owned());
        let mut reader = Reader::new(&environment);
        read_scaling(&mut reader);
        assert!(reader.mistakes[0].to_string().contains("SCALE_DOWN_BUSY=NaN"));
    }
}
