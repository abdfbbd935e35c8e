//! Connects to the database, Redis and the files folder. This and every other step of the start that needs the database
//! or Redis ([`step`]) is retried for `START_TIMEOUT`.

use std::fmt::Display;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use stampede_broker::Broker;
use stampede_channel::Channels;
use stampede_cluster::JoinError;
use stampede_files::Files;
use stampede_model::{MAIN_FILE, TemplateFiles};
use stampede_store::Store;
use stampede_studio::{Limits, StickerArtist};
use stampede_telemetry::Metrics;
use stampede_ticketing::Ticketing;
use tokio::time::Instant;

use crate::settings::Settings;
use crate::{compiler, ticket_secret};

const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Connections of one store. Few, because SQLite has one writer, and all nodes share the connections of
/// PostgreSQL.
const CONNECTIONS: u32 = 8;

/// Connects to the database, with the secret of the ticket keys if there is one.
pub(crate) async fn store(settings: &Settings) -> Result<Store> {
    counted_store(settings, &Metrics::default()).await
}

/// Connects to the database as [`store`] does, and counts its work there.
pub(crate) async fn counted_store(settings: &Settings, metrics: &Metrics) -> Result<Store> {
    let config = stampede_store::Config {
        url: settings.database_url.clone(),
        max_connections: CONNECTIONS,
        metrics: metrics.clone(),
        ..stampede_store::Config::default()
    };
    let store = patiently(settings.start_timeout, stampede_store::Error::is_outage, || {
        Store::connect(&config)
    });
    let store = store.await.context("DATABASE_URL")?;
    Ok(match ticket_secret::known(settings)? {
        Some(secret) => store.with_ticket_secret(&secret),
        None => store,
    })
}

/// Connects to a database that exists. A command that looks for the database of a server must not make a
/// new one; the error names another way, `instead`.
pub(crate) async fn existing_store(settings: &Settings, instead: &str) -> Result<Store> {
    if let Some(file) = settings.database_url.strip_prefix("sqlite:")
        && !Path::new(file.strip_prefix("//").unwrap_or(file)).exists()
    {
        bail!(
            "there is no database at {file}. Set DATA_DIR or DATABASE_URL as for the server, or {instead}"
        );
    }
    store(settings).await
}

/// Connects to Redis.
pub(crate) async fn broker(settings: &Settings, url: &str) -> Result<Broker> {
    let config = stampede_broker::Config {
        prefix: settings.queue_prefix.clone(),
        tls: settings.redis_tls.clone(),
        max_payload: Some(settings.max_job_bytes),
        ..stampede_broker::Config::new(url)
    };
    loop {
        let connected =
            patiently(settings.start_timeout, stampede_broker::Error::is_outage, || {
                Broker::connect(&config)
            });
        match connected.await {
            // A Redis that loads its data will be ready; how long that takes depends on its size.
            Err(error) if is_loading(&error) => {
                tracing::info!("{error}; waiting");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Err(error) => match error.downcast_ref() {
                Some(stampede_broker::Error::Refused { url, .. })
                    if needs_no_password(&config).await =>
                {
                    bail!(
                        "Redis at {url} has no password, but the settings give one. Take it out of \
                         REDIS_URL (or REDIS_PASSWORD), or protect Redis with that password (requirepass)"
                    );
                }
                _ => return Err(error),
            },
            Ok(broker) => return Ok(broker),
        }
    }
}

/// Whether a Redis that refused our password accepts connections without one.
async fn needs_no_password(config: &stampede_broker::Config) -> bool {
    let Ok(mut url) = url::Url::parse(&config.url) else { return false };
    let is_single = matches!(url.scheme(), "redis" | "rediss");
    if !is_single || url.password().is_none() || url.set_username("").is_err() {
        return false;
    }
    let _ = url.set_password(None);
    let config = stampede_broker::Config { url: url.to_string(), ..config.clone() };
    let tried = tokio::time::timeout(Duration::from_secs(2), Broker::connect(&config)).await;
    tried.is_ok_and(|connected| connected.is_ok())
}

fn is_loading(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(stampede_broker::Error::Loading { .. }))
}

