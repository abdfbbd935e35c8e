//! Jobs that failed permanently.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use serde_json::{Value, json};
use stampede_broker::{ConsumerConfig, FoundLetters, Handler, Job, JobContext, Letters, Outcome};

use tokio::sync::{Notify, mpsc};

use crate::stage::{Counting, Running, SOON, Stage, config, connect, job, jobs, short_lock};

/// Fails jobs for good, in the order in which they come.
async fn kill(stage: &Stage, count: usize) {
    let mut played = stage.play(ConsumerConfig { slots: 1, ..config("killer") });
    for _ in 0..count {
        let run = played.run().await;
        let reason = format!("no printer for {}", run.job.id);
        run.ends(Outcome::Discard(reason));
        played.failure().await.settles(Ok(()));
    }
    let wanted = count as u64;
    stage.until("failed", |counts| counts.failed == wanted && counts.active == 0).await;
    played.running.stop().await;
}

#[tokio::test]
async fn a_dead_letter_has_all_that_is_known_of_its_job() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("a")]).await;
    kill(&stage, 1).await;
    let letters = stage.queue.dead_letters();
    let letter = letters.get("a").await.unwrap().unwrap();
    assert_eq!((letter.queue.as_str(), letter.name.as_str()), ("tickets", "generate-pdf"));
    assert_eq!(letter.reason, "no printer for a");
    assert_eq!(letter.payload.get(), r#"{"ticketId":"a"}"#);
    assert_eq!(letter.attempts_made, 1);
    assert_eq!(letter.stacktrace, ["no printer for a"]);
    assert!(letter.failed_at >= letter.added_at && letter.added_at > 0);
    // Fields that older software reads (docs/compatibility.md).
    let mut raw = stage.raw().await;
    let data: String = redis::cmd("HGET")
        .arg("bull:tickets-dlq:a")
        .arg("data")
        .query_async(&mut raw)
        .await
        .unwrap();
    let data: Value = serde_json::from_str(&data).unwrap();
    assert_eq!(data["jobId"], "a");
    assert_eq!(data["payload"], json!({"ticketId": "a"}));
    assert_eq!(data["reason"], "no printer for a");
}

#[tokio::test]
async fn whoever_looks_sees_a_failed_job_with_its_letter_or_neither() {
    const JOBS: usize = 300;
    let stage = Stage::start().await;
    stage.enqueue(&jobs(JOBS)).await;
    let look = redis::Script::new(
        "local odd, dead = {}, redis.call('ZRANGE', KEYS[1], 0, -1)
         for _, id in ipairs(dead) do
           if redis.call('EXISTS', KEYS[2] .. id) == 0 then odd[#odd + 1] = id end
         end
         local letters = redis.call('LLEN', KEYS[2] .. 'wait')
         return {#dead, letters, odd}",
    );
    struct Refuses;
    impl Handler for Refuses {
        async fn run(&self, _: &Job, _: &JobContext) -> Outcome {
            Outcome::Discard("no".to_owned())
        }
    }
    let running = Running::start(&stage.queue, ConsumerConfig { slots: 8, ..config("w") }, Refuses);
    let mut raw = stage.raw().await;
    let (mut looks, mut failed) = (0, 0);
    while failed < JOBS {
        let mut look = look.prepare_invoke();
        look.key("bull:tickets:failed").key("bull:tickets-dlq:");
        let found: (usize, usize, Vec<String>) = look.invoke_async(&mut raw).await.unwrap();
        assert_eq!((found.0, &found.2), (found.1, &Vec::new()), "{found:?}");
        failed = found.0;
        looks += 1;
    }
    assert!(looks > 20, "too few to have seen anything: {looks}");
    running.stop().await;
}

#[tokio::test]
async fn a_run_from_before_a_replay_cannot_take_the_job_back() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("a")]).await;
    kill(&stage, 1).await;
    let starts = stage.field("a", "ats").await;
    assert_eq!(stage.queue.dead_letters().replay(&Letters::All, None).await.unwrap().count, 1);
    // By this number a worker that was cut off tells whether Redis has forgotten its run, or somebody has put the
    // job back since.
    assert_eq!(stage.field("a", "ats").await, starts);
    let mut played = stage.play(config("w"));
    let run = played.run().await;
    assert_eq!(run.job.attempts_made, 0, "its attempts are all there");
    run.completes();
    stage.until_completed(1).await;
    assert_eq!(stage.field("a", "ats").await.as_deref(), Some("2"));
}

