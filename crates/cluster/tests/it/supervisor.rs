//! Workers here are shell scripts: they say that they are ready, and end when they are told to or when
//! their standard input closes, as real ones do.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stampede_broker::{Broker, Config};
use stampede_cluster::{
    Program, Supervisor, SupervisorConfig, SupervisorHandle, WorkerState, WorkerStatus,
};
use stampede_telemetry::{Metrics, Registry};
use stampede_testkit::{Redis, TempDir, eventually, kill, temp_dir};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(30);
/// A worker that does what it should.
const GOOD: &str = "echo $WORKER_ID >> started\necho ready\nexec cat > /dev/null\n";

struct Stage {
    handle: SupervisorHandle,
    stop: CancellationToken,
    running: JoinHandle<()>,
    folder: TempDir,
    registry: Registry,
    _redis: Redis,
}

fn write(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    // Written beside and renamed, as an update of a program is.
    let draft = path.with_extension("new");
    let folder = path.parent().unwrap().display();
    fs::write(&draft, format!("#!/bin/sh\ncd {folder}\n{script}")).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&draft, path).unwrap();
}

impl Stage {
    async fn start(workers: usize, script: &str) -> Self {
        Self::with_memory(workers, script, None).await
    }

    async fn with_memory(workers: usize, script: &str, memory: Option<u64>) -> Self {
        let redis = Redis::start().await;
        let broker = Broker::connect(&Config::new(redis.url())).await.unwrap();
        let folder = temp_dir();
        let path = folder.path().join("worker");
        let registry = Registry::new();
        write(&path, script);
        let config = SupervisorConfig {
            program: Program::at(&path).unwrap(),
            args: Vec::new(),
            env: Vec::new(),
            node: "node".to_owned(),
            workers,
            drain: Duration::from_secs(2),
            kill_after: Duration::from_secs(3),
            memory,
            queues: vec!["tickets".to_owned()],
            metrics: Metrics::register(&registry).unwrap(),
        };
        let supervisor = Supervisor::new(config, broker);
        let (handle, stop) = (supervisor.handle(), CancellationToken::new());
        let running = tokio::spawn(supervisor.run(stop.clone()));
        Self { handle, stop, running, folder, registry, _redis: redis }
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("worker")
    }

    fn starts(&self) -> usize {
        fs::read_to_string(self.folder.path().join("started")).unwrap_or_default().lines().count()
    }

    /// Waits until the workers look like this.
    async fn until(&self, looks: impl Fn(&[WorkerStatus]) -> bool) -> Vec<WorkerStatus> {
        eventually(PATIENCE, || async {
            let workers = self.handle.workers();
            if looks(&workers) { Ok(workers) } else { Err(format!("{workers:?}")) }
        })
        .await
    }

    async fn until_running(&self, count: usize) -> Vec<WorkerStatus> {
        self.until(|workers| {
            workers.len() == count && workers.iter().all(|w| w.state == WorkerState::Running)
        })
        .await
    }

    /// Waits until the metrics have this line.
    async fn until_shown(&self, line: &str) {
        eventually(PATIENCE, || async {
            let text = stampede_telemetry::text(&self.registry).unwrap();
            if text.lines().any(|shown| shown == line) { Ok(()) } else { Err(text) }
        })
        .await
    }

    async fn end(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.running).await.unwrap().unwrap();
    }
}

fn pids(workers: &[WorkerStatus]) -> Vec<u32> {
    workers.iter().filter_map(|worker| worker.pid).collect()
}

