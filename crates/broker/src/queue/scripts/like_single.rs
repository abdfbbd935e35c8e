//! A call for many jobs must leave the same keys and answers as single calls. Both are made with the same jobs,
//! times and troubles in two databases of one Redis, which are compared key by key.

use std::collections::BTreeMap;
use std::fmt::Write;

use redis::{FromRedisValue, cmd};
use serde_json::json;
use stampede_testkit::Redis;

use super::*;
use crate::link::Link;
use crate::queue::redis_keys::Keys;
use crate::{Broker, Config, Job};

const NOW: u64 = 1_800_000_000_000;

/// A database with one queue in it.
struct Side {
    link: Link,
    keys: Keys,
    /// The official crate's queue.
    bull: bullmq::Queue,
}

impl Side {
    async fn connect(redis: &Redis, database: usize) -> Self {
        let broker =
            Broker::connect(&Config::new(format!("{}/{database}", redis.url()))).await.unwrap();
        let options = bullmq::QueueOptions::new().prefix("bull");
        let bull = bullmq::Queue::with_connection("q", broker.bull(), options).await.unwrap();
        Self { link: broker.redis(), keys: Keys::new("bull", "q"), bull }
    }

    /// A command whose words are separated by spaces; `@` stands for the beginning of the queue's keys.
    async fn ask<T: FromRedisValue>(&self, command: &str) -> T {
        let mut words = command.split(' ').map(|word| word.replace('@', &self.keys.prefix));
        let mut command = cmd(&words.next().unwrap());
        words.for_each(|word| {
            command.arg(word);
        });
        command.query_async(&mut self.link.clone()).await.unwrap()
    }

    /// Everything there is, but for the ids of events and the remaining life of locks.
    async fn everything(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for key in self.ask::<Vec<String>>("KEYS *").await {
            let kind: String = self.ask(&format!("TYPE {key}")).await;
            let mut value = match kind.as_str() {
                "string" => self.ask::<String>(&format!("GET {key}")).await,
                "list" => {
                    format!("{:?}", self.ask::<Vec<String>>(&format!("LRANGE {key} 0 -1")).await)
                }
                "hash" => {
                    let mut fields: BTreeMap<String, String> =
                        self.ask(&format!("HGETALL {key}")).await;
                    // The order of the options is nobody's business.
                    if let Some(options) = fields.get_mut("opts") {
                        let read: serde_json::Value = serde_json::from_str(options).unwrap();
                        *options = read.to_string();
                    }
                    format!("{fields:?}")
                }
                "set" => {
                    let mut members: Vec<String> = self.ask(&format!("SMEMBERS {key}")).await;
                    members.sort();
                    format!("{members:?}")
                }
                "zset" => {
                    let command = format!("ZRANGE {key} 0 -1 WITHSCORES");
                    format!("{:?}", self.ask::<Vec<String>>(&command).await)
                }
                "stream" => {
                    let events: Vec<(String, Vec<String>)> =
                        self.ask(&format!("XRANGE {key} - +")).await;
                    let events: Vec<_> = events.into_iter().map(|(_, fields)| fields).collect();
                    format!("{events:?}")
                }
                kind => panic!("{key} is a {kind}"),
            };
            let expires = self.ask::<i64>(&format!("PTTL {key}")).await > 0;
            write!(value, " (expires: {expires})").unwrap();
            all.insert(key, value);
        }
        all
    }

    /// Takes jobs, each with a token of its own.
    async fn take(&self, jobs: usize) -> Vec<(Claim, Job)> {
        let mut taken = Vec::new();
        for slot in 0..jobs {
            let token = format!("token:{slot}");
            let claim = Claim { token, name: "worker".into(), lock_ms: 30_000 };
            let fetched = move_to_active(&mut self.link.clone(), &self.keys, &claim, NOW).await;
            if let Fetched::Job(job) = fetched.unwrap() {
                taken.push((claim, *job));
            }
        }
        taken
    }
}

fn assert_same(alone: &BTreeMap<String, String>, together: &BTreeMap<String, String>, told: &str) {
    for key in alone.keys().chain(together.keys()) {
        assert_eq!(alone.get(key), together.get(key), "{key}: {told}");
    }
}

