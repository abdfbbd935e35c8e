//! `stampede worker`: one worker process. The supervisor starts it and tells it who it is.

use std::time::Duration;

use anyhow::{Result, bail};
use stampede_broker::ConsumerConfig;
use stampede_cluster::WorkerEnv;
use stampede_model::KeyId;
use stampede_press::Press;
use stampede_store::Durability;
use stampede_worker::Environment;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::commands::signals::stop_on_signal;
use crate::settings::{Redis, Settings};
use crate::{compiler, connect, logging};

/// A job whose worker vanished without a trace is taken over after this long.
const LOCK: Duration = Duration::from_secs(15);
const STALLED_INTERVAL: Duration = Duration::from_secs(5);
/// How long a worker without a supervisor may take to end its jobs.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn run(settings: Settings) -> Result<()> {
    logging::start(&settings.log);
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let id = variable(WorkerEnv::ID).unwrap_or_else(|| format!("{}-worker", settings.server_name));
    let token = variable(WorkerEnv::TOKEN).unwrap_or_else(|| format!("{id}:{}", KeyId::generate()));
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    if variable(WorkerEnv::SUPERVISED).is_some() {
        tokio::spawn(stop_with_supervisor(stop.clone()));
    }
    let span = tracing::info_span!("worker", id);
    work(settings, id, token, stop).instrument(span).await
}

async fn work(
    settings: Settings,
    name: String,
    token: String,
    stop: CancellationToken,
) -> Result<()> {
    let Redis::At(redis_url) = &settings.redis else {
        bail!("a worker needs REDIS_URL; \"stampede serve\" starts workers by itself and sets it");
    };
    // What a worker writes can be made again from the order, so it need not survive a power cut.
    let store = connect::store(&settings, Durability::Relaxed).await?;
    let default = connect::default_template(&settings)?;
    let environment = Environment {
        store: store.clone(),
        files: connect::files(&settings).await?,
        press: Press::new(store.clone(), compiler::start()?, default),
    };
    let broker = connect::broker(&settings, redis_url).await?;
    let config = ConsumerConfig {
        name,
        token,
        slots: settings.job_concurrency,
        lock: LOCK,
        stalled_interval: STALLED_INTERVAL,
        drain: settings.shutdown_timeout,
        limit: None,
    };
    tracing::info!(slots = config.slots, "ready");
    stampede_worker::run(config, broker, environment, stop).await?;
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