#[tokio::test]
async fn thousands_of_letters_are_replayed_and_thrown_away_in_time() {
    const LETTERS: usize = 12_000;
    let stage = Stage::start().await;
    // As they stand there after a bad day.
    let fill = redis::Script::new(
        "for n = 1, tonumber(ARGV[1]) do
           local id = 'job-' .. n
           local letter = {queue = 'tickets', jobId = id, name = 'x', payload = {n = n}, reason = 'no', opts = {attempts = 3}}
           redis.call('HSET', KEYS[1] .. id, 'name', 'x', 'data', cjson.encode(letter))
           redis.call('LPUSH', KEYS[1] .. 'wait', id)
         end",
    );
    let mut fill = fill.prepare_invoke();
    fill.key("bull:tickets-dlq:").arg(LETTERS);
    fill.invoke_async::<()>(&mut stage.raw().await).await.unwrap();
    let letters = stage.queue.dead_letters();
    let replayed = letters.replay(&Letters::All, None).await.unwrap();
    assert_eq!((replayed.count, replayed.failed.len()), (10_000, 0));
    assert_eq!(letters.purge(&Letters::All).await.unwrap().count, LETTERS - 10_000);
    assert_eq!(letters.count().await.unwrap(), 0);
    let counts = stage.queue.counts().await.unwrap();
    assert_eq!(counts.waiting, 10_000, "{counts:?}");
    let first: String = stage.ask("LINDEX @wait -1").await;
    let number: usize = first.strip_prefix("job-").unwrap().parse().unwrap();
    assert!(number < 100, "about in the order in which they died: {first}");
}

#[tokio::test]
async fn a_replayed_job_has_all_its_attempts_again_and_perhaps_other_data() {
    let stage = Stage::start().await;
    stage.enqueue(&jobs(3)).await;
    kill(&stage, 3).await;
    let letters = stage.queue.dead_letters();
    assert_eq!(letters.count().await.unwrap(), 3);
    let one = Letters::These(vec!["job-1".into(), "unknown".into()]);
    let data = json!({"ticketId": "corrected"});
    let replayed = letters.replay(&one, Some(&data)).await.unwrap();
    assert_eq!((replayed.count, replayed.failed.len()), (1, 1));
    assert!(replayed.failed[0].error.contains("no dead letter of job \"unknown\""), "{replayed:?}");
    let mut played = stage.play(config("w"));
    let run = played.run().await;
    assert_eq!((run.job.id.as_str(), &run.job.data), ("job-1", &data));
    assert_eq!((run.job.attempts_made, run.job.attempts), (0, 3));
    run.completes();

    // One whose record is gone is made anew of what its letter says.
    assert!(stage.queue.remove("job-0").await.unwrap());
    assert_eq!(letters.replay(&Letters::All, None).await.unwrap().count, 2);
    for _ in 0..2 {
        let run = played.run().await;
        assert_eq!(run.job.data, json!({"ticketId": run.job.id}));
        assert_eq!((run.job.attempts_made, run.job.attempts), (0, 3));
        run.completes();
    }
    stage.until("all done", |counts| counts.completed == 3 && counts.failed == 0).await;
    assert_eq!(letters.count().await.unwrap(), 0);
    assert!(letters.list(0, 10).await.unwrap().letters.is_empty());
}