fn lives(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
async fn workers_are_added_and_drained_and_none_outlives_the_supervisor() {
    let stage = Stage::start(1, GOOD).await;
    stage.until_running(1).await;
    stage.handle.scale_to(4);
    let four = stage.until_running(4).await;
    let names: Vec<&str> = four.iter().map(|worker| worker.id.as_str()).collect();
    assert_eq!(names, ["node-worker-0", "node-worker-1", "node-worker-2", "node-worker-3"]);
    stage.handle.scale_to(2);
    let two = stage.until_running(2).await;
    assert_eq!(pids(&two), pids(&four)[..2], "the last ones go first");
    let all = pids(&four);
    stage.end().await;
    assert!(!all.into_iter().any(lives));
}

#[tokio::test]
async fn a_worker_that_is_killed_is_back_within_three_seconds() {
    let stage = Stage::start(2, GOOD).await;
    let before = stage.until_running(2).await;
    kill(before[0].pid.unwrap());
    let killed = std::time::Instant::now();
    stage.until(|workers| workers[0].pid.is_some_and(|pid| Some(pid) != before[0].pid)).await;
    let after = stage.until_running(2).await;
    assert!(killed.elapsed() < Duration::from_secs(3), "{:?}", killed.elapsed());
    assert_eq!(after[1].pid, before[1].pid, "the other was left alone");
    stage.end().await;
}

#[tokio::test]
async fn a_worker_that_dies_of_its_start_is_looping_and_the_others_work_on() {
    let script =
        format!("[ $WORKER_ID = node-worker-1 ] && {{ echo x >> crashed; exit 7; }}\n{GOOD}");
    let stage = Stage::start(3, &script).await;
    let workers = stage
        .until(|workers| workers.len() == 3 && workers[1].state == WorkerState::CrashLooping)
        .await;
    assert!(workers[1].problem.as_ref().unwrap().contains("exit status: 7"), "{workers:?}");
    for good in [0, 2] {
        assert_eq!(workers[good].state, WorkerState::Running);
    }
    let crashes = fs::read_to_string(stage.folder.path().join("crashed")).unwrap().lines().count();
    assert_eq!(crashes, 4, "then it is tried more and more seldom");
    // One that does not work is the first to go.
    stage.handle.scale_to(2);
    let two = stage.until_running(2).await;
    assert_eq!(two[1].id, "node-worker-2");
    stage.end().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_shown_and_tried_again() {
    let stage = Stage::start(1, GOOD).await;
    stage.until_running(1).await;
    // What a full process table does, a file that may not be executed does too.
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(stage.program(), fs::Permissions::from_mode(0o644)).unwrap();
    stage.handle.scale_to(2);
    let workers = stage.until(|w| w.len() == 2 && w[1].state == WorkerState::CannotStart).await;
    assert_eq!(workers[0].state, WorkerState::Running);
    assert!(workers[1].problem.is_some(), "{workers:?}");
    fs::set_permissions(stage.program(), fs::Permissions::from_mode(0o755)).unwrap();
    stage.until_running(2).await;
    stage.end().await;
}

#[tokio::test]
async fn a_rolling_restart_takes_the_new_program_if_it_starts_and_keeps_the_old_ones_if_not() {
    let stage = Stage::start(2, GOOD).await;
    let first = pids(&stage.until_running(2).await);

    write(&stage.program(), "echo broken >> broken\nexit 1\n");
    stage.handle.restart();
    let problem = eventually(PATIENCE, || async { stage.handle.restart_problem() }).await;
    assert!(problem.contains("does not start: exit status: 1"), "{problem}");
    assert_eq!(pids(&stage.until_running(2).await), first, "the old ones stay");
    let tries = fs::read_to_string(stage.folder.path().join("broken")).unwrap().lines().count();
    assert_eq!(tries, 1, "one try is enough");

    write(&stage.program(), &format!("echo newer >> newer\n{GOOD}"));
    let seen =
        |stage: &Stage| fs::read_to_string(stage.folder.path().join("newer")).unwrap_or_default();
    stage.handle.restart();
    eventually(PATIENCE, || async { (seen(&stage).lines().count() == 2).then_some(()) }).await;
    let second = stage.until(|workers| {
        workers.len() == 2
            && workers.iter().all(|w| w.state == WorkerState::Running)
            && !pids(workers).iter().any(|pid| first.contains(pid))
    });
    let second = second.await;
    eventually(PATIENCE, || async { stage.handle.restart_problem().is_none().then_some(()) }).await;
    assert!(pids(&second).iter().all(|pid| lives(*pid)) && !first.iter().any(|pid| lives(*pid)));
    assert_eq!(stage.starts(), 4);
    stage.end().await;
}

#[tokio::test]
async fn a_worker_that_uses_too_much_memory_is_started_anew() {
    // The first one keeps 128 MB in a variable, those after it do not.
    let greedy = "[ -e grown ] || { touch grown; \
                  exec awk 'BEGIN { s = \"x\"; while (length(s) < 80000000) s = s s; print \"ready\"; fflush(); \
                  while ((getline line) > 0) n++; print length(s) }'; }\n";
    let stage = Stage::with_memory(1, &format!("{greedy}{GOOD}"), Some(90 << 20)).await;
    let workers = stage.until(|workers| workers.first().is_some_and(|w| w.pid.is_some())).await;
    let greedy = workers[0].pid.unwrap();
    let workers = stage
        .until(|workers| {
            let worker = &workers[0];
            worker.state == WorkerState::Running && worker.pid.is_some_and(|pid| pid != greedy)
        })
        .await;
    assert!(workers[0].deaths <= 1, "{workers:?}");
    assert!(!lives(greedy));
    stage.end().await;
}

#[tokio::test]
async fn a_limit_that_no_worker_can_keep_is_a_crash_loop() {
    let greedy = "exec awk 'BEGIN { s = \"x\"; while (length(s) < 30000000) s = s s; \
                  print \"ready\"; fflush(); while ((getline line) > 0) n++; print length(s) }'\n";
    let stage = Stage::with_memory(1, greedy, Some(20 << 20)).await;
    let workers = stage
        .until(|workers| workers.first().is_some_and(|w| w.state == WorkerState::CrashLooping))
        .await;
    let problem = workers[0].problem.as_ref().unwrap();
    assert!(problem.contains("20 MB is its limit"), "{problem}");
    stage.end().await;
}

#[tokio::test]
async fn a_worker_that_does_not_end_is_killed_in_time() {
    let stubborn = "trap '' TERM\necho ready\nwhile :; do sleep 0.1; done\n";
    let stage = Stage::start(2, stubborn).await;
    stage.until_running(2).await;
    let told = std::time::Instant::now();
    stage.end().await;
    let took = told.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_secs(8), "{took:?}");
}

/// A worker that tells that it has made five tickets, and seven when it is told to end.
fn counting() -> String {
    let told = |tickets: u32| {
        let line = format!(
            r#"metrics [{{"n":"stampede_tickets_total","l":["completed"],"v":{{"c":{tickets}}}}}]"#
        );
        format!("echo '{line}'")
    };
    let (first, last) = (told(5), told(7));
    format!(
        "end() {{ {last}; exit 0; }}\ntrap end TERM\n{first}\necho ready\nwhile :; do sleep 0.05; done\n"
    )
}

#[tokio::test]
async fn counts_of_workers_stay_when_they_are_killed_and_are_told_to_the_last() {
    let stage = Stage::start(1, &counting()).await;
    let before = stage.until_running(1).await;
    stage.until_shown(r#"stampede_tickets_total{status="completed"} 5"#).await;
    kill(before[0].pid.unwrap());
    stage.until_shown(r#"stampede_tickets_total{status="completed"} 10"#).await;
    stage.until_shown(r#"stampede_worker_restarts_total{reason="died"} 1"#).await;
    stage.until_running(1).await;
    stage.stop.cancel();
    // The second worker has told five before, and says seven at its end.
    stage.until_shown(r#"stampede_tickets_total{status="completed"} 12"#).await;
    stage.end().await;
}
