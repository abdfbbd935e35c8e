//! `stampede serve`: API, worker processes, their place in the cluster and the reconciler, until told
//! to stop.

mod banner;
mod cluster;
mod metrics;

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use stampede_api::{
    AnswerShares, App, AppParts, Budget, Front, Limits, LinkBase, Live, MetricsPage, MetricsParts,
    OrdersAtOnce, RateLimitConfig, RateLimits, StorageCheck, Turns, Uploads, Vitals,
};
use stampede_audit::{Audit, Retention};
use stampede_broker::{Broker, JobList};
use stampede_campaign::Campaigns;
use stampede_checkin::CheckIn;
use stampede_cluster::{LatencyMeter, Membership, Node, Supervisor, all_ended};
use stampede_feed::{Hub, Relay, RelayConfig};
use stampede_identity::{Identity, Jwt};
use stampede_model::feed::{Change, NodeData};
use stampede_model::{MAIN_FILE, TemplateFiles};
use stampede_press::{Press, Share};
use stampede_store::Store;
use stampede_studio::Studio;
use stampede_ticketing::{Limits as TicketLimits, Parts, Reconciler, Spool, Ticketing};
use stampede_webhook::{Dispatcher, Webhooks};
use stampede_worker::Environment;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::metrics::Counted;
use crate::admin_key::ensure_admin_key;
use crate::commands::signals::stop_on_signal;
use crate::local_engine::{self, LocalEngine};
use crate::settings::{Redis, Settings, is_in_the_clear};
use crate::{compiler, connect, logging, sample, ticket_secret};

/// Everything that is opened before the server starts its parts.
struct Ground {
    listener: Option<TcpListener>,
    press: Press,
    template_snapshot: Option<PathBuf>,
    counted: Counted,
    store: Store,
    engine: Option<LocalEngine>,
    redis_url: String,
    broker: Broker,
    ticketing: Ticketing,
    webhooks: Webhooks,
    campaigns: Campaigns,
    studio: Studio,
    jobs: JobList,
    membership: Membership,
}

