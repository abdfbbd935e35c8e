//! `stampede serve`: API, worker processes and reconciler, until told to stop.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use stampede_api::{App, Limits};
use stampede_cluster::{Supervisor, SupervisorConfig};
use stampede_model::GenerateTicket;
use stampede_store::Durability;
use stampede_worker::Reconciler;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::commands::signals::stop_on_signal;
use crate::keys::{AdminKey, ensure_admin_key};
use crate::local_redis::LocalRedis;
use crate::settings::{Redis, Settings};
use crate::{connect, logging};

pub(crate) async fn run(settings: Settings) -> Result<()> {
    logging::start(&settings);
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;

    // The cheapest checks come first, so that a mistake shows before anything was started.
    let listener = if settings.mode.serves() { Some(listen(&settings).await?) } else { None };
    let template = connect::template(&settings)?;
    let files = connect::files(&settings).await?;
    let store = connect::store(&settings, Durability::EveryCommit).await?;
    store.migrate().await?;
    let admin_key = ensure_admin_key(&settings, &store).await?;
    let local_redis = match settings.redis {
        Redis::Private => Some(LocalRedis::start(&settings.data_dir).await?),
        Redis::At(_) => None,
    };
    let redis_url = match (&local_redis, &settings.redis) {
        (Some(local), _) => local.url().to_owned(),
        (None, Redis::At(url)) => url.clone(),
        (None, Redis::Private) => unreachable!("a private Redis was started above"),
    };
    let end_redis = CancellationToken::new();
    let redis_task = local_redis.map(|local| tokio::spawn(local.run(end_redis.clone())));
    let broker = connect::broker(&settings, &redis_url).await?;
    let tickets = broker.queue(GenerateTicket::QUEUE).await?;

    let mut parts = JoinSet::new();
    if settings.mode.works() {
        let config = supervisor_config(&settings, &redis_url)?;
        let supervisor = Supervisor::new(config, broker.clone());
        parts.spawn(supervisor.run(stop.clone()));
    }
    let reconciler = Reconciler::new(store.clone(), broker.clone());
    parts.spawn(reconciler.run(stop.clone()));
    if let Some(listener) = listener {
        let address = listener.local_addr()?;
        let app = App {
            store: store.clone(),
            broker,
            tickets,
            files,
            template_revision: template.revision().into(),
            limits: Limits { quantity: settings.max_quantity, body_bytes: settings.max_body_bytes },
        };
        let stop = stop.clone();
        parts.spawn(async move {
            if let Err(error) = stampede_api::run(listener, app, stop.clone()).await {
                tracing::error!(%error, "the API ended");
                stop.cancel();
            }
        });
        greet(&settings, admin_key, address);
    }

    stop.cancelled().await;
    tracing::info!("stopping: no new work, running jobs may end");
    let deadline = settings.shutdown_timeout + std::time::Duration::from_secs(5);
    if tokio::time::timeout(deadline, parts.join_all()).await.is_err() {
        tracing::warn!("not everything ended in time");
    }
    store.close().await;
    end_redis.cancel();
    if let Some(task) = redis_task {
        task.await?;
    }
    tracing::info!("stopped");
    Ok(())
}

async fn listen(settings: &Settings) -> Result<TcpListener> {
    let address = SocketAddr::new(settings.host, settings.port);
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "port {} on {} is in use by another program. Stop it, or set PORT to another number",
            settings.port,
            settings.host
        ),
        _ => anyhow::anyhow!("cannot listen on {address}: {error}. Check HOST and PORT"),
    })
}

fn supervisor_config(settings: &Settings, redis_url: &str) -> Result<SupervisorConfig> {
    Ok(SupervisorConfig {
        program: std::env::current_exe().context("cannot find my own binary to start workers")?,
        args: vec!["worker".to_owned()],
        env: settings.worker_env(redis_url),
        node: settings.server_name.clone(),
        workers: settings.worker_count,
        drain: settings.shutdown_timeout,
        queues: vec![GenerateTicket::QUEUE.to_owned()],
    })
}

/// Tells the person at the terminal where to look.
fn greet(settings: &Settings, admin_key: AdminKey, address: SocketAddr) {
    let workers = if settings.mode.works() { settings.worker_count } else { 0 };
    let key = match admin_key {
        AdminKey::New(key) => format!("{key}\n              (shown only now: keep it)"),
        AdminKey::Preset => "the one in ADMIN_KEY".to_owned(),
        AdminKey::Known => {
            "shown at the first start; for a new one: stampede token create --role admin".to_owned()
        }
    };
    println!();
    println!("  Stampede {} is running", env!("CARGO_PKG_VERSION"));
    println!("  API         http://{address}/api   (health: http://{address}/health)");
    println!("  Admin key   {key}");
    println!("  Workers     {workers} processes, {} jobs each", settings.job_concurrency);
    println!("  PDFs        {}", settings.public_path.join("tickets").display());
    println!("  Try         stampede demo --tickets 200");
    println!();
}
