//! A Redis that is there and is not right: what is said about it, and that no job is lost.

use std::time::Duration;

use redis::{aio::MultiplexedConnection, cmd};
use serde_json::json;
use stampede_broker::{Broker, Config, ConnectionState, ConsumerConfig, Error, Outcome, TlsFiles};
use stampede_testkit::{Proxy, Redis, eventually};

use crate::stage::{SOON, Stage, config, connect, job, jobs, play, raw, short_lock, throughout};

async fn refusal(url: String) -> Error {
    match Broker::connect(&Config::new(url)).await {
        Ok(_) => panic!("should be refused"),
        Err(error) => error,
    }
}

async fn say(redis: &mut MultiplexedConnection, words: &str) {
    let mut words = words.split(' ');
    let mut command = cmd(words.next().unwrap());
    words.for_each(|word| {
        command.arg(if word == "''" { "" } else { word });
    });
    command.exec_async(redis).await.unwrap();
}

/// That whoever asks for the state of the connection, or reads the log, learns of it.
async fn is_away(broker: &Broker, why: &str) {
    eventually(SOON, || async {
        match broker.connection_state() {
            ConnectionState::Away { reason, .. } if reason.contains(why) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

async fn is_back(broker: &Broker) {
    eventually(SOON, || async {
        let state = broker.connection_state();
        if state == ConnectionState::Connected { Ok(()) } else { Err(format!("{state:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_redis_that_takes_nothing_is_away_and_says_why() {
    let stage = Stage::start().await;
    for (refuses, takes, why) in [
        ("maxmemory 1", "maxmemory 0", "OOM"),
        ("min-replicas-to-write 3", "min-replicas-to-write 0", "NOREPLICAS"),
    ] {
        stage.ask::<()>(&format!("CONFIG SET {refuses}")).await;
        assert!(stage.queue.enqueue(&[job("a")]).await.unwrap_err().is_outage());
        is_away(&stage.broker, why).await;
        stage.ask::<()>(&format!("CONFIG SET {takes}")).await;
        is_back(&stage.broker).await;
    }
    stage.enqueue(&[job("a")]).await;
}

#[tokio::test]
async fn jobs_keep_their_locks_and_end_however_long_a_redis_is_full() {
    let stage = Stage::start().await;
    let often = ConsumerConfig { slots: 2, ..short_lock("w") };
    let (lock, look) = (often.lock, often.stalled_interval);
    let mut played = stage.play(often);
    let mut other = stage.play(ConsumerConfig { slots: 1, ..short_lock("other") });
    stage.enqueue(&jobs(3)).await;
    let mut runs = vec![played.run().await, played.run().await];
    runs.push(other.run().await);
    stage.ask::<()>("CONFIG SET maxmemory 1").await;
    let stay = async || assert!(runs.iter().all(|run| !run.is_dropped()));
    throughout(4 * lock, stay).await;
    for run in &runs {
        assert!(stage.ask::<bool>(&format!("EXISTS @{}:lock", run.job.id)).await);
    }
    runs.pop().unwrap().completes();
    stage.until_completed(1).await;
    // The others go on when there is room again, and nobody takes them for dead.
    let stay = async || assert!(runs.iter().all(|run| !run.is_dropped()));
    stage.ask::<()>("CONFIG SET maxmemory 0").await;
    throughout(4 * look, stay).await;
    runs.into_iter().for_each(|run| run.completes());
    stage.until_completed(3).await;
    for id in ["job-0", "job-1", "job-2"] {
        assert_eq!(stage.field(id, "ats").await.as_deref(), Some("1"), "{id}");
    }
}

#[tokio::test]
async fn a_redis_that_takes_no_renewals_is_given_time_before_anybody_counts_as_dead() {
    let stage = Stage::start().await;
    let mut played = stage.play(short_lock("w"));
    let mut eager = stage.play(short_lock("eager"));
    stage.enqueue(&[job("a"), job("b")]).await;
    let (a, b) = (played.run().await, eager.run().await);
    stage.ask::<()>("CONFIG SET min-replicas-to-write 3").await;
    // Nothing is written any more, and locks expire.
    eventually(SOON, || async {
        let locked: usize =
            stage.ask(&format!("EXISTS @{}:lock @{}:lock", a.job.id, b.job.id)).await;
        (locked == 0).then_some(())
    })
    .await;
    throughout(Duration::from_secs(2), async || {}).await;
    stage.ask::<()>("CONFIG SET min-replicas-to-write 0").await;
    let stay = async || assert!(!a.is_dropped() && !b.is_dropped());
    throughout(Duration::from_secs(2), stay).await;
    a.completes();
    b.completes();
    stage.until_completed(2).await;
    for id in ["a", "b"] {
        assert_eq!(stage.field(id, "ats").await.as_deref(), Some("1"), "{id}");
    }
}

#[tokio::test]
async fn a_redis_whose_disk_takes_nothing_is_away_and_no_job_is_lost() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&jobs(2)).await;
    let run = played.run().await;
    // It cannot write its snapshot where a folder stands.
    let folder = stage.redis.folder().join("dump.rdb");
    std::fs::create_dir_all(folder.join("in-the-way")).unwrap();
    let mut sometimes = cmd("CONFIG");
    sometimes.arg("SET").arg("save").arg("3600 1");
    sometimes.exec_async(&mut stage.raw().await).await.unwrap();
    let saved = async |wanted: &str| {
        let _: Result<(), _> = cmd("BGSAVE").query_async(&mut stage.raw().await).await;
        eventually(SOON, || async {
            let info: String = stage.ask("INFO persistence").await;
            let found = info.lines().find_map(|line| line.strip_prefix("rdb_last_bgsave_status:"));
            if found == Some(wanted) { Ok(()) } else { Err(info) }
        })
        .await;
    };
    saved("err").await;
    let refused = stage.queue.enqueue(&[job("a")]).await.unwrap_err();
    assert!(refused.is_outage() && refused.to_string().contains("MISCONF"), "{refused}");
    is_away(&stage.broker, "MISCONF").await;
    run.completes();
    std::fs::remove_dir_all(&folder).unwrap();
    saved("ok").await;
    is_back(&stage.broker).await;
    played.run().await.completes();
    stage.until_completed(2).await;
    played.runs_nothing_else();
}

#[tokio::test]
async fn a_redis_that_hangs_up_on_everybody_is_asked_again_and_not_hammered() {
    let stage = Stage::start().await;
    let proxy = Proxy::start(stage.redis.port()).await;
    let (broker, queue) = connect(&proxy.url()).await;
    let mut played = play(&queue, ConsumerConfig { slots: 50, ..config("w") });
    stage.until_idle(1).await;
    let door = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    proxy.lead_to(door.local_addr().unwrap().port());
    proxy.reset(|_| true);
    let knocked = std::sync::atomic::AtomicUsize::new(0);
    let slam = async {
        loop {
            drop(door.accept().await);
            knocked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    };
    tokio::select! {
        () = slam => {}
        () = throughout(Duration::from_secs(3), async || {}) => {}
    }
    // Four connections of a consumer and its broker, each at first after 50 ms, then less and less often.
    let knocked = knocked.into_inner();
    assert!((4..200).contains(&knocked), "{knocked} times in 3 s");
    proxy.lead_to(stage.redis.port());
    is_back(&broker).await;
    stage.enqueue(&[job("a")]).await;
    played.run().await.completes();
    stage.until_completed(1).await;
}

#[tokio::test]
async fn a_redis_that_is_full_of_jobs_is_worked_empty() {
    let stage = Stage::start().await;
    let mut played = stage.play(ConsumerConfig { slots: 2, ..config("w") });
    stage.enqueue(&jobs(20)).await;
    let first = [played.run().await, played.run().await];
    stage.ask::<()>("CONFIG SET maxmemory 1").await;
    assert!(stage.queue.enqueue(&[job("a")]).await.unwrap_err().is_outage());
    is_away(&stage.broker, "OOM").await;
    // What ends brings the next job along, and so makes room.
    first.into_iter().for_each(|run| run.completes());
    for _ in 2..20 {
        played.run().await.completes();
    }
    stage.until_completed(20).await;
    assert!(stage.queue.enqueue(&[job("a")]).await.is_err(), "still full");
}

#[tokio::test]
async fn a_primary_that_becomes_a_replica_is_left_for_where_its_address_leads() {
    let stage = Stage::start().await;
    let other = Redis::start().await;
    let proxy = Proxy::start(stage.redis.port()).await;
    let (broker, queue) = connect(&proxy.url()).await;
    let mut played = play(&queue, config("w"));
    queue.enqueue(&[job("a")]).await.unwrap();
    let run = played.run().await;
    // As a managed Redis does it: the roles change, the address leads elsewhere, connections stay.
    say(&mut raw(&other.url()).await, &format!("REPLICAOF 127.0.0.1 {}", stage.redis.port())).await;
    eventually(SOON, || async {
        let reached: i64 = stage.ask("WAIT 1 100").await;
        (reached == 1).then_some(())
    })
    .await;
    say(&mut raw(&other.url()).await, "REPLICAOF NO ONE").await;
    stage.ask::<()>(&format!("REPLICAOF 127.0.0.1 {}", other.port())).await;
    run.completes();
    is_away(&broker, "read only replica").await;
    proxy.lead_to(other.port());
    is_back(&broker).await;
    queue.enqueue(&[job("b")]).await.unwrap();
    let run = played.run().await;
    assert_eq!(run.job.id, "b");
    run.completes();
    // Also what goes through the official crate's connection.
    eventually(Duration::from_secs(20), || async {
        let counts = queue.counts().await.map_err(|error| error.to_string())?;
        queue.pause().await.map_err(|error| error.to_string())?;
        if counts.completed == 2 { Ok(()) } else { Err(format!("{counts:?}")) }
    })
    .await;
    played.runs_nothing_else();
}

#[tokio::test]
async fn certificates_for_an_address_without_tls_are_a_mistake() {
    let tls = TlsFiles { authority: Some("/etc/ca.pem".into()), own: None };
    let config = Config { tls, ..Config::new("redis://:hidden@127.0.0.1:1") };
    let text = Broker::connect(&config).await.map(|_| ()).unwrap_err().to_string();
    assert!(text.contains("REDIS_TLS_CA") && text.contains("rediss"), "{text}");
    assert!(!text.contains("hidden") && !format!("{config:?}").contains("hidden"));
}

#[tokio::test]
async fn a_wrong_password_is_called_that_and_not_repeated() {
    let redis = Redis::start().await;
    let mut raw = raw(&redis.url()).await;
    say(&mut raw, "CONFIG SET requirepass open-sesame").await;
    for user in ["", ":wrong-guess@", "nobody:wrong-guess@"] {
        let error = refusal(format!("redis://{user}127.0.0.1:{}", redis.port())).await;
        let text = error.to_string();
        assert!(matches!(error, Error::Refused { .. }) && !error.is_outage(), "{text}");
        assert!(text.contains("password") && text.contains("REDIS_URL"), "{text}");
        assert!(!format!("{error:?}").contains("wrong-guess"), "{error:?}");
    }
    let right = format!("redis://:open-sesame@127.0.0.1:{}", redis.port());
    Broker::connect(&Config::new(right)).await.map(|_| ()).unwrap();
}

#[tokio::test]
async fn a_database_that_does_not_exist_is_named_as_the_reason() {
    let redis = Redis::start().await;
    let error = refusal(format!("{}/99", redis.url())).await;
    let text = error.to_string();
    assert!(matches!(error, Error::Refused { .. }) && !error.is_outage(), "{text}");
    assert!(text.contains("no such database") && text.contains("REDIS_DB"), "{text}");
}

#[tokio::test]
async fn a_password_that_is_changed_is_waited_for() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&jobs(2)).await;
    let run = played.run().await;
    let mut raw = stage.raw().await;
    say(&mut raw, "CONFIG SET requirepass changed").await;
    say(&mut raw, "CLIENT KILL TYPE normal SKIPME yes").await;
    let refused = eventually(SOON, || async { stage.queue.counts().await.err() }).await;
    // Not the broken connection, but what comes after it.
    eventually(SOON, || async {
        let error = stage.queue.presence(&["a"]).await.unwrap_err().to_string();
        if error.contains("check REDIS_URL or REDIS_PASSWORD") { Ok(()) } else { Err(error) }
    })
    .await;
    assert!(refused.is_outage(), "{refused}");
    run.completes();
    say(&mut raw, "CONFIG SET requirepass ''").await;
    played.run().await.completes();
    stage.until_completed(2).await;
    assert_eq!(stage.field("job-0", "ats").await.unwrap(), "1");
    played.runs_nothing_else();
}

#[tokio::test]
async fn a_connection_that_was_not_let_in_for_a_while_is_made_again() {
    let redis = Redis::start().await;
    let mut raw = raw(&redis.url()).await;
    say(&mut raw, "CONFIG SET requirepass open-sesame").await;
    let right = format!("redis://:open-sesame@127.0.0.1:{}/3", redis.port());
    let broker = Broker::connect(&Config::new(right)).await.unwrap();
    for (refuse, admit, word) in [
        (
            "CONFIG SET requirepass changed",
            "CONFIG SET requirepass open-sesame",
            "does not know us",
        ),
        ("ACL SETUSER default -select", "ACL SETUSER default +select", "switch database"),
    ] {
        say(&mut raw, refuse).await;
        say(&mut raw, "CLIENT KILL TYPE normal SKIPME yes").await;
        // Until it has given up to connect.
        eventually(SOON, || async {
            let answer =
                broker.ping().await.map_or_else(|error| error.to_string(), |()| String::new());
            if answer.contains(word) { Ok(()) } else { Err(answer) }
        })
        .await;
        say(&mut raw, admit).await;
        eventually(SOON, || async { broker.ping().await }).await;
    }
}

#[tokio::test]
async fn a_connection_that_is_dead_and_does_not_know_is_replaced() {
    let stage = Stage::start().await;
    let proxy = Proxy::start(stage.redis.port()).await;
    let (broker, queue) = connect(&proxy.url()).await;
    queue.presence(&["a"]).await.unwrap();
    let mut listener = broker.subscribe(&["somebody".to_owned()]).await.unwrap();
    proxy.strand();
    // Nobody needs to wait for an answer until it times out; those who look after the connection do.
    eventually(Duration::from_secs(30), || async {
        tokio::time::timeout(Duration::from_secs(1), broker.ping()).await
    })
    .await
    .unwrap();
    queue.presence(&["a"]).await.unwrap();
    // And the official crate, which reads this on a connection of its own.
    eventually(Duration::from_secs(30), || async {
        let counted = tokio::time::timeout(Duration::from_secs(1), queue.counts()).await;
        counted.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    })
    .await;
    // Whoever listens hears of the end, and can listen anew.
    let heard = tokio::time::timeout(Duration::from_secs(30), listener.next()).await;
    assert_eq!(heard.unwrap(), None);
}

#[tokio::test]
async fn a_redis_without_memory_is_waited_out() {
    let stage = Stage::start().await;
    let mut played = stage.play(ConsumerConfig { slots: 2, ..config("w") });
    stage.enqueue(&jobs(3)).await;
    let (done, broken) = (played.run().await, played.run().await);
    stage.ask::<()>("CONFIG SET maxmemory 1").await;
    let refused = stage.queue.enqueue(&[job("b")]).await.unwrap_err();
    assert!(refused.is_outage() && refused.to_string().contains("OOM"), "{refused}");
    done.completes();
    broken.ends(Outcome::Discard("no such ticket".into()));
    played.failure().await.settles(Ok(()));
    is_away(&stage.broker, "OOM").await;
    throughout(Duration::from_millis(500), async || {}).await;
    stage.ask::<()>("CONFIG SET maxmemory 0").await;
    is_back(&stage.broker).await;
    played.run().await.completes();
    stage.enqueue(&[job("b")]).await;
    played.run().await.completes();
    stage.until("all have ended", |counts| counts.completed == 3 && counts.failed == 1).await;
    assert_eq!(stage.queue.dead_letters().count().await.unwrap(), 1);
    for id in ["job-0", "job-1"] {
        assert_eq!(stage.field(id, "ats").await.unwrap(), "1", "{id} ran once");
    }
    played.runs_nothing_else();
}

#[tokio::test]
async fn a_redis_that_reads_its_data_is_waited_for() {
    let mut stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    // Enough that it takes some seconds.
    stage.enqueue(&jobs(2_000)).await;
    let run = played.run().await;
    stage.redis.stop().await;
    stage.redis.start_again_slowly().await;
    let url = stage.redis.url();
    // It does not always answer in time either.
    let error = eventually(SOON, || async {
        let error = refusal(url.clone()).await;
        if matches!(error, Error::Loading { .. }) { Ok(error) } else { Err(error) }
    })
    .await;
    assert!(error.is_outage() && error.to_string().contains("loading its data"), "{error}");
    let first = run.job.id.clone();
    run.completes();
    let next = played.run().await;
    assert_ne!(next.job.id, first);
    assert_eq!(stage.field(&first, "ats").await.unwrap(), "1");
    stage.until_completed(1).await;
}

#[tokio::test]
async fn a_redis_that_has_forgotten_the_scripts_is_taught_them_again() {
    let stage = Stage::start().await;
    let mut played = stage.play(config("w"));
    stage.enqueue(&jobs(4)).await;
    let endings = [
        Outcome::Done(json!(1)),
        Outcome::Snooze(Duration::from_millis(1)),
        Outcome::Discard("no".into()),
    ];
    for ending in endings {
        let run = played.run().await;
        stage.ask::<()>("SCRIPT FLUSH").await;
        let fails = matches!(ending, Outcome::Discard(_));
        run.ends(ending);
        if fails {
            played.failure().await.settles(Ok(()));
        }
    }
    stage.ask::<()>("SCRIPT FLUSH").await;
    stage.enqueue(&[job("late")]).await;
    for _ in 0..3 {
        played.run().await.completes();
    }
    stage.until("all have ended", |counts| counts.completed == 4 && counts.failed == 1).await;
}

#[tokio::test]
async fn a_failover_to_a_replica_loses_no_job_and_runs_none_twice() {
    let mut stage = Stage::start().await;
    let replica = Redis::start().await;
    let mut behind = raw(&replica.url()).await;
    say(&mut behind, &format!("REPLICAOF 127.0.0.1 {}", stage.redis.port())).await;

    let proxy = Proxy::start(stage.redis.port()).await;
    let (_broker, queue) = connect(&proxy.url()).await;
    let mut played = play(&queue, ConsumerConfig { slots: 2, ..config("w") });
    queue.enqueue(&jobs(8)).await.unwrap();
    let (done, broken) = (played.run().await, played.run().await);
    eventually(SOON, || async {
        let reached: i64 = stage.ask("WAIT 1 100").await;
        (reached == 1).then_some(())
    })
    .await;

    // The address leads to the replica before that has been promoted.
    proxy.lead_to(replica.port());
    stage.redis.kill();
    proxy.reset(|_| true);
    let error = refusal(proxy.url()).await;
    let text = error.to_string();
    assert!(matches!(error, Error::ReadOnlyReplica { .. }) && error.is_outage(), "{text}");
    assert!(text.contains(&format!("replica of 127.0.0.1:{}", stage.redis.port())), "{text}");
    done.completes();
    broken.ends(Outcome::Discard("no such ticket".into()));
    played.failure().await.settles(Ok(()));
    let refused = eventually(SOON, || async {
        let error = queue.enqueue(&[job("late")]).await.unwrap_err();
        if error.to_string().contains("read only replica") { Ok(error) } else { Err(error) }
    });
    assert!(refused.await.is_outage());
    throughout(Duration::from_millis(300), async || {}).await;

    say(&mut behind, "REPLICAOF NO ONE").await;
    for _ in 0..6 {
        played.run().await.completes();
    }
    eventually(SOON, || async {
        let counts = queue.counts().await.unwrap();
        if (counts.completed, counts.failed) == (7, 1) {
            Ok(())
        } else {
            Err(format!("{counts:?}"))
        }
    })
    .await;
    played.runs_nothing_else();
    assert_eq!(queue.dead_letters().count().await.unwrap(), 1);
}