pub(crate) async fn run(settings: Settings) -> Result<()> {
    logging::start(&settings.log);
    let stop = CancellationToken::new();
    stop_on_signal(stop.clone())?;
    for name in Settings::unused_variables(&|name| std::env::var(name).ok()) {
        tracing::warn!("{name} is set, but this version does not use it yet");
    }
    let ground = tokio::select! {
        ground = prepare(&settings, &stop) => ground?,
        () = stop.cancelled() => return Ok(()),
    };
    let store = ground.store.clone();

    let mut parts = JoinSet::new();
    let identity = identity(&settings, &store);
    parts.spawn(identity.clone().run(stop.clone()));
    let (mut supervisor, drained) = (None, CancellationToken::new());
    if settings.fleet.roles.worker {
        let template = ground.template_snapshot.as_deref();
        let config = cluster::supervisor_config(&settings, &ground, template)?;
        let supervising = Supervisor::new(config, ground.broker.clone());
        supervisor = Some(supervising.handle());
        let running = supervising.run(stop.clone());
        let drained = drained.clone().drop_guard();
        parts.spawn(async move {
            running.await;
            drop(drained);
        });
    }
    let latency = LatencyMeter::default();
    let drained = if supervisor.is_some() { drained } else { stop.clone() };
    let node = Node::new(ground.membership, supervisor, latency.clone());
    let handle = node.handle();
    let storage = StorageCheck::default();
    let page = MetricsPage::new(MetricsParts {
        registry: ground.counted.registry,
        metrics: ground.counted.metrics,
        store: store.clone(),
        storage: storage.clone(),
        ticketing: ground.ticketing.clone(),
        broker: ground.broker.clone(),
        node: handle.clone(),
        queues: cluster::queues(&ground.jobs),
    });
    if let Some(listener) = ground.counted.listener {
        parts.spawn(stampede_api::run_metrics(listener, page.clone(), stop.clone()));
    }
    parts.spawn(node.run(stop.clone(), drained));
    parts.spawn(Reconciler::new(ground.ticketing.clone()).run(stop.clone()));
    let relay = RelayConfig { node: settings.server_name.clone() };
    let relay = Relay::new(&relay, store.clone(), ground.broker.clone());
    // Rows that are written later wait for another node, or for the next start.
    parts.spawn(relay.run(stop.clone()));
    let dispatcher = Dispatcher::new(ground.webhooks.clone(), settings.webhook_log_days);
    parts.spawn(dispatcher.run(stop.clone()));
    let campaigns = ground.campaigns.clone();
    parts.spawn(stampede_campaign::Reconciler::new(campaigns.clone()).run(stop.clone()));
    let (ticketing, broker) = (ground.ticketing.clone(), ground.broker.clone());
    let me = || NodeData { node: settings.server_name.clone() };
    parts.spawn(told(broker.clone(), Change::NodeStarted(me())));
    let rates = rate_limits(&settings, &ground.broker);
    if !settings.fleet.roles.api {
        let health = ground.listener.as_ref().map(TcpListener::local_addr).transpose()?;
        if let Some(listener) = ground.listener {
            let vitals = Vitals {
                identity,
                rates,
                store: store.clone(),
                ticketing: ticketing.clone(),
                storage,
                broker: ground.broker,
                node: handle,
                metrics: page,
            };
            parts.spawn(stampede_api::run_health(listener, vitals, stop.clone()));
        }
        parts.spawn(stop_rooms(ticketing, campaigns, stop.clone()));
        banner::greet_worker(&settings, health);
    } else if let Some(listener) = ground.listener {
        // Now that nothing can fail any more: a key that is shown once must not be lost on the way.
        let admin_key = connect::step(&settings, || ensure_admin_key(&settings, &store)).await?;
        let address = listener.local_addr()?;
        let checkin = CheckIn::start(store.clone());
        let audit = Audit::new(store.clone());
        let retention = Retention::days(settings.audit_days);
        parts.spawn(audit.clone().run(retention, stop.clone()));
        let hub = Hub::new(&ground.broker, stop.clone());
        parts.spawn(hub.clone().run());
        let live = Live::new(hub, settings.cors_origins.clone());
        let studio = ground.studio;
        parts.spawn(warm_up(studio.clone()));
        parts.spawn(studio.clone().run_ahead(stop.clone()));
        let patience = settings.shutdown_timeout;
        let app = App::new(AppParts {
            live: live.clone(),
            ticketing: ground.ticketing,
            checkin: checkin.clone(),
            audit: audit.clone(),
            identity,
            webhooks: ground.webhooks,
            campaigns: ground.campaigns,
            studio: studio.clone(),
            store: store.clone(),
            storage,
            broker: ground.broker,
            press: ground.press,
            turns: Turns::default(),
            jobs: ground.jobs,
            rates,
            limits: Limits { body_bytes: settings.max_body_bytes },
            answers: AnswerShares::default(),
            bodies: Budget::new(settings.max_body_bytes, settings.max_quantity as usize),
            links: LinkBase::new(settings.cdn_url.as_ref(), settings.public_url.as_ref()),
            hooks: LinkBase::new(None, settings.public_url.as_ref()),
            uploads: Uploads::new(
                Spool::new(settings.data_dir.join("uploads")),
                settings.max_upload_bytes,
            ),
            orders: OrdersAtOnce::new(settings.max_quantity as usize),
            node: handle,
            latency,
            metrics: page,
        });
        parts.spawn(stampede_api::forget_old_requests(store.clone(), stop.clone()));
        let front = Front {
            proxies: settings.trusted_proxies.clone(),
            origins: settings.cors_origins.clone(),
        };
        let serving = stampede_api::run(listener, front, app, stampede_web::router(), stop.clone());
        parts.spawn(async move {
            serving.await;
            // Afterwards: the last requests may have started tasks.
            campaigns.stop().await;
            ticketing.stop().await;
            checkin.stop().await;
            live.stop().await;
            studio.stop(patience).await;
        });
        banner::greet(&settings, admin_key, address);
    }

    let mut ending = std::pin::pin!(all_ended(&mut parts, &stop));
    let early = tokio::select! {
        ended = &mut ending => Some(ended),
        () = stop.cancelled() => None,
    };
    tracing::info!("stopping: no new work, running jobs may end");
    let ended = match early {
        Some(ended) => Ok(ended),
        None => tokio::time::timeout(settings.shutdown_timeout, ending).await,
    };
    if ended.is_err() {
        tracing::warn!("not everything ended in time");
    }
    told(broker, Change::NodeEnded(me())).await;
    store.close().await;
    // Last, for everything else talks to it until its end.
    if let Some(engine) = ground.engine {
        engine.stop().await?;
    }
    tracing::info!("stopped");
    ended.unwrap_or(Ok(())).context("a part of the server failed; the log above says where")
}

/// Tells live readers of this node. Best effort: a Redis that is away delays nothing.
async fn told(broker: Broker, change: Change) {
    let telling = stampede_feed::publish(&broker, change);
    let _ = tokio::time::timeout(Duration::from_secs(1), telling).await;
}

/// Loads the fonts of stickers, so that the first request need not. A failure is told again by every request.
async fn warm_up(studio: Studio) {
    if let Err(error) = studio.warm_up().await {
        tracing::error!(%error, "stickers cannot be drawn");
    }
}

