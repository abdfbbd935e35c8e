//! The roles and the numbers of workers of a node, from `WORKER_MODE`, `WORKER_COUNT`, `MIN_WORKERS`,
//! `MAX_WORKERS` and `IS_COORDINATOR`.
//!
//! [`resolve`] is pure. Its rules, which the tests at the foot of this file list case by case:
//!
//! - `WORKER_COUNT` alone is the exact number of workers. With `MIN_WORKERS` or `MAX_WORKERS` it is the
//!   number at start, and autoscaling changes it.
//! - Without `WORKER_COUNT` a node starts with one worker per core. The minimum is 2 (1 on one core), the
//!   maximum two per core.
//! - With `WORKER_MODE=auto` the minimum is 0, unless `MIN_WORKERS` is set.

use stampede_cluster::Roles;

use super::parse::whole;
use super::reader::{Mistake, Reader};
use super::table::Values;

/// Most workers of one node.
const MOST: u64 = 1024;
/// The minimum of workers unless `MIN_WORKERS` is set.
const FEWEST: usize = 2;

/// What the operator asked this node to be: `WORKER_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Serves the API.
    Api,
    /// Runs workers.
    Worker,
    /// Serves the API and runs workers.
    Both,
    /// Serves the API and runs workers; stops workers while the API is slow.
    Auto,
}

impl Mode {
    const ALL: [Self; 4] = [Self::Api, Self::Worker, Self::Both, Self::Auto];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Worker => "worker",
            Self::Both => "both",
            Self::Auto => "auto",
        }
    }
}

/// The mode, the roles and the numbers of workers of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) mode: Mode,
    pub(crate) roles: Roles,
    /// Workers at start.
    pub(crate) count: usize,
    pub(crate) min: usize,
    pub(crate) max: usize,
}

/// The numbers of workers that the operator has set.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    count: Option<usize>,
    min: Option<usize>,
    max: Option<usize>,
}

/// Reads `WORKER_MODE`.
pub(super) fn parse_mode(text: &str) -> Result<Mode, String> {
    let known = Mode::ALL.into_iter().find(|mode| mode.as_str() == text);
    known.ok_or_else(|| "must be api, worker, both or auto".to_owned())
}

/// Reads a number of workers.
pub(super) fn parse_workers(text: &str) -> Result<usize, String> {
    whole(text, 0..=MOST)
}

/// The fleet of the settings; contradictions between them are mistakes.
pub(super) fn read_fleet(reader: &mut Reader<'_>, values: &Values, cores: usize) -> Fleet {
    let roles = roles(values.worker_mode, values.is_coordinator);
    let asked =
        Asked { count: values.worker_count, min: values.min_workers, max: values.max_workers };
    resolve(values.worker_mode, roles, asked, cores).unwrap_or_else(|contradictions| {
        reader.mistakes.extend(contradictions);
        // Not used: there are mistakes.
        Fleet { mode: values.worker_mode, roles, count: 0, min: 0, max: 0 }
    })
}

fn roles(mode: Mode, coordinator: bool) -> Roles {
    Roles { api: mode != Mode::Worker, worker: mode != Mode::Api, coordinator }
}

/// Pure: the fleet, or the settings that contradict each other.
fn resolve(mode: Mode, roles: Roles, asked: Asked, cores: usize) -> Result<Fleet, Vec<Mistake>> {
    if !roles.worker {
        return Ok(Fleet { mode, roles, count: 0, min: 0, max: 0 });
    }
    check(mode, asked)?;
    let Asked { count, min, max } = asked;
    let fewest = if mode == Mode::Auto { 0 } else { FEWEST };
    let (min, max) = match (count, min, max) {
        (Some(count), None, None) if mode == Mode::Auto => (0, count.max(1)),
        (Some(count), None, None) => (count, count),
        (count, min, max) => {
            let upper = max.unwrap_or(2 * cores).max(count.unwrap_or(0)).max(min.unwrap_or(0));
            let lower = min.unwrap_or_else(|| fewest.min(count.unwrap_or(cores))).min(upper);
            (lower, upper)
        }
    };
    let count = count.unwrap_or(cores).clamp(min, max);
    Ok(Fleet { mode, roles, count, min, max })
}