/// Something that is the matter with a queue or its jobs.
async fn trouble(side: &Side, kind: usize) {
    match kind {
        0 => side.ask::<()>("HSET @meta paused 1").await,
        1 => side.ask::<()>("HSET @meta concurrency 3").await,
        2 => side.ask::<()>("HSET @meta max 2 duration 60000").await,
        // A job that is gone, one that is locked by another, one without a lock, one not active.
        3 => side.ask::<()>("DEL @a1").await,
        4 => side.ask::<()>("SET @a2:lock another").await,
        5 => side.ask::<()>("DEL @a3:lock").await,
        6 => side.ask::<()>("LREM @active 0 a4").await,
        // Children that are not done, and a child that has failed.
        7 => side.ask::<()>("SADD @a0:dependencies bull:q:child").await,
        8 => side.ask::<()>("ZADD @a1:unsuccessful 1 bull:q:child").await,
        // Delayed jobs: due, and not yet.
        9 => {
            side.ask::<()>("HSET @due name job data {} opts {} delay 5 priority 0").await;
            side.ask::<()>(&format!("ZADD @delayed {} due", (NOW - 5) * 4096)).await;
            side.ask::<()>("HSET @later name job data {} opts {} delay 5 priority 0").await;
            side.ask::<()>(&format!("ZADD @delayed {} later", (NOW + 50_000) * 4096)).await;
        }
        // Old jobs that are to be cleared up.
        10 => {
            for number in 0..5 {
                side.ask::<()>(&format!("HSET @old-{number} name job data {{}} opts {{}}")).await;
                let then = NOW - 90_000_000 + number;
                side.ask::<()>(&format!("ZADD @completed {then} old-{number}")).await;
            }
        }
        // A parent in another queue that waits for two of them.
        11 => {
            side.ask::<()>("HSET bull:p:parent name job data {} opts {} priority 0 delay 0").await;
            side.ask::<()>("ZADD bull:p:waiting-children 1 parent").await;
            for child in ["a0", "a2"] {
                side.ask::<()>(&format!("SADD bull:p:parent:dependencies bull:q:{child}")).await;
                let parent = r#"{"id":"parent","queueKey":"bull:p"}"#;
                side.ask::<()>(&format!("HSET @{child} parentKey bull:p:parent parent {parent}"))
                    .await;
            }
        }
        // One that ends the wait of its like, and has the next of them ready.
        12 => {
            side.ask::<()>("HSET @a3 deid twin").await;
            side.ask::<()>("SET @de:twin a3").await;
            side.ask::<()>("HSET @dn:twin name job data {} opts {}").await;
        }
        // A hash that is none: its job cannot be finished.
        13 => {
            side.ask::<()>("DEL @a4").await;
            side.ask::<()>("SET @a4 nonsense").await;
        }
        _ => unreachable!("there are 14 kinds"),
    }
}