/// Checks and opens everything. The cheapest checks come first, so that a mistake shows before
/// anything was started.
async fn prepare(settings: &Settings, stop: &CancellationToken) -> Result<Ground> {
    let listener = match settings.fleet.roles.api || settings.port_is_given {
        true => Some(listen(settings).await?),
        false => None,
    };
    let compiler = compiler::start()?;
    let template = connect::default_template(settings)?;
    // The designs that ship are known to work.
    if settings.ticket_template.is_some() {
        sample::try_out(&*compiler, &template).await?;
    }
    // Before others make it: a folder that is gone after a power cut takes the journal along.
    if settings.redis == Redis::Embedded {
        local_engine::make_data_dir(&settings.data_dir)?;
    }
    let files = connect::files(settings).await?;
    let counted = Counted::prepare(settings).await?;
    let metrics = &counted.metrics;
    let store = connect::counted_store(settings, metrics).await?;
    connect::step(settings, || store.migrate()).await?;
    let store = connect::step(settings, || ticket_secret::prepare(settings, store.clone())).await?;
    let (engine, redis_url) = match &settings.redis {
        Redis::At(url) => (None, url.clone()),
        Redis::Embedded => {
            let (folder, fsync) = (&settings.data_dir, settings.engine_fsync);
            let engine = LocalEngine::start(folder, &settings.engine, fsync, stop.clone()).await?;
            let url = engine.url().to_owned();
            (Some(engine), url)
        }
    };
    let broker = connect::broker(settings, &redis_url).await?;
    let template_snapshot = snapshot(settings, &template)?;
    // People wait for previews, so no organiser may have both children of the compiler.
    let share = Share { places: 2, per_owner: 1 };
    let press = Press::new(store.clone(), compiler, template).sharing(share);
    let parts = Parts {
        worker: settings.server_name.clone(),
        store: store.clone(),
        broker: broker.clone(),
        files: files.clone(),
        press: press.clone(),
        limits: TicketLimits { quantity: settings.max_quantity, ..TicketLimits::default() },
        metrics: metrics.clone(),
    };
    let ticketing = connect::step(settings, || Ticketing::start(parts.clone())).await?;
    let hooks = connect::webhook_parts(settings, &store, &broker, settings.job_concurrency);
    let webhooks = connect::step(settings, || Webhooks::open(hooks.clone())).await?;
    let messages = connect::campaign_parts(settings, &store, &broker, &ticketing, metrics);
    let campaigns = connect::step(settings, || Campaigns::open(messages.clone())).await?;
    let limits =
        stampede_studio::Limits::of_node(settings.worker_pool_size, settings.worker_queue_size);
    let drawing = connect::studio_parts(&broker, &files, limits);
    let studio = connect::step(settings, || Studio::open(drawing.clone())).await?;
    let environment = Environment {
        ticketing: ticketing.clone(),
        webhooks: webhooks.clone(),
        campaigns: campaigns.clone(),
        studio: studio.clone(),
    };
    let jobs = stampede_worker::jobs(&environment);
    let config = cluster::node_config(settings, &jobs);
    let claim = || Membership::claim(config.clone(), broker.clone());
    let membership = connect::step(settings, claim).await?;
    Ok(Ground {
        listener,
        press,
        template_snapshot,
        counted,
        store,
        engine,
        redis_url,
        broker,
        ticketing,
        webhooks,
        campaigns,
        studio,
        jobs,
        membership,
    })
}

/// Who is asking: keys of the database, and tokens if the settings say how they are checked.
fn identity(settings: &Settings, store: &Store) -> Identity {
    let in_the_clear = settings.jwt_jwks_url.as_ref().is_some_and(is_in_the_clear);
    if in_the_clear {
        tracing::warn!(
            "JWT_JWKS_URL has no TLS: who can change its answer on the way can sign in as anybody"
        );
    }
    Identity::new(store.clone(), settings.jwt.clone().map(Jwt::new))
}

fn rate_limits(settings: &Settings, broker: &Broker) -> RateLimits {
    let config = RateLimitConfig {
        key: settings.rate_limit_key,
        address: settings.rate_limit_address,
        failures: settings.rate_limit_failures,
    };
    RateLimits::new(broker, config)
}

/// On a node that only works, the rooms reconcile and have no requests to wait for.
async fn stop_rooms(ticketing: Ticketing, campaigns: Campaigns, stop: CancellationToken) {
    stop.cancelled().await;
    campaigns.stop().await;
    ticketing.stop().await;
}

/// Workers get a copy of the operator's template: a file that is edited while the server runs would
/// otherwise reach a worker that is restarted, but not the others, and not the API.
fn snapshot(settings: &Settings, template: &TemplateFiles) -> Result<Option<PathBuf>> {
    let Some(original) = &settings.ticket_template else { return Ok(None) };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.data_dir)?;
    let folder = std::fs::canonicalize(&settings.data_dir)?;
    let copy = folder.join(format!("ticket-template-{}.typ", &template.hash()[..16]));
    std::fs::write(&copy, template.get(MAIN_FILE).unwrap_or_default())
        .with_context(|| format!("cannot copy {} to {}", original.display(), copy.display()))?;
    Ok(Some(copy))
}

async fn listen(settings: &Settings) -> Result<TcpListener> {
    let address = SocketAddr::new(settings.host, settings.port);
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "port {} on {} is in use by another program. Stop it, or set PORT to another number{}",
            settings.port,
            settings.host,
            match settings.fleet.roles.api {
                true => "",
                false => "; a node that only works needs none, but for its health page",
            }
        ),
        _ => anyhow::anyhow!("cannot listen on {address}: {error}. Check HOST and PORT"),
    })
}