/// Finds settings that contradict each other.
fn check(mode: Mode, asked: Asked) -> Result<(), Vec<Mistake>> {
    let mut wrong = Vec::new();
    let mut mistake = |name, value: usize, right: String| {
        wrong.push(Mistake { name, value: value.to_string(), right });
    };
    let Asked { count, min, max } = asked;
    if mode != Mode::Auto {
        let word = mode.as_str();
        for (name, value) in [("WORKER_COUNT", count), ("MIN_WORKERS", min)] {
            if value == Some(0) {
                let right = format!(
                    "a node with WORKER_MODE={word} has at least one worker; for none at all, set WORKER_MODE=api"
                );
                mistake(name, 0, right);
            }
        }
    }
    if max == Some(0) {
        let right = "must be at least 1; for no workers at all, set WORKER_MODE=api".to_owned();
        mistake("MAX_WORKERS", 0, right);
    }
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let right = format!("is above MAX_WORKERS={max}; lower one or raise the other");
        mistake("MIN_WORKERS", min, right);
    } else if let (Some(count), Some(min)) = (count, min)
        && count < min
    {
        let right = format!("is below MIN_WORKERS={min}; raise it or lower the other");
        mistake("WORKER_COUNT", count, right);
    } else if let (Some(count), Some(max)) = (count, max)
        && count > max
    {
        let right = format!("is above MAX_WORKERS={max}; lower it or raise the other");
        mistake("WORKER_COUNT", count, right);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::super::given::Given;
    use super::*;

    fn resolved(mode: Mode, asked: Asked, cores: usize) -> Result<Fleet, Vec<Mistake>> {
        resolve(mode, roles(mode, true), asked, cores)
    }

    fn asked(count: Option<usize>, min: Option<usize>, max: Option<usize>) -> Asked {
        Asked { count, min, max }
    }

    #[test]
    fn modes_say_what_a_node_is() {
        for (mode, api, worker) in [
            (Mode::Api, true, false),
            (Mode::Worker, false, true),
            (Mode::Both, true, true),
            (Mode::Auto, true, true),
        ] {
            for coordinator in [true, false] {
                let wanted = Roles { api, worker, coordinator };
                assert_eq!(roles(mode, coordinator), wanted, "{mode:?}");
            }
        }
    }

    #[test]
    fn numbers_of_workers_follow_from_what_was_asked_for() {
        use Mode::{Api, Auto, Both, Worker};
        let table = [
            // mode, cores, count, min, max → count, min, max
            ((Both, 4, None, None, None), (4, 2, 8)),
            ((Both, 1, None, None, None), (1, 1, 2)),
            ((Worker, 4, Some(8), None, None), (8, 8, 8)),
            ((Worker, 2, Some(8), Some(4), Some(16)), (8, 4, 16)),
            ((Both, 2, Some(2), Some(1), Some(4)), (2, 1, 4)),
            ((Both, 2, None, Some(1), Some(8)), (2, 1, 8)),
            ((Both, 2, None, Some(6), None), (6, 6, 6)),
            ((Both, 8, None, None, Some(4)), (4, 2, 4)),
            ((Both, 8, None, None, Some(1)), (1, 1, 1)),
            ((Both, 2, Some(9), Some(1), None), (9, 1, 9)),
            ((Both, 2, Some(1), None, Some(4)), (1, 1, 4)),
            ((Auto, 4, None, None, None), (4, 0, 8)),
            ((Auto, 4, Some(3), None, None), (3, 0, 3)),
            ((Auto, 4, Some(0), None, Some(2)), (0, 0, 2)),
            ((Auto, 4, None, Some(1), Some(2)), (2, 1, 2)),
            ((Api, 4, Some(3), Some(9), Some(1)), (0, 0, 0)),
        ];
        for ((mode, cores, count, min, max), wanted) in table {
            let fleet = resolved(mode, asked(count, min, max), cores).unwrap();
            let found = (fleet.count, fleet.min, fleet.max);
            assert_eq!(found, wanted, "{mode:?} {cores} {count:?} {min:?} {max:?}");
            assert!(fleet.min <= fleet.count && fleet.count <= fleet.max);
        }
    }

    #[test]
    fn contradictions_are_refused_and_name_both_variables() {
        let table = [
            (Mode::Both, asked(None, Some(5), Some(2)), ["MIN_WORKERS=5", "MAX_WORKERS=2"]),
            (Mode::Worker, asked(Some(0), None, None), ["WORKER_COUNT=0", "WORKER_MODE=worker"]),
            (Mode::Both, asked(None, Some(0), None), ["MIN_WORKERS=0", "WORKER_MODE=both"]),
            (Mode::Both, asked(Some(1), Some(2), Some(4)), ["WORKER_COUNT=1", "MIN_WORKERS=2"]),
            (Mode::Auto, asked(Some(5), None, Some(4)), ["WORKER_COUNT=5", "MAX_WORKERS=4"]),
            (Mode::Auto, asked(None, None, Some(0)), ["MAX_WORKERS=0", "WORKER_MODE=api"]),
        ];
        for (mode, asked, parts) in table {
            let mistakes = resolved(mode, asked, 4).unwrap_err();
            let text = mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n");
            assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text}");
        }
    }

    #[test]
    fn the_profiles_that_ship_are_understood() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/profiles");
        let expected = [
            ("development", Mode::Both, (2, 1, 4)),
            ("api-main", Mode::Api, (0, 0, 0)),
            ("worker-n", Mode::Worker, (8, 4, 16)),
            ("hybrid", Mode::Auto, (4, 0, 8)),
        ];
        for (name, mode, numbers) in expected {
            let text = std::fs::read_to_string(format!("{folder}/{name}.env")).unwrap();
            let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
            let variables: std::collections::BTreeMap<&str, &str> =
                lines.map(|line| line.split_once('=').unwrap()).collect();
            let filled_in = |value: &&&str| !value.contains("FILL_IN");
            let variable =
                |name: &str| variables.get(name).filter(filled_in).map(|value| (*value).to_owned());
            let texts = Given::default().texts(&variable);
            let mut reader = Reader::new(&texts);
            let values = Values::read(&mut reader).unwrap();
            let fleet = read_fleet(&mut reader, &values, 2);
            assert!(reader.mistakes.is_empty(), "{name}: {:?}", reader.mistakes);
            assert_eq!(
                (fleet.mode, (fleet.count, fleet.min, fleet.max)),
                (mode, numbers),
                "{name}"
            );
        }
    }
}
