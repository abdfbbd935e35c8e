//! One call for many jobs.
//!
//! Most of the time that Redis spends on a job goes to the script itself, not to the data: a call of
//! `moveToFinished` defines 36 functions and asks for the queue's settings, the delayed jobs and the
//! old ones, and does so again for the next job. Here BullMQ's own text becomes a function that is
//! called for each job; what it defines is defined once, and what would come out the same for every
//! job of the call is done once (`many.lua`). The outcome is that of as many single calls
//! (`like_single.rs`), but that no call promotes or clears up more than the thousand jobs that BullMQ does
//! at a time.
//!
//! A job that cannot be handled gets an error of its own; the others are not touched by it.

use redis::Value;

use super::mend::FUNCTIONS;
use super::{
    ADD_DELAYED_JOB_TEXT, ADD_PRIORITIZED_JOB_TEXT, ADD_STANDARD_JOB_TEXT, MOVE_TO_FINISHED_TEXT,
    Script,
};
use crate::Error;

/// Functions of `moveToFinished` that many jobs need once, and what they become in `many.lua`.
const WHEN_FINISHING: [(&str, &str); 7] = [
    ("getOrSetMaxEvents", "once"),
    ("trimEvents", "once"),
    ("promoteDelayedJobs", "mendedOnce"),
    ("addBaseMarkerIfNeeded", "marked"),
    ("getQueueMetadata", "unlessCounted"),
    ("removeJobsByMaxAge", "afterAll"),
    ("removeJobsByMaxCount", "afterAll"),
];

/// The same for the scripts that add jobs: adding changes neither settings nor the number of active
/// jobs.
const WHEN_ADDING: [(&str, &str); 3] = [
    ("getOrSetMaxEvents", "once"),
    ("isQueuePausedOrMaxed", "once"),
    ("addBaseMarkerIfNeeded", "marked"),
];

/// A job that is due sooner than all others says so at once.
const WHEN_DELAYING: [(&str, &str); 1] = [("getOrSetMaxEvents", "once")];

pub(super) static FINISH_MANY: Script = Script::new(|| {
    let calls = include_str!("finish_many.lua");
    redis::Script::new(&for_many(MOVE_TO_FINISHED_TEXT, &WHEN_FINISHING, calls))
});

pub(super) static ADD_MANY_STANDARD: Script = Script::new(|| {
    let calls = include_str!("add_many.lua");
    redis::Script::new(&for_many(ADD_STANDARD_JOB_TEXT, &WHEN_ADDING, calls))
});

pub(super) static ADD_MANY_PRIORITIZED: Script = Script::new(|| {
    let calls = include_str!("add_many.lua");
    redis::Script::new(&for_many(ADD_PRIORITIZED_JOB_TEXT, &WHEN_ADDING, calls))
});

pub(super) static ADD_MANY_DELAYED: Script = Script::new(|| {
    let calls = include_str!("add_many.lua");
    redis::Script::new(&for_many(ADD_DELAYED_JOB_TEXT, &WHEN_DELAYING, calls))
});

/// Makes a script for many jobs of one for a single job: its functions, some of them wrapped, then the
/// rest of it as a function `one`, then `calls`, which calls that through `answerOf`.
pub(super) fn for_many(script: &str, wrapped: &[(&str, &str)], calls: &str) -> String {
    let (mut functions, mut body) = (String::new(), String::new());
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("--[[") {
            // A comment, which could look like anything.
            if !line.contains("]]") {
                lines.by_ref().find(|line| line.contains("]]"));
            }
        } else if let Some(name) = function_name(line) {
            let rest = lines.by_ref().take_while(|line| *line != "end");
            for line in std::iter::once(line).chain(rest).chain(["end"]) {
                functions.extend([line, "\n"]);
            }
            if let Some((_, wrapper)) = wrapped.iter().find(|(function, _)| *function == name) {
                functions.push_str(&format!("{name} = {wrapper}({name})\n"));
            }
        } else if line != "local rcall = redis.call" {
            body.extend([line, "\n"]);
        }
    }
    let wrappers = include_str!("many.lua");
    format!(
        "local rcall = redis.call\n{FUNCTIONS}{wrappers}{functions}\
         local function one(KEYS, ARGV)\n{body}end\n{calls}"
    )
}

