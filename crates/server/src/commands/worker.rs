//! `stampede worker`: one worker process. The supervisor starts it and gives it its name.

mod pipe;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use stampede_broker::{ConsumerConfig, Work, WorkerPresence};
use stampede_campaign::{Campaigns, SendMessage};
use stampede_cluster::{ANNOUNCE_EVERY, ENTRY_LIVES, WorkerEnv};
use stampede_feed::Nudger;
use stampede_model::KeyId;
use stampede_press::Press;
use stampede_studio::Studio;
use stampede_telemetry::Metrics;
use stampede_ticketing::{Limits, Parts, Ticketing};
use stampede_webhook::Webhooks;
use stampede_worker::{Environment, Heartbeat};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::pipe::Pipe;
use crate::commands::signals::stop_on_signal;
use crate::settings::{Redis, Settings};
use crate::{compiler, connect, logging};

/// How long a worker without a supervisor may take to end its jobs.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn run(settings: Settings) -> Result<()> {
    let identity = Identity::read(&settings);
    logging::start_as(&settings.log, &identity.id);
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    if identity.supervised {
        tokio::spawn(stop_with_supervisor(stop.clone()));
    }
    work(settings, identity, stop).await
}

/// The name of this worker and of its node.
struct Identity {
    id: String,
    node: String,
    token: String,
    drain: Option<Duration>,
    supervised: bool,
}

impl Identity {
    fn read(settings: &Settings) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let id =
            variable(WorkerEnv::ID).unwrap_or_else(|| format!("{}-worker", settings.server_name));
        let drain_ms = variable(WorkerEnv::DRAIN).and_then(|ms| ms.parse().ok());
        Self {
            token: variable(WorkerEnv::TOKEN)
                .unwrap_or_else(|| format!("{id}:{}", KeyId::generate())),
            node: variable(WorkerEnv::NODE).unwrap_or_else(|| settings.server_name.clone()),
            drain: drain_ms.map(Duration::from_millis),
            supervised: variable(WorkerEnv::SUPERVISED).is_some(),
            id,
        }
    }
}

async fn work(settings: Settings, identity: Identity, stop: CancellationToken) -> Result<()> {
    let Redis::At(redis_url) = &settings.redis else {
        bail!("a worker needs REDIS_URL; \"stampede serve\" starts workers by itself and sets it");
    };
    // No registry: a worker has no port. Its node shows what it tells.
    let metrics = Metrics::default();
    let store = connect::counted_store(&settings, &metrics).await?;
    let default = connect::default_template(&settings)?;
    let broker = connect::broker(&settings, redis_url).await?;
    let files = connect::files(&settings).await?;
    let parts = Parts {
        worker: identity.id.clone(),
        store: store.clone(),
        broker: broker.clone(),
        files: files.clone(),
        press: Press::new(store.clone(), compiler::start()?, default),
        limits: Limits { slots: settings.job_concurrency, ..Limits::default() },
        metrics: metrics.clone(),
    };
    let ticketing = connect::step(&settings, || Ticketing::start(parts.clone())).await?;
    let slots = settings.job_concurrency;
    let hooks = connect::webhook_parts(&settings, &store, &broker, slots);
    let webhooks = connect::step(&settings, || Webhooks::open(hooks.clone())).await?;
    // Until the last job is recorded.
    let recorded = CancellationToken::new();
    let nudging = tokio::spawn(Nudger::new(store.clone(), broker.clone()).run(recorded.clone()));
    let messages = connect::campaign_parts(&settings, &store, &broker, &ticketing, &metrics);
    let campaigns = connect::step(&settings, || Campaigns::open(messages.clone())).await?;
    campaigns.set_message_slots(SendMessage::slots(slots));
    let drawing = connect::studio_parts(&broker, &files, stampede_studio::Limits::of_worker());
    let studio = connect::step(&settings, || Studio::open(drawing.clone())).await?;
    let environment = Environment { ticketing, webhooks, campaigns, studio };
    let (reports, reported) = watch::channel(None);
    let telling = identity.supervised.then(|| {
        let pipe = Pipe::new(metrics.clone(), broker.clone());
        tokio::spawn(pipe.tell(reported))
    });
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let heartbeat = Heartbeat {
        worker: WorkerPresence {
            id: identity.id.clone(),
            node: identity.node,
            incarnation: identity.token.clone(),
            start_time: started.as_secs(),
            pid: std::process::id(),
        },
        registry: broker.registry(ENTRY_LIVES),
        every: ANNOUNCE_EVERY,
        reports,
    };
    let config = ConsumerConfig {
        token: identity.token,
        drain: identity.drain.unwrap_or(settings.shutdown_timeout),
        ..ConsumerConfig::new(identity.id, settings.job_concurrency)
    };
    tracing::info!(slots = config.slots, "ready");
    let jobs = stampede_worker::jobs(&environment);
    stampede_worker::run(config, &broker, &jobs, &metrics, heartbeat, stop).await?;
    environment.stop().await;
    recorded.cancel();
    // A panic in it has been reported already.
    let _ = nudging.await;
    if let Some(telling) = telling
        && let Ok(mut pipe) = telling.await
    {
        pipe.tell_metrics().await;
    }
    store.close().await;
    tracing::info!("ended");
    Ok(())
}

/// Standard input closes when the supervisor dies, in whatever way.
async fn stop_with_supervisor(stop: CancellationToken) {
    let mut buffer = [0; 64];
    let mut stdin = tokio::io::stdin();
    while !matches!(stdin.read(&mut buffer).await, Ok(0) | Err(_)) {}
    if !stop.is_cancelled() {
        tracing::warn!("the supervisor is gone; ending");
        stop.cancel();
    }
    // Redis may be gone with it, and then nothing can be handed back; the locks expire.
    tokio::time::sleep(ORPHAN_PATIENCE).await;
    tracing::warn!("ended without handing back everything");
    std::process::exit(1);
}
