//! Rewriting of BullMQ's Lua scripts: pure functions from text to text. `build.rs` runs them; a text that is
//! expected in a script and is not there is an error, which fails the build.
//!
//! Two things are done to BullMQ's scripts:
//!
//! - [`repair_delayed`]: a script that promotes delayed jobs repairs them first. A script that aborts is not
//!   rolled back: `promoteDelayedJobs` takes up to a thousand jobs out of their set before it reads the first, and
//!   one malformed job would take all of them along.
//! - [`as_function`]: the script becomes a function that is called for each of many jobs. Most of the time that
//!   Redis spends on a job goes to the script itself, not to the data: `moveToFinished` defines 36 functions and
//!   reads the settings of the queue in every call. Here the functions are defined once, and some of them are
//!   wrapped so that their result is computed once for all jobs of the call (`lua/queue/many.lua`).

/// The head of the function that takes due jobs out of `delayed`, as all of BullMQ's scripts have it.
const PROMOTE: &str = "local function promoteDelayedJobs(delayedKey, markerKey, targetKey, prioritizedKey,\n                                  \
                       eventStreamKey, prefix, timestamp, priorityCounterKey, isPaused)";

/// How that function chooses jobs: `repair.lua` has to choose the same ones.
const CHOICE: &str = "(timestamp + 1) * 0x1000 - 1, \"LIMIT\", 0, 1000)";

/// The line that every script has, and that must stand before everything else.
const RCALL: &str = "local rcall = redis.call";

/// A script of BullMQ that repairs malformed delayed jobs before it promotes them. `repair` defines the function
/// `repairingDelayed`.
pub(crate) fn repair_delayed(script: &str, repair: &str) -> Result<String, String> {
    let (before, rest) =
        script.split_once(PROMOTE).ok_or_else(|| format!("it lacks the line {PROMOTE:?}"))?;
    let (function, after) =
        rest.split_once("\nend\n").ok_or("promoteDelayedJobs has no end in a line of its own")?;
    if function.contains("local function ") {
        return Err("promoteDelayedJobs contains another function, so its end was not found".into());
    }
    if !function.contains(CHOICE) {
        return Err(format!("promoteDelayedJobs does not choose jobs by {CHOICE:?}"));
    }
    if !after.contains("promoteDelayedJobs(") {
        return Err("promoteDelayedJobs is not called after its definition".into());
    }
    Ok(format!(
        "{repair}\n{before}{PROMOTE}{function}\nend\n\
         promoteDelayedJobs = repairingDelayed(promoteDelayedJobs)\n{after}"
    ))
}

/// A script that defines BullMQ's script as the function `one(KEYS, ARGV)`, and ends with `calls`, which calls it.
///
/// `functions` are texts that define what `wrapped` and `calls` name. Each pair of `wrapped` is a function of the
/// script and the wrapper it is replaced by. `needed` are functions of the script that `calls` uses.
pub(crate) fn as_function(
    script: &str,
    wrapped: &[(&str, &str)],
    needed: &[&str],
    functions: &[&str],
    calls: &str,
) -> Result<String, String> {
    let Split { definitions, body } = split(script)?;
    for name in wrapped.iter().map(|(name, _)| name).chain(needed) {
        match definitions.iter().filter(|definition| definition.name == *name).count() {
            1 => {}
            count => return Err(format!("it defines the function {name} {count} times, not once")),
        }
    }
    let mut text = format!("{RCALL}\n");
    text.extend(functions.iter().copied());
    for Definition { name, lines } in &definitions {
        text.push_str(lines);
        if let Some((_, wrapper)) = wrapped.iter().find(|(function, _)| function == name) {
            text.push_str(&format!("{name} = {wrapper}({name})\n"));
        }
    }
    text.push_str(&format!("local function one(KEYS, ARGV)\n{body}end\n{calls}"));
    Ok(text)
}

/// A script taken apart.
struct Split<'a> {
    definitions: Vec<Definition<'a>>,
    /// The statements outside of its functions.
    body: String,
}

/// A function that a script defines outside of any other.
struct Definition<'a> {
    name: &'a str,
    lines: String,
}