/// The name of a function whose definition begins in this line, outside of any other.
fn function_name(line: &str) -> Option<&str> {
    let definition = line.strip_prefix("local ")?;
    if let Some(function) = definition.strip_prefix("function ") {
        return function.split('(').next();
    }
    let (name, value) = definition.split_once(" = ")?;
    value.starts_with("function").then_some(name)
}

/// The answer for each job: what the script would have answered for it alone.
pub(super) fn answers(
    script: &'static str,
    answer: Value,
    jobs: usize,
) -> Result<Vec<Result<Value, Error>>, Error> {
    match answer {
        Value::Array(answers) if answers.len() == jobs => {
            Ok(answers.into_iter().map(answer_or_error).collect())
        }
        answer => Err(Error::Protocol { script, answer: format!("{answer:?}") }),
    }
}

fn answer_or_error(answer: Value) -> Result<Value, Error> {
    let Value::Array(parts) = &answer else { return Ok(answer) };
    let [Value::BulkString(message)] = parts.as_slice() else { return Ok(answer) };
    let message = String::from_utf8_lossy(message).into_owned();
    // Older servers put the script's line before it.
    let code = message
        .split([' ', '-'])
        .find(|word| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase()))
        .unwrap_or("ERR");
    let detail = message.split_once(code).map_or(&*message, |(_, detail)| detail.trim_start());
    Err(redis::make_extension_error(code.to_owned(), Some(detail.to_owned())).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_becomes_a_function_and_defines_its_own_only_once() {
        let script = "--[[\n  local function notThis()\n]]\nlocal rcall = redis.call\n\
                      local key = KEYS[1]\nlocal function ask(key)\n  return rcall(\"GET\", key)\nend\n\
                      local twice = function (key)\n  return ask(key) .. ask(key)\nend\n\
                      if key then\n  return twice(key)\nend\nreturn 0\n";
        let many = for_many(script, &[("ask", "once")], "CALLS\n");
        let expected = "local function ask(key)\n  return rcall(\"GET\", key)\nend\nask = once(ask)\n\
                        local twice = function (key)\n  return ask(key) .. ask(key)\nend\n\
                        local function one(KEYS, ARGV)\nlocal key = KEYS[1]\n\
                        if key then\n  return twice(key)\nend\nreturn 0\nend\n";
        assert!(many.contains(expected), "{many}");
        assert!(many.ends_with("CALLS\n") && !many.contains("notThis"));
    }

    #[test]
    fn the_pinned_scripts_have_all_that_is_wrapped() {
        let adding = WHEN_ADDING.as_slice();
        for (script, wrapped) in [
            (MOVE_TO_FINISHED_TEXT, WHEN_FINISHING.as_slice()),
            (ADD_STANDARD_JOB_TEXT, adding),
            (ADD_PRIORITIZED_JOB_TEXT, adding),
            (ADD_DELAYED_JOB_TEXT, WHEN_DELAYING.as_slice()),
        ] {
            let many = for_many(script, wrapped, "");
            for (name, wrapper) in wrapped {
                assert!(many.contains(&format!("{name} = {wrapper}({name})\n")), "{name}");
            }
            // Otherwise each job would define it anew.
            let body = many.split_once("local function one(KEYS, ARGV)").unwrap().1;
            assert!(!body.contains("\nlocal function "), "{body}");
        }
    }

    #[test]
    fn an_error_is_the_error_of_its_job_alone() {
        let error = |message: &str| Value::Array(vec![Value::BulkString(message.into())]);
        let all = Value::Array(vec![
            Value::Int(0),
            error("OOM command not allowed when used memory > 'maxmemory'. script: 12ab"),
            error("@user_script: 12: -OOM command not allowed"),
            error("WRONGTYPE Operation against a key"),
        ]);
        let answers = answers("moveToFinished", all, 4).unwrap();
        assert!(matches!(answers[0], Ok(Value::Int(0))));
        let outages: Vec<bool> =
            answers[1..].iter().map(|answer| answer.as_ref().unwrap_err().is_outage()).collect();
        assert_eq!(outages, [true, true, false]);
    }

    #[test]
    fn an_answer_for_fewer_jobs_is_not_one() {
        assert!(answers("moveToFinished", Value::Array(vec![Value::Int(0)]), 2).is_err());
    }
}
