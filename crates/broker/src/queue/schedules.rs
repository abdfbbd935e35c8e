//! Schedules: jobs that come again and again, by cron with a time zone or at an interval.
//!
//! A schedule always has its next job on the queue, delayed until its time. The job after that is
//! added when this one *begins*, so that a run that takes long, fails or is lost with its worker does
//! not end the schedule.

use std::time::Duration;

use bullmq::error::error_code::{
    SCHEDULER_JOB_ID_COLLISION as COLLISION, SCHEDULER_JOB_SLOTS_BUSY as BUSY,
};
use bullmq::job_scheduler::{JobSchedulerJson, RepeatOptions, next_cron_millis};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::queue::names::check_schedule_id;
use crate::queue::options::{LONGEST_DELAY, check, options_of};
use crate::queue::scripts;
use crate::{Error, Job, JobSpec, Queue};

/// When jobs come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// By the clock on the wall somewhere.
    Cron {
        /// Five fields, or six with seconds first.
        pattern: String,
        /// IANA name of the zone; `None` is UTC.
        time_zone: Option<String>,
    },
    /// At an interval.
    Every(Duration),
}

impl Schedule {
    fn options(&self) -> Result<RepeatOptions, Error> {
        let none = RepeatOptions::default();
        match self {
            Self::Every(interval) => {
                let ms = interval.as_millis() as u64;
                if ms == 0 {
                    return Err(Error::InvalidSchedule(
                        "an interval must be a millisecond at least".into(),
                    ));
                }
                if *interval > LONGEST_DELAY {
                    return Err(Error::InvalidSchedule(
                        "an interval of more than ten years".into(),
                    ));
                }
                Ok(RepeatOptions { every: Some(ms), ..none })
            }
            Self::Cron { pattern, time_zone } => {
                check_cron(pattern, time_zone.as_deref())?;
                Ok(RepeatOptions { pattern: Some(pattern.clone()), tz: time_zone.clone(), ..none })
            }
        }
    }
}

/// Says which field of a pattern is wrong.
fn check_cron(pattern: &str, time_zone: Option<&str>) -> Result<(), Error> {
    const NAMES: [&str; 6] =
        ["second", "minute", "hour", "day of the month", "month", "day of the week"];
    let parses = |pattern: &str, zone: Option<&str>| next_cron_millis(pattern, 0, zone, None);
    if let Err(error) = parses("* * * * *", time_zone) {
        let zone = time_zone.unwrap_or_default();
        return Err(Error::InvalidSchedule(format!(
            "time zone {zone:?} is not known ({error}); they are called like Europe/Berlin"
        )));
    }
    let Err(error) = parses(pattern, time_zone) else { return Ok(()) };
    let fields: Vec<&str> = pattern.split_whitespace().collect();
    if !(5..=6).contains(&fields.len()) {
        let count = fields.len();
        return Err(Error::InvalidSchedule(format!(
            "{pattern:?} has {count} fields; a cron pattern has five (minute, hour, day of the month, \
             month, day of the week), or six with seconds first"
        )));
    }
    let names = &NAMES[6 - fields.len()..];
    for (position, field) in fields.iter().enumerate() {
        let alone: Vec<&str> =
            (0..fields.len()).map(|other| if other == position { field } else { "*" }).collect();
        if parses(&alone.join(" "), None).is_err() {
            return Err(Error::InvalidSchedule(format!(
                "{pattern:?}: {field:?} in field {} ({}) is not valid",
                position + 1,
                names[position]
            )));
        }
    }
    if error.to_string().contains("search limit") {
        return Err(Error::InvalidSchedule(format!("{pattern:?} is a time that never comes")));
    }
    Err(Error::InvalidSchedule(format!("{pattern:?}: {error}")))
}