#[tokio::test]
async fn letters_are_listed_newest_first_searched_and_thrown_away() {
    let stage = Stage::start().await;
    stage.enqueue(&jobs(12)).await;
    kill(&stage, 12).await;
    let letters = stage.queue.dead_letters();
    let ids = |found: FoundLetters| -> (Vec<String>, Option<usize>) {
        (found.letters.into_iter().map(|letter| letter.job_id).collect(), found.next)
    };
    let these = |ids: &[&str], next| -> (Vec<String>, Option<usize>) {
        (ids.iter().map(|id| (*id).to_owned()).collect(), next)
    };
    let list = async |from, count| ids(letters.list(from, count).await.unwrap());
    assert_eq!(list(0, 2).await, these(&["job-11", "job-10"], Some(2)));
    assert_eq!(list(10, 5).await, these(&["job-1", "job-0"], None));
    assert_eq!(list(0, 0).await.0, Vec::<String>::new());
    let search = async |text, from, count| ids(letters.search(text, from, count).await.unwrap());
    assert_eq!(search("\"job-1\"", 0, 9).await, these(&["job-1"], None));
    let (first, next) = search("printer for job-1", 0, 2).await;
    assert_eq!(first, ["job-11", "job-10"]);
    assert_eq!(search("printer for job-1", next.unwrap(), 2).await, these(&["job-1"], None));
    assert_eq!(search("nothing", 0, 5).await, these(&[], None));

    // What other software has put there is passed over, and hides nothing behind it.
    for odd in 0..250 {
        let id = format!("odd-{odd}");
        let _: i64 = stage.ask(&format!("LPUSH bull:tickets-dlq:wait {id}")).await;
        let _: i64 = stage.ask(&format!("HSET bull:tickets-dlq:{id} data {odd}")).await;
    }
    assert_eq!(search("\"job-1\"", 0, 9).await, these(&["job-1"], None));
    let odd = (0..250).map(|odd| format!("odd-{odd}")).collect();
    assert_eq!(
        letters.replay(&Letters::These(odd), None).await.unwrap().count,
        0,
        "not ours to replay"
    );
    assert_eq!(letters.count().await.unwrap(), 262);
    assert_eq!(letters.purge(&Letters::These(vec!["job-4".into()])).await.unwrap().count, 1);
    assert_eq!(letters.purge(&Letters::All).await.unwrap().count, 261);
    assert_eq!(letters.count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_job_that_dies_again_while_it_is_replayed_keeps_its_new_letter() {
    let stage = Stage::start().await;
    stage.enqueue(&jobs(40)).await;
    kill(&stage, 40).await;
    // Dies as soon as it is back: often before its replay has come to its end.
    let running = Running::start(&stage.queue, config("again"), Dies);
    let letters = stage.queue.dead_letters();
    assert_eq!(letters.replay(&Letters::All, None).await.unwrap().count, 40);
    stage.until("dead again", |counts| counts.failed == 40 && counts.active == 0).await;
    running.stop().await;
    assert_eq!(letters.count().await.unwrap(), 40);
    for letter in letters.list(0, 40).await.unwrap().letters {
        assert_eq!(letter.reason, "again");
    }
}

struct Dies;

impl Handler for Dies {
    async fn run(&self, _: &Job, _: &JobContext) -> Outcome {
        Outcome::Discard("again".to_owned())
    }
}

#[tokio::test]
async fn letters_that_are_replayed_by_several_at_once_run_once() {
    let stage = Stage::start().await;
    stage.enqueue(&jobs(40)).await;
    kill(&stage, 40).await;
    // Of half of them nothing is kept but the letter.
    for n in 0..20 {
        assert!(stage.queue.remove(&format!("job-{n}")).await.unwrap());
    }
    let counting = Counting::default();
    let running = Running::start(&stage.queue, config("w"), counting.clone());
    let (letters, elsewhere) = (stage.queue.dead_letters(), connect(&stage.redis.url()).await.1);
    let other = elsewhere.dead_letters();
    let (one, two) =
        tokio::join!(letters.replay(&Letters::All, None), other.replay(&Letters::All, None));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.count + two.count, one.failed, two.failed), (40, Vec::new(), Vec::new()));
    stage.until_completed(40).await;
    running.stop().await;
    let runs = counting.runs();
    assert!(runs.len() == 40 && runs.values().all(|times| *times == 1), "{runs:?}");
    assert_eq!(letters.count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_letter_that_cannot_be_replayed_holds_up_no_others() {
    let stage = Stage::start().await;
    // The first has a payload that only others would add, the second an id that only BullMQ gives.
    let large = format!("\"{}\"", "x".repeat(300_000));
    for (id, data) in [("large", large.as_str()), ("17", "{}")] {
        let mut hash = redis::cmd("HSET");
        hash.arg(format!("bull:tickets:{id}")).arg("name").arg("n").arg("data").arg(data);
        hash.arg("opts").arg("{}").arg("timestamp").arg(1);
        hash.exec_async(&mut stage.raw().await).await.unwrap();
        let _: i64 = stage.ask(&format!("LPUSH @wait {id}")).await;
    }
    let mut played = stage.play(config("killer"));
    played.failure().await.settles(Ok(()));
    played.run().await.ends(Outcome::Discard("no".into()));
    played.failure().await.settles(Ok(()));
    stage.until("dead", |counts| counts.failed == 2 && counts.active == 0).await;
    assert!(stage.queue.remove("17").await.unwrap());
    let letters = stage.queue.dead_letters();
    let replayed = letters.replay(&Letters::All, None).await.unwrap();
    assert_eq!((replayed.count, replayed.failed.len()), (1, 1));
    assert_eq!(replayed.failed[0].id, "large");
    assert!(replayed.failed[0].error.contains("262144 is the most"), "{replayed:?}");
    let run = played.run().await;
    assert_eq!(run.job.id, "17");
    run.completes();
    let less = json!("less");
    assert_eq!(letters.replay(&Letters::All, Some(&less)).await.unwrap().count, 1);
    let run = played.run().await;
    assert_eq!((run.job.id.as_str(), &run.job.data), ("large", &less));
    run.completes();
    stage.until_completed(2).await;
    assert_eq!(letters.count().await.unwrap(), 0);
}

#[tokio::test]
async fn a_job_that_is_retried_needs_no_letter() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("a"), job("b")]).await;
    kill(&stage, 2).await;
    let letters = stage.queue.dead_letters();
    assert!(stage.queue.retry("a").await.unwrap());
    assert!(!stage.queue.retry("a").await.unwrap(), "it has not failed any more");
    assert!(letters.get("a").await.unwrap().is_none());
    let mut played = stage.play(config("w"));
    let run = played.run().await;
    assert_eq!((run.job.id.as_str(), run.job.attempts_made), ("a", 0));
    run.completes();
    // The completion of `a` removes completed jobs that are older than a day. It must come before `b` is written
    // there, and `b` must not be old: a letter whose job was removed is replayed as a new job.
    stage.until_completed(1).await;
    // Other software, which knows nothing of letters, completes `b`.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let _: i64 = stage.ask("ZREM @failed b").await;
    let _: i64 = stage.ask(&format!("ZADD @completed {now} b")).await;
    assert_eq!(letters.replay(&Letters::All, None).await.unwrap().count, 0);
    assert_eq!(letters.count().await.unwrap(), 0, "it has ended well");
    assert_eq!(
        letters.purge(&Letters::These(vec!["typo".into(), "meta".into()])).await.unwrap().count,
        0
    );
}

