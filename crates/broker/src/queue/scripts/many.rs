//! Answers of a call for many jobs.
//!
//! One call for many jobs leaves what as many single calls leave (`like_single.rs`), except that no call promotes
//! or removes more than the thousand jobs that BullMQ does at a time. A job that cannot be handled has an error of
//! its own; the others are not affected.

use redis::Value;

use crate::Error;

/// The answer for each job, as the script would have answered for it alone.
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
    // Older servers put the name and line of the script before the code.
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