impl Queue {
    /// Adds a schedule, or changes the one of this id. Its jobs are like `job`, each with an id of its own.
    pub async fn schedule(
        &self,
        id: &str,
        schedule: &Schedule,
        job: &JobSpec,
    ) -> Result<(), Error> {
        check_schedule_id(id)?;
        check(job, self.broker().max_payload())?;
        if !job.delay.is_zero() || job.deduplication.is_some() {
            let told = "its jobs come when they are due, with neither delay nor deduplication";
            return Err(Error::InvalidSchedule(told.to_owned()));
        }
        let mut options = options_of(job);
        options.job_id = None;
        let repeat = schedule.options()?;
        let (name, data) = (Some(job.name.as_ref()), Some(job.data.clone()));
        let set = self.bull().upsert_job_scheduler(id, repeat, name, data, Some(options)).await;
        match set {
            Err(bullmq::Error::Script { code: COLLISION | BUSY, .. }) => {
                let told = "a job of an earlier schedule with this id is still there; remove it, or use another id";
                Err(Error::InvalidSchedule(told.to_owned()))
            }
            set => Ok(set.map(drop)?),
        }
    }

    /// Ends a schedule and removes its next job. `Ok(false)`: there is none of this id.
    pub async fn unschedule(&self, id: &str) -> Result<bool, Error> {
        Ok(self.bull().remove_job_scheduler(id).await?)
    }

    /// One schedule, in BullMQ's form.
    pub async fn schedule_of<T: DeserializeOwned>(&self, id: &str) -> Result<Option<T>, Error> {
        let found = self.ask(|| self.bull().get_job_scheduler(id)).await?;
        found.as_ref().map(read).transpose()
    }

    /// All schedules, in BullMQ's form: `key`, `name`, `pattern` or `every`, `next`, …
    pub async fn schedules<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        let schedules = self.ask(|| self.bull().get_job_schedulers(0, -1, true)).await?;
        schedules.iter().map(read).collect()
    }

    /// Puts the job after this one on the queue, if this one comes from a schedule.
    pub(crate) async fn schedule_next(&self, job: &Job, now_ms: u64) -> Result<(), Error> {
        let Some(id) = &job.schedule else { return Ok(()) };
        let mut options: Value = serde_json::from_str(&job.raw_options).unwrap_or_default();
        if !options["repeat"].is_object() {
            let told =
                "the options of its job, which other software has written, say nothing of it";
            return Err(Error::InvalidSchedule(told.to_owned()));
        }
        // The first job of a schedule says only in its id when it was due (`repeat:{id}:{ms}`). One that
        // was promoted begins before that, and would else be followed by itself.
        let due_ms = options["prevMillis"].as_f64().map(|ms| ms as u64);
        let due_ms = due_ms.or_else(|| job.id.rsplit(':').next()?.parse().ok());
        let Some(next) = next_of(&options, due_ms, now_ms)? else { return Ok(()) };
        let count = options["repeat"]["count"].as_f64().unwrap_or(1.0) as u64 + 1;
        options["repeat"]["count"] = json!(count);
        options["prevMillis"] = json!(next);
        scripts::update_job_scheduler(
            &mut self.broker().redis(),
            self.keys(),
            id,
            job,
            &options,
            next,
            now_ms,
        )
        .await
    }
}

/// A schedule of BullMQ.
fn read<T: DeserializeOwned>(schedule: &JobSchedulerJson) -> Result<T, Error> {
    serde_json::from_value(json!(schedule)).map_err(|error| Error::Protocol {
        script: "getJobScheduler",
        answer: format!("{error}: {}", json!(schedule)),
    })
}