#[tokio::test]
async fn a_letter_whose_job_was_removed_for_its_age_is_replayed_as_a_new_job() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("b")]).await;
    kill(&stage, 1).await;
    stage.enqueue(&[job("a")]).await;
    let mut played = stage.play(config("w"));
    let run = played.run().await;
    // Other software completed `b` in 1970: the next completion removes its record.
    let _: i64 = stage.ask("ZREM @failed b").await;
    let _: i64 = stage.ask("ZADD @completed 1 b").await;
    run.completes();
    let stage = &stage;
    let is_gone = || async move { (!stage.ask::<bool>("EXISTS @b").await).then_some(()) };
    stampede_testkit::eventually(SOON, is_gone).await;
    let letters = stage.queue.dead_letters();
    assert_eq!(letters.replay(&Letters::All, None).await.unwrap().count, 1);
    let run = played.run().await;
    assert_eq!((run.job.id.as_str(), run.job.attempts_made), ("b", 0));
    run.completes();
}

#[tokio::test]
async fn letters_of_older_software_are_shown_and_replayed_if_their_job_is_kept() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("a")]).await;
    kill(&stage, 1).await;
    let theirs = r#"{"jobId":"a","payload":{"ticketId":"a"},"reason":"theirs"}"#;
    let _: i64 = stage.ask(&format!("HSET bull:tickets-dlq:a data {theirs}")).await;
    let letters = stage.queue.dead_letters();
    assert_eq!(letters.list(0, 10).await.unwrap().letters[0].reason, "theirs");
    assert_eq!(letters.replay(&Letters::All, None).await.unwrap().count, 1);
    let run = stage.play(config("w")).run().await;
    assert_eq!(run.job.name, "generate-pdf");
}