#[tokio::test]
async fn completing_many_jobs_in_one_call_is_like_completing_them_one_by_one() {
    let redis = Redis::start().await;
    let (alone, together) = (Side::connect(&redis, 0).await, Side::connect(&redis, 1).await);
    let seed = std::env::var("STAMPEDE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    // Each kind of trouble alone, then several at a time.
    let mut stories: Vec<Vec<usize>> = (0..14).map(|kind| vec![kind]).collect();
    stories.push(Vec::new());
    stories.extend((0..60).map(|_| (0..14).filter(|_| random.u8(..4) == 0).collect()));
    let keeps = [json!({"age": 86_400, "count": 3}), json!(2), json!(true), json!(false)];
    for story in stories {
        let (count, fetch) = (random.usize(2..9), random.bool());
        let keep = &keeps[random.usize(..keeps.len())];
        let mut found = Vec::new();
        for side in [&alone, &together] {
            side.ask::<()>("FLUSHDB").await;
            for number in 0..12 {
                let options = json!({"removeOnComplete": keep, "attempts": 3, "jobId": "x"});
                side.ask::<()>(&format!(
                    "HSET @a{number} name job data {{}} priority {} opts {options}",
                    number % 2
                ))
                .await;
                let wait = if number % 2 == 0 { "LPUSH @wait" } else { "ZADD @prioritized 1" };
                side.ask::<()>(&format!("{wait} a{number}")).await;
            }
            let taken = side.take(count).await;
            for kind in &story {
                trouble(side, *kind).await;
            }
            let next = if fetch { Next::Fetch } else { Next::Leave };
            let ends: Vec<FinishRequest> = taken
                .iter()
                .map(|(claim, job)| {
                    let fields = [("progress", "100".to_owned())];
                    let run = Run { claim, job, fields: &fields, next, now_ms: NOW };
                    FinishRequest::completed(&run, &format!("\"{}\"", job.id))
                })
                .collect();
            assert!(ends[0].goes_with(&ends[1]));
            let mut answers = Vec::new();
            let (link, keys) = (&mut side.link.clone(), &side.keys);
            if std::ptr::eq(side, &alone) {
                for end in ends.chunks(1) {
                    match move_to_completed(link, keys, end, NOW).await {
                        Ok(mut answer) => answers.push(answer.remove(0)),
                        Err(error) => answers.push(Err(error)),
                    }
                }
            } else {
                answers = move_to_completed(link, keys, &ends, NOW).await.unwrap();
            }
            let answers = answers.into_iter().map(|answer| match answer {
                Ok(FinishReply::Moved(Fetched::Job(job))) => format!("{} {}", job.id, job.raw_data),
                Ok(FinishReply::Moved(Fetched::Nothing { due_ms, limited_ms })) => {
                    format!("nothing, due {due_ms:?}, limited {}", limited_ms > 0)
                }
                Ok(finished) => format!("{finished:?}"),
                // Lines and hashes of scripts differ.
                Err(error) => error.to_string().chars().take(30).collect(),
            });
            found.push((answers.collect::<Vec<_>>(), side.everything().await));
        }
        let told = format!("seed {seed}, {story:?}, {count} jobs, keep {keep}, fetch {fetch}");
        assert_eq!(found[0].0, found[1].0, "{told}");
        assert_same(&found[0].1, &found[1].1, &told);
    }
}

#[tokio::test]
async fn adding_many_jobs_in_one_call_is_like_adding_them_with_the_official_crate() {
    let redis = Redis::start().await;
    let (alone, together) = (Side::connect(&redis, 0).await, Side::connect(&redis, 1).await);
    for meta in ["x 1", "paused 1", "concurrency 2", "opts.maxLenEvents 500"] {
        let options = |number: usize| {
            let mut options = bullmq::JobOptions::new()
                .job_id(format!("a{}", number % 60))
                .attempts(3)
                .timestamp(std::time::UNIX_EPOCH + std::time::Duration::from_millis(NOW))
                .backoff(bullmq::types::BackoffStrategy::Exponential(2_000));
            options.priority = number.is_multiple_of(3).then_some(number as u32 + 1);
            options.delay = (number % 5 == 1).then_some(1_000 + number as u64 % 4);
            // Twins that are added in the same way, so that it is known which of them is the first.
            let [first, newest] =
                ["first", "newest"].map(|which| format!("{which}-{}", number % 15));
            let twins = |id: String| bullmq::DeduplicationOptions {
                id,
                ttl: None,
                extend: None,
                replace: None,
                keep_last_if_active: None,
            };
            options.deduplication = match number % 15 {
                1 => Some(bullmq::DeduplicationOptions {
                    ttl: Some(60_000),
                    extend: Some(true),
                    replace: Some(true),
                    ..twins(newest)
                }),
                2 | 6 => Some(twins(first)),
                3 => Some(bullmq::DeduplicationOptions {
                    keep_last_if_active: Some(true),
                    ..twins(first)
                }),
                _ => None,
            };
            options
        };
        let data = |number: usize| json!({"number": number, "text": "Bērziņa / \"x\""});
        for side in [&alone, &together] {
            side.ask::<()>("FLUSHDB").await;
            side.ask::<()>(&format!("HSET @meta {meta}")).await;
            side.ask::<()>("LPUSH @active b0 b1 b2").await;
        }
        // More than one call takes, and some of them twice.
        let jobs = 0..130;
        let official = jobs
            .clone()
            .map(|number| bullmq::BulkJob::with_options("job", data(number), options(number)));
        // One by one: with several at a time it does not keep their order while it loads its scripts.
        for job in official {
            alone.bull.add_bulk(vec![job]).await.unwrap();
        }
        let ours: Vec<NewJob<'_>> = jobs
            .map(|number| NewJob {
                name: "job",
                data: data(number).to_string(),
                options: bullmq::JobOptions { timestamp: None, ..options(number) },
            })
            .collect();
        add(&together.link, &together.keys, &ours, NOW).await.unwrap();
        let (mut alone, mut together) = (alone.everything().await, together.everything().await);
        for side in [&mut alone, &mut together] {
            // Each kind of jobs is added apart, so these mix them differently.
            let mut events: Vec<String> = side
                .remove("bull:q:events")
                .unwrap()
                .trim_end_matches(" (expires: false)")
                .split("], [")
                .map(|event| event.trim_matches(['[', ']']).to_owned())
                .collect();
            events.sort();
            side.insert("events".to_owned(), events.join("\n"));
        }
        assert_same(&alone, &together, meta);
    }
}
