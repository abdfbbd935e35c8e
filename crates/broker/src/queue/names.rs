//! Which names queues, jobs, schedules, limits and breakers may have.

use crate::Error;

/// Longest name of a queue and longest id of a job.
const LONGEST: usize = 200;

/// The end of the name of a dead-letter queue. A name older software relies on (`docs/compatibility.md`).
pub(crate) const DEAD: &str = "-dlq";

/// The keys of a queue beside those of its jobs. `repair.lua` has the same list.
const PARTS: [&str; 17] = [
    "active",
    "completed",
    "delayed",
    "events",
    "failed",
    "id",
    "limiter",
    "marker",
    "meta",
    "paused",
    "pc",
    "prioritized",
    "repeat",
    "stalled",
    "stalled-check",
    "wait",
    "waiting-children",
];

/// Refuses queue names that would collide with other keys or with a Cluster's hash tags.
pub(crate) fn check_queue_name(name: &str) -> Result<(), Error> {
    // The name of its dead-letter queue must be allowed, too.
    check("queue name", name, if name.ends_with(DEAD) { LONGEST } else { LONGEST - DEAD.len() })
}

/// Whether an id is the name of a key that a queue has for itself.
pub(crate) fn is_part_of_queue(id: &str) -> bool {
    PARTS.contains(&id)
}

/// Refuses prefixes that BullMQ or a Cluster could not use: in a Cluster, all keys of all queues must lie
/// in one slot, which the part in braces decides.
pub(crate) fn check_prefix(prefix: &str, is_cluster: bool) -> Result<(), Error> {
    let tagged = prefix
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .is_some_and(|(tag, _)| !tag.is_empty());
    let reason = if prefix.is_empty() || prefix.len() > LONGEST {
        format!("it needs 1 to {LONGEST} bytes")
    } else if prefix.contains(|c: char| {
        c == ':' || c == '*' || c == '?' || c == '[' || !(' '..='~').contains(&c)
    }) {
        "it may have letters, digits and signs, but no colon and none of *?[".to_owned()
    } else if is_cluster && !tagged {
        format!("in a Cluster it needs a hash tag, such as {{{prefix}}}")
    } else {
        return Ok(());
    };
    Err(Error::InvalidName {
        what: "queue prefix",
        name: prefix.chars().take(60).collect(),
        reason,
    })
}

/// Refuses job ids that would collide with other keys of the queue.
pub(crate) fn check_job_id(id: &str) -> Result<(), Error> {
    let what = "job id";
    if is_part_of_queue(id) {
        let reason = "that is the name of a part of every queue".to_owned();
        return Err(Error::InvalidName { what, name: id.to_owned(), reason });
    }
    check(what, id, LONGEST)
}

/// Refuses schedule ids that would collide with other keys.
pub(crate) fn check_schedule_id(id: &str) -> Result<(), Error> {
    check("schedule id", id, LONGEST)
}

/// Refuses ids that belong to the queue: a script that removes jobs would remove such a key.
pub(crate) fn check_job_to_touch(id: &str) -> Result<(), Error> {
    if is_part_of_queue(id) { check_job_id(id) } else { Ok(()) }
}

/// Refuses deduplication ids that would collide with other keys.
pub(crate) fn check_deduplication_id(id: &str) -> Result<(), Error> {
    check("deduplication id", id, LONGEST)
}

/// Refuses names of job types that are unreadable; they go into every event.
pub(crate) fn check_job_name(name: &str) -> Result<(), Error> {
    check("job name", &name.replace([':', '{', '}', ' '], "."), LONGEST)
}

/// Refuses names of limits and circuit breakers that a Cluster's hash tags could not hold; they may have
/// parts: `account:17`.
pub(crate) fn check_shared_name(what: &'static str, name: &str) -> Result<(), Error> {
    check(what, &name.replace(':', "."), LONGEST)
}

/// Whether names of this kind may have parts.
fn is_shared(what: &str) -> bool {
    matches!(what, "limit" | "circuit breaker" | "suspect")
}

fn check(what: &'static str, name: &str, longest: usize) -> Result<(), Error> {
    let bad = |c: char| c.is_control() || c.is_whitespace() || matches!(c, ':' | '{' | '}');
    let reason = if name.is_empty() {
        "it is empty".to_owned()
    } else if name.len() > longest {
        format!("it has {} bytes, and {longest} is the most", name.len())
    } else if let Some(c) = name.chars().find(|c| bad(*c)) {
        let colons = if is_shared(what) { "" } else { "colons, " };
        format!("it contains {c:?}; {colons}braces, white space and control characters are refused")
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(60).collect();
    Err(Error::InvalidName { what, name: shown, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_run_into_other_keys_are_refused() {
        for name in ["tickets", "emails-dlq", "a.b_c", "заказы", "0190-ab"] {
            assert!(check_queue_name(name).is_ok(), "{name}");
        }
        let long = "x".repeat(10_000);
        for name in ["", "a:b", "{a}", "a b", "a\nb", "a\0", &long] {
            let error = check_job_id(name).unwrap_err().to_string();
            assert!(error.contains("job id") && error.len() < 300, "{error}");
            let error = check_queue_name(name).unwrap_err().to_string();
            assert!(error.contains("queue name") && error.len() < 300, "{error}");
            let shared = check_shared_name("limit", name);
            assert_eq!(shared.is_ok(), name == "a:b", "{name}");
        }
        for part in PARTS {
            let error = check_job_id(part).unwrap_err().to_string();
            assert!(error.contains("a part of every queue"), "{error}");
        }
        assert!(check_queue_name(&"x".repeat(196)).is_ok());
        assert!(check_queue_name(&"x".repeat(197)).is_err(), "where would its dead letters go?");
        assert!(check_queue_name(&format!("{}-dlq", "x".repeat(196))).is_ok());
        assert!(check_job_name("send {welcome}: mail").is_ok() && check_job_name("a\nb").is_err());
    }

    #[test]
    fn the_repair_script_has_the_same_list_of_keys() {
        let script = stampede_scripts::queue::REPAIR_ONE;
        let list = script.split_once("local PARTS = {").unwrap().1.split_once('}').unwrap().0;
        let named: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(named, PARTS);
    }
}