#[tokio::test]
async fn looking_at_letters_makes_no_queue() {
    let stage = Stage::start().await;
    stage.enqueue(&[job("a")]).await;
    let letters = stage.queue.dead_letters();
    assert!(letters.list(0, 10).await.unwrap().letters.is_empty());
    assert_eq!(
        (letters.count().await.unwrap(), letters.purge(&Letters::All).await.unwrap().count),
        (0, 0)
    );
    assert_eq!(stage.broker.queue_names().await.unwrap(), ["tickets".to_owned()].into());
}

/// Raises alarms that take their time.
struct Alarming {
    alarms: mpsc::UnboundedSender<(String, String)>,
    go_on: Arc<Notify>,
}

impl Handler for Alarming {
    async fn run(&self, job: &Job, _: &JobContext) -> Outcome {
        Outcome::Discard(format!("{} is beyond help", job.id))
    }

    async fn dead_lettered(&self, job: &Job, reason: &str) {
        let _ = self.alarms.send((job.id.clone(), reason.to_owned()));
        self.go_on.notified().await;
    }
}

#[tokio::test]
async fn everybody_who_wants_to_know_hears_of_a_dead_letter_and_no_job_waits_for_an_alarm() {
    let stage = Stage::start().await;
    let client = redis::Client::open(stage.redis.url()).unwrap();
    let mut heard = client.get_async_pubsub().await.unwrap();
    heard.subscribe("queue:dead-letter").await.unwrap();
    let (alarms, mut raised) = mpsc::unbounded_channel();
    let go_on = Arc::new(Notify::new());
    let handler = Alarming { alarms, go_on: go_on.clone() };
    let running = Running::start(&stage.queue, config("w"), handler);
    stage.enqueue(&[job("a"), job("b")]).await;
    let alarm = tokio::time::timeout(SOON, raised.recv()).await.unwrap().unwrap();
    assert_eq!(alarm, ("a".to_owned(), "a is beyond help".to_owned()));
    let message = tokio::time::timeout(SOON, heard.on_message().next()).await.unwrap().unwrap();
    let told: Value = serde_json::from_slice(message.get_payload_bytes()).unwrap();
    let expected = json!({"queue": "tickets", "jobId": "a", "name": "generate-pdf",
                          "reason": "a is beyond help"});
    assert_eq!(told, expected);
    // Nobody would renew its lock meanwhile.
    let counts = stage.queue.counts().await.unwrap();
    assert_eq!((counts.active, counts.prioritized), (0, 1), "others may take it");
    go_on.notify_one();
    let alarm = tokio::time::timeout(SOON, raised.recv()).await.unwrap().unwrap();
    assert_eq!(alarm.0, "b");
    go_on.notify_one();
    running.stop().await;
}

#[tokio::test]
async fn a_worker_that_has_lost_its_job_buries_nothing() {
    let stage = Stage::start().await;
    let mut slow = stage.play(short_lock("slow"));
    stage.enqueue(&[job("a")]).await;
    let run = slow.run().await;
    // Another worker has it now.
    let _: String = stage.ask("SET @a:lock other:0").await;
    run.ends(Outcome::Discard("too late".into()));
    slow.failure().await.settles(Ok(()));
    slow.running.stop().await;
    let letters = stage.queue.dead_letters();
    assert_eq!(letters.count().await.unwrap(), 0);
    assert_eq!(stage.queue.counts().await.unwrap().failed, 0);
}