fn split(script: &str) -> Result<Split<'_>, String> {
    let (mut definitions, mut body) = (Vec::new(), String::new());
    let mut has_rcall = false;
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("--[[") {
            // A comment, which may contain what looks like code.
            let closes = |line: &str| line.contains("]]");
            if !closes(line) && !lines.by_ref().any(closes) {
                return Err("a comment has no end".into());
            }
        } else if let Some(name) = function_name(line) {
            let mut definition = Definition { name, lines: format!("{line}\n") };
            loop {
                let line = lines.next().ok_or_else(|| {
                    format!("the function {name} has no end in a line of its own")
                })?;
                definition.lines.extend([line, "\n"]);
                if line == "end" {
                    break;
                }
            }
            definitions.push(definition);
        } else if line.trim_end_matches(';') == RCALL {
            has_rcall = true;
        } else {
            body.extend([line, "\n"]);
        }
    }
    if !has_rcall {
        return Err(format!("it lacks the line {RCALL:?}"));
    }
    Ok(Split { definitions, body })
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

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "--[[\n  local function notThis()\n]]\nlocal rcall = redis.call\n\
                          local key = KEYS[1]\nlocal function ask(key)\n  return rcall(\"GET\", key)\nend\n\
                          local twice = function (key)\n  return ask(key) .. ask(key)\nend\n\
                          if key then\n  return twice(key)\nend\nreturn 0\n";

    fn promoting() -> String {
        format!(
            "local rcall = redis.call\n{PROMOTE}\n  local jobs = rcall(\"ZRANGEBYSCORE\", delayedKey, 0, {CHOICE}\nend\n\
             promoteDelayedJobs(KEYS[1])\n"
        )
    }

    #[test]
    fn a_script_becomes_a_function_and_its_own_functions_are_defined_once() {
        let many = as_function(SCRIPT, &[("ask", "once")], &["twice"], &["ONCE\n"], "CALLS\n");
        let expected = "local rcall = redis.call\nONCE\n\
                        local function ask(key)\n  return rcall(\"GET\", key)\nend\nask = once(ask)\n\
                        local twice = function (key)\n  return ask(key) .. ask(key)\nend\n\
                        local function one(KEYS, ARGV)\nlocal key = KEYS[1]\n\
                        if key then\n  return twice(key)\nend\nreturn 0\nend\nCALLS\n";
        assert_eq!(many.unwrap(), expected);
    }

    #[test]
    fn a_function_that_is_wrapped_or_needed_and_missing_is_an_error() {
        let error = as_function(SCRIPT, &[("asked", "once")], &[], &[], "").unwrap_err();
        assert!(error.contains("function asked 0 times"), "{error}");
        let error = as_function(SCRIPT, &[], &["thrice"], &[], "").unwrap_err();
        assert!(error.contains("function thrice 0 times"), "{error}");
        let twice = SCRIPT.replace("local twice = function", "local ask = function");
        let error = as_function(&twice, &[("ask", "once")], &[], &[], "").unwrap_err();
        assert!(error.contains("function ask 2 times"), "{error}");
    }

    #[test]
    fn a_script_that_cannot_be_taken_apart_is_an_error() {
        for (script, told) in [
            (SCRIPT.replace("]]\n", "\n"), "a comment has no end"),
            (SCRIPT.replace("local rcall = redis.call\n", ""), "lacks the line"),
            (format!("{SCRIPT}local function open()\n  return 1\n"), "function open has no end"),
        ] {
            let error = as_function(&script, &[], &[], &[], "").unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_promoting_script_repairs_delayed_jobs_first() {
        let repaired = repair_delayed(&promoting(), "REPAIR").unwrap();
        assert!(repaired.starts_with("REPAIR\nlocal rcall"), "{repaired}");
        let wrapped = "\nend\npromoteDelayedJobs = repairingDelayed(promoteDelayedJobs)\npromoteDelayedJobs(KEYS";
        assert!(repaired.contains(wrapped), "{repaired}");
    }

    #[test]
    fn a_promoting_script_of_another_form_is_an_error() {
        for (old, new, told) in [
            ("promoteDelayedJobs(delayedKey", "promoteJobs(delayedKey", "lacks the line"),
            ("\nend\n", "\n", "no end"),
            ("  local jobs", "  local function inner() end\n  local jobs", "another function"),
            ("0, 1000)", "0, 500)", "does not choose"),
            ("promoteDelayedJobs(KEYS[1])", "", "is not called"),
        ] {
            let error = repair_delayed(&promoting().replace(old, new), "").unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }
}
