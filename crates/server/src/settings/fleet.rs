//! What a node is: from `WORKER_MODE`, `WORKER_COUNT`, `MIN_WORKERS`, `MAX_WORKERS` and
//! `IS_COORDINATOR` to roles and numbers of workers.
//!
//! [`resolve`] is pure, and the table at the foot of this file is its specification:
//!
//! - `WORKER_COUNT` alone means exactly so many. With `MIN_WORKERS` or `MAX_WORKERS` it is the number
//!   at start, and the load moves it. With none of them it begins with one per core, between 2 (or
//!   1 on one core) and two per core, as seed 000 does.
//! - `auto` may go down to no worker at all, unless `MIN_WORKERS` says otherwise.

use stampede_cluster::Roles;

use super::reader::{Mistake, Reader};
use crate::cli::SettingArgs;

/// Most workers of one node.
const MOST: u64 = 1024;
/// Fewest workers of a node that nobody has set, as in seed 000.
const FEWEST: usize = 2;

/// What the operator asked this node to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Takes orders.
    Api,
    /// Does the work.
    Worker,
    /// Both.
    Both,
    /// Both, and moves its workers with the load of the API and of the queue.
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

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fleet {
    pub(crate) mode: Mode,
    pub(crate) roles: Roles,
    /// Workers at start.
    pub(crate) count: usize,
    pub(crate) min: usize,
    pub(crate) max: usize,
}

/// What was asked for; `None` where nobody said.
#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    count: Option<usize>,
    min: Option<usize>,
    max: Option<usize>,
    coordinator: Option<bool>,
}

/// Reads the variables and puts them together.
pub(super) fn read_fleet(reader: &mut Reader<'_>, args: &SettingArgs, cores: usize) -> Fleet {
    let mode = reader.read("WORKER_MODE", args.worker_mode.as_deref(), Mode::Both, |value| {
        let known = Mode::ALL.into_iter().find(|mode| mode.as_str() == value);
        known.ok_or_else(|| "must be api, worker, both or auto".to_owned())
    });
    let mut number = |name: &'static str, given: &Option<String>| {
        reader.read(name, given.as_deref(), None, |value| {
            let number = value.parse().ok().filter(|n: &u64| *n <= MOST);
            number
                .map(|n| Some(n as usize))
                .ok_or_else(|| format!("must be a whole number from 0 to {MOST}"))
        })
    };
    let asked = Asked {
        count: number("WORKER_COUNT", &args.worker_count),
        min: number("MIN_WORKERS", &args.min_workers),
        max: number("MAX_WORKERS", &args.max_workers),
        coordinator: reader.read("IS_COORDINATOR", args.is_coordinator.as_deref(), None, |value| {
            value.parse().map(Some).map_err(|_| "must be true or false".to_owned())
        }),
    };
    resolve(mode, asked, cores).unwrap_or_else(|contradictions| {
        reader.mistakes.extend(contradictions);
        // Not used: there are mistakes.
        Fleet { mode, roles: roles(mode, None), count: 0, min: 0, max: 0 }
    })
}

fn roles(mode: Mode, coordinator: Option<bool>) -> Roles {
    Roles {
        api: mode != Mode::Worker,
        worker: mode != Mode::Api,
        // Elected among those that may; nobody has to be told to.
        coordinator: coordinator.unwrap_or(true),
    }
}

/// Pure: what a node is, or which settings contradict each other.
fn resolve(mode: Mode, asked: Asked, cores: usize) -> Result<Fleet, Vec<Mistake>> {
    let roles = roles(mode, asked.coordinator);
    if !roles.worker {
        return Ok(Fleet { mode, roles, count: 0, min: 0, max: 0 });
    }
    check(mode, asked)?;
    let Asked { count, min, max, .. } = asked;
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
    let Asked { count, min, max, .. } = asked;
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
    use super::*;

    fn asked(count: Option<usize>, min: Option<usize>, max: Option<usize>) -> Asked {
        Asked { count, min, max, coordinator: None }
    }

    #[test]
    fn modes_say_what_a_node_is() {
        for (mode, api, worker) in [
            (Mode::Api, true, false),
            (Mode::Worker, false, true),
            (Mode::Both, true, true),
            (Mode::Auto, true, true),
        ] {
            for (wish, coordinator) in [(None, true), (Some(true), true), (Some(false), false)] {
                assert_eq!(roles(mode, wish), Roles { api, worker, coordinator }, "{mode:?}");
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
            let fleet = resolve(mode, asked(count, min, max), cores).unwrap();
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
            let mistakes = resolve(mode, asked, 4).unwrap_err();
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
            let variable = |name: &str| variables.get(name).map(|value| (*value).to_owned());
            let args = SettingArgs {
                worker_mode: variable("WORKER_MODE"),
                worker_count: variable("WORKER_COUNT"),
                min_workers: variable("MIN_WORKERS"),
                max_workers: variable("MAX_WORKERS"),
                is_coordinator: variable("IS_COORDINATOR"),
                ..SettingArgs::default()
            };
            let mut reader = Reader::new(&variable);
            let fleet = read_fleet(&mut reader, &args, 2);
            super::super::scaling::read_scaling(&mut reader);
            assert!(reader.mistakes.is_empty(), "{name}: {:?}", reader.mistakes);
            assert_eq!(
                (fleet.mode, (fleet.count, fleet.min, fleet.max)),
                (mode, numbers),
                "{name}"
            );
        }
    }
}
