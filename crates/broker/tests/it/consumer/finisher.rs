//! Jobs that are completed at the same time.

use stampede_broker::ConsumerConfig;

use crate::stage::{Answer, Call, Played, Stage, config, jobs};

async fn run(played: &mut Played, jobs: usize) -> Vec<Call<Answer>> {
    let mut runs = Vec::new();
    for _ in 0..jobs {
        runs.push(played.run().await);
    }
    runs
}

async fn calls(stage: &Stage) -> usize {
    let stats: String = stage.ask("INFO commandstats").await;
    let of_scripts = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    of_scripts.and_then(|line| line.split(',').next()).map_or(0, |calls| calls.parse().unwrap())
}

#[tokio::test]
async fn jobs_that_end_together_are_completed_in_one_call_and_bring_the_next_ones_along() {
    let stage = Stage::start().await;
    stage.enqueue(&jobs(60)).await;
    let mut played = stage.play(ConsumerConfig { slots: 30, ..config("w") });
    let first = run(&mut played, 30).await;
    let before = calls(&stage).await;
    first.into_iter().for_each(Call::completes);
    let second = run(&mut played, 30).await;
    let needed = calls(&stage).await - before;
    // With what else the consumer does now and then.
    assert!(needed <= 12, "30 jobs took {needed} calls");
    second.into_iter().for_each(Call::completes);
    stage.until_completed(60).await;
    played.runs_nothing_else();
    for job in ["job-0", "job-29", "job-59"] {
        assert_eq!(stage.field(job, "returnvalue").await.unwrap(), "\"fine\"");
        assert_eq!(stage.field(job, "ats").await.unwrap(), "1");
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_completed_does_not_keep_its_neighbours_from_it() {
    let stage = Stage::start().await;
    stage.enqueue(&jobs(4)).await;
    let mut played = stage.play(ConsumerConfig { slots: 4, ..config("w") });
    let runs = run(&mut played, 4).await;
    // Other software at work: a job that is gone, and one whose hash is none any more.
    stage.ask::<()>("DEL @job-1").await;
    stage.ask::<()>("DEL @job-2").await;
    stage.ask::<()>("SET @job-2 nonsense").await;
    runs.into_iter().for_each(Call::completes);
    stage.until_completed(2).await;
    for job in ["job-0", "job-3"] {
        assert_eq!(stage.field(job, "returnvalue").await.unwrap(), "\"fine\"");
    }
    // And the consumer goes on.
    stage.enqueue(&[crate::stage::job("another")]).await;
    loop {
        let run = played.run().await;
        let last = run.job.id == "another";
        run.completes();
        if last {
            break;
        }
    }
    stage.until_completed(3).await;
}