/// When the next job of a schedule is due; 0 leaves it to the script, `None` is never. `due_ms` is when this
/// one was.
fn next_of(options: &Value, due_ms: Option<u64>, now_ms: u64) -> Result<Option<u64>, Error> {
    let repeat = &options["repeat"];
    let number = |name: &str| repeat[name].as_f64().map(|n| n as u64);
    if number("limit").is_some_and(|limit| number("count").unwrap_or(1) >= limit)
        || number("endDate").is_some_and(|end| now_ms > end)
    {
        return Ok(None);
    }
    let Some(pattern) = repeat["pattern"].as_str() else { return Ok(Some(0)) };
    // A run that was late does not make up for those that were missed.
    let from = due_ms.map_or(now_ms, |due| due.max(now_ms));
    Ok(next_cron_millis(pattern, from, repeat["tz"].as_str(), number("startDate"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cron(pattern: &str, zone: Option<&str>) -> Result<(), String> {
        check_cron(pattern, zone).map_err(|error| error.to_string())
    }

    #[test]
    fn a_pattern_that_is_wrong_is_shown_where() {
        assert_eq!(cron("0 8 * * *", Some("Europe/Moscow")), Ok(()));
        assert_eq!(cron("*/5 * * * * *", None), Ok(()));
        let told = cron("0 25 * * *", None).unwrap_err();
        assert!(told.contains("\"25\" in field 2 (hour)"), "{told}");
        let told = cron("61 0 8 * * *", None).unwrap_err();
        assert!(told.contains("\"61\" in field 1 (second)"), "{told}");
        let told = cron("every day", None).unwrap_err();
        assert!(told.contains("has 2 fields"), "{told}");
        let told = cron("0 8 * * *", Some("Mars/Olympus")).unwrap_err();
        assert!(told.contains("Mars/Olympus"), "{told}");
    }

    #[test]
    fn a_schedule_ends_by_count_and_by_date() {
        let next = |repeat: Value| next_of(&json!({ "repeat": repeat }), Some(1000), 5000).unwrap();
        assert_eq!(next(json!({ "every": 100 })), Some(0));
        assert_eq!(next(json!({ "every": 100, "limit": 3, "count": 3 })), None);
        assert_eq!(next(json!({ "every": 100, "limit": 3, "count": 2 })), Some(0));
        assert_eq!(next(json!({ "every": 100, "endDate": 4000 })), None);
        assert_eq!(
            next(json!({ "pattern": "* * * * *" })),
            Some(60_000),
            "not the minutes it missed"
        );
    }

    /// When jobs come after a given time.
    fn comes(pattern: &str, zone: &str, from_ms: u64, times: usize) -> Vec<u64> {
        let mut now_ms = from_ms;
        let mut next = || {
            let options = json!({ "repeat": { "pattern": pattern, "tz": zone } });
            now_ms = next_of(&options, None, now_ms).unwrap().unwrap();
            now_ms
        };
        (0..times).map(|_| next()).collect()
    }

    #[test]
    fn a_clock_on_the_wall_is_followed_when_it_is_put_forward_and_back() {
        const HOUR: u64 = 3_600_000;
        // Midnights, UTC.
        let (march_28, october_24) = (1_774_656_000_000, 1_792_800_000_000);
        let day = |midnight: u64, days: u64| midnight + days * 24 * HOUR;
        // Berlin: on 29 March from UTC+1 to UTC+2, on 25 October back.
        let nine = comes("0 9 * * *", "Europe/Berlin", march_28, 3);
        let expected = [(0, 8), (1, 7), (2, 7)].map(|(days, at)| day(march_28, days) + at * HOUR);
        assert_eq!(nine, expected);
        let nine = comes("0 9 * * *", "Europe/Berlin", october_24, 3);
        let expected = [(0, 7), (1, 8), (2, 8)].map(|(days, at)| day(october_24, days) + at * HOUR);
        assert_eq!(nine, expected);
        // A zone without summer time, and half an hour.
        let nine = comes("0 9 * * *", "Asia/Kolkata", march_28, 2);
        assert_eq!(nine, [0, 1].map(|days| day(march_28, days) + 3 * HOUR + HOUR / 2));
        // Half past two does not exist on 29 March, and comes twice on 25 October: once a day all the same.
        let nights = comes("30 2 * * *", "Europe/Berlin", march_28 + 12 * HOUR, 2);
        assert_eq!(nights[1], day(march_28, 2) + HOUR / 2, "{nights:?}");
        let nights = comes("30 2 * * *", "Europe/Berlin", october_24 + 12 * HOUR, 2);
        assert_eq!(nights[1], day(october_24, 2) + HOUR + HOUR / 2, "{nights:?}");
    }
}