/// What webhooks work with.
pub(crate) fn webhook_parts(
    settings: &Settings,
    store: &Store,
    broker: &Broker,
    slots: usize,
) -> stampede_webhook::Parts {
    let allowed = settings.webhook_allow_private.clone();
    stampede_webhook::Parts { store: store.clone(), broker: broker.clone(), allowed, slots }
}

/// What campaigns work with.
pub(crate) fn campaign_parts(
    settings: &Settings,
    store: &Store,
    broker: &Broker,
    ticketing: &Ticketing,
    metrics: &Metrics,
) -> stampede_campaign::Parts {
    let channels = stampede_channel::Config {
        allowed: settings.webhook_allow_private.clone(),
        telegram_api_url: settings.telegram_api_url.clone(),
        whatsapp_api_url: settings.whatsapp_api_url.clone(),
        receipts_base: settings.public_url.clone(),
    };
    let public_url = settings.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/'));
    stampede_campaign::Parts {
        store: store.clone(),
        broker: broker.clone(),
        ticketing: ticketing.clone(),
        channels: Channels::new(channels),
        public_url: public_url.map(str::to_owned),
        metrics: metrics.clone(),
    }
}

/// What the studio of stickers works with.
pub(crate) fn studio_parts(
    broker: &Broker,
    files: &Files,
    limits: Limits,
) -> stampede_studio::Parts {
    let artist = Arc::new(StickerArtist::default());
    stampede_studio::Parts { broker: broker.clone(), files: files.clone(), artist, limits }
}

/// Opens the folder of PDFs and stickers.
pub(crate) async fn files(settings: &Settings) -> Result<Files> {
    let durability = if settings.file_sync {
        stampede_files::Durability::SyncEach
    } else {
        stampede_files::Durability::Relaxed
    };
    let config = stampede_files::Config { root: settings.public_path.clone(), durability };
    Ok(Files::open(&config).await?)
}

/// The template for events without a template of their own.
pub(crate) fn default_template(settings: &Settings) -> Result<TemplateFiles> {
    match &settings.ticket_template {
        None => compiler::default_design(),
        Some(path) => {
            let source = std::fs::read(path)
                .with_context(|| format!("cannot read TICKET_TEMPLATE {}", path.display()))?;
            let files = [(MAIN_FILE.to_owned(), source)].into();
            TemplateFiles::new(files).with_context(|| format!("TICKET_TEMPLATE {}", path.display()))
        }
    }
}

/// Repeats a step of the start that failed because the database or Redis is away or refuses writes, for `START_TIMEOUT`.
pub(crate) async fn step<T, E, F>(settings: &Settings, mut attempt: impl FnMut() -> F) -> Result<T>
where
    E: Into<anyhow::Error>,
    F: Future<Output = Result<T, E>>,
{
    let attempt = || {
        let attempted = attempt();
        async move { attempted.await.map_err(Into::into) }
    };
    patiently(settings.start_timeout, is_outage, attempt).await
}

fn is_outage(error: &anyhow::Error) -> bool {
    if let Some(JoinError::Broker(error)) = error.downcast_ref() {
        return error.is_outage();
    }
    let of_broker = error.downcast_ref().is_some_and(stampede_broker::Error::is_outage);
    of_broker || error.downcast_ref().is_some_and(stampede_store::Error::is_outage)
}

/// Repeats an attempt that failed because of an outage, until `patience` has passed.
async fn patiently<T, E, F>(
    patience: Duration,
    is_outage: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T>
where
    E: Into<anyhow::Error> + Display,
    F: Future<Output = Result<T, E>>,
{
    let give_up = Instant::now() + patience;
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) if is_outage(&error) && Instant::now() + RETRY_PAUSE < give_up => {
                tracing::warn!("{error}; trying again");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
