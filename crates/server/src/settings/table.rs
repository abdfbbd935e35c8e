//! The table of settings. From it come the flags of the command line, `--help`, `docs/settings.md`, the
//! environment of worker processes, and the checked values (`Values`).
//!
//! Adding a setting? Add a row here, and use `settings.<field>` where the value is needed. Then write
//! the document: `cargo run -p stampede -- settings --markdown > docs/settings.md`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use stampede_api::{Origins, TrustedProxies};
use stampede_webhook::AllowedAddresses;
use url::Url;

use super::fleet::{Mode, parse_mode, parse_workers};
use super::jwt::parse_url as parse_jwks_url;
use super::log::{LogFormat, parse_format, parse_level};
use super::parse::{
    self, choice, database_url, fraction, milliseconds, node_name, path, readable_file, seconds,
    switch, text, whole,
};
use super::reader::Reader;
use super::redis::parse_url;
use super::row::{Group, Row, computed, optional, setting, settings};
use super::secrets;
use crate::cli::FsyncArg;

/// Names of the product that this version does not use yet: a start with one of them warns.
pub(crate) const PLANNED: [&str; 4] = ["S3_BUCKET", "S3_REGION", "S3_ENDPOINT", "SENTRY_DSN"];

/// Names of the product that this version refuses, because to ignore them would lose data.
pub(crate) const REFUSED: [(&str, &str); 1] =
    [("MONGODB_URI", "MongoDB is not supported yet; use DATABASE_URL with sqlite: or postgres://")];

/// Where files are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    Local,
    Nfs,
}

settings! {
    "Node and workers" {
        worker_mode: Mode = setting("WORKER_MODE", "both", parse_mode)
            .flag("worker-mode", "MODE")
            .means("What this node does: api, worker, both, or auto (both, with workers that make way for the API)")
            .details("A node with `WORKER_MODE=worker` needs `REDIS_URL` and `DATABASE_URL`.");
        worker_count: Option<usize> = optional("WORKER_COUNT", "one per core", parse_workers)
            .flag("worker-count", "N")
            .means("Worker processes: alone exactly so many, with MIN_WORKERS or MAX_WORKERS so many at start");
        min_workers: Option<usize> = optional("MIN_WORKERS", "2, with WORKER_MODE=auto 0", parse_workers)
            .flag("min-workers", "N")
            .means("Fewest workers when there is little to do");
        max_workers: Option<usize> = optional("MAX_WORKERS", "two per core", parse_workers)
            .flag("max-workers", "N")
            .means("Most workers when there is much to do");
        is_coordinator: bool = setting("IS_COORDINATOR", "true", switch)
            .flag("is-coordinator", "BOOL")
            .means("Whether this node may coordinate the cluster: true or false")
            .details("The nodes with `true` elect one of them.");
        job_concurrency: usize = setting("JOB_CONCURRENCY", "16", |text| whole(text, 1..=10_000))
            .flag("job-concurrency", "N")
            .means("Jobs a worker runs at a time")
            .for_workers();
        server_name: String = computed("SERVER_NAME", "host name and process id", default_name, node_name)
            .flag("server-name", "NAME")
            .means("Name of this node")
            .details("Every node needs a name of its own: at most 63 letters, digits, `-`, `_` or `.`.");
        worker_memory_limit_mb: u64 = setting("WORKER_MEMORY_LIMIT_MB", "1024", |text| whole(text, 0..=1 << 30))
            .means("A worker that uses more memory is drained and started again; 0: no limit");
    }
    "Address" {
        host: IpAddr = setting("HOST", "127.0.0.1", parse::host)
            .flag("host", "ADDRESS")
            .means("Address to listen on")
            .details("`0.0.0.0` listens on all addresses of the machine.");
        port: u16 = setting("PORT", "3000", |text| whole(text, 1..=65_535))
            .flag("port", "PORT")
            .means("Port to listen on")
            .details("A node with `WORKER_MODE=worker` listens only if `PORT` is set, and then answers `/health`, `/ready` and `/metrics`.");
    }
    "Metrics" {
        metrics_listen: Option<SocketAddr> = optional("METRICS_LISTEN", "none: GET /metrics is on PORT only, and wants a key", parse::socket)
            .means("Address and port that show metrics to Prometheus without a key, such as 127.0.0.1:9464")
            .details(
                "Whoever reaches it reads the names of queues and all numbers ([guide](metrics.md)). A node with `WORKER_MODE=worker` \
                 and without `PORT` shows metrics nowhere else.",
            );
    }
    "Clients" {
        trusted_proxies: TrustedProxies = computed("TRUSTED_PROXIES", "none", TrustedProxies::default, TrustedProxies::parse)
            .means("Proxies whose X-Forwarded-For or Forwarded is believed: addresses and networks, separated by commas")
            .details(
                "Behind a proxy that is not listed, all clients count as one address. List exactly the proxies that reach this \
                 server: who is listed can pretend to be any address ([guide](operating.md#behind-a-proxy)).",
            );
        cors_origins: Origins = computed("CORS_ORIGINS", "none", Origins::default, Origins::parse)
            .means("Origins whose pages in browsers may use the API: https://app.example, separated by commas, or *")
            .details("Pages of the server itself need no entry.");
        rate_limit_key: u64 = setting("RATE_LIMIT_KEY", "120000", |text| whole(text, 0..=1_000_000_000))
            .means("Requests a minute with one key, over all nodes; 0: no limit")
            .details("The nodes of a cluster must have the same limits ([guide](http.md#rate-limits)).");
        rate_limit_address: u64 = setting("RATE_LIMIT_ADDRESS", "300000", |text| whole(text, 0..=1_000_000_000))
            .means("Requests a minute from one address, or one IPv6 network of 64 bits, over all nodes; 0: no limit")
            .details("Behind a proxy that TRUSTED_PROXIES does not list, all clients share it.");
        rate_limit_failures: u64 = setting("RATE_LIMIT_FAILURES", "100", |text| whole(text, 0..=1_000_000_000))
            .means("Wrong keys and tokens a minute from one address, over all nodes; 0: no limit")
            .details("Valid keys are let in all the same.");
    }
    "Links" {
        public_url: Option<Url> = optional("PUBLIC_URL", "none: links are paths", parse_base_url)
            .flag("public-url", "URL")
            .means("Address of the server for people outside, at the beginning of links that are handed out")
            .details("Such as `https://tickets.example.org`. A path in it is kept. Links to unsubscribe need it.")
            .for_workers();
        cdn_url: Option<Url> = optional("CDN_URL", "PUBLIC_URL", parse_base_url)
            .flag("cdn-url", "URL")
            .means("Address of a CDN before the server, at the beginning of links instead of PUBLIC_URL");
    }
    "Redis and queues" {
        redis_url: Option<String> = optional("REDIS_URL", "the embedded engine, in DATA_DIR/engine", parse_url)
            .flag("redis-url", "URL")
            .means("Redis or Valkey: redis://, rediss://, redis-sentinel://, redis-cluster://; also REDIS_HOST, REDIS_PORT, REDIS_PASSWORD, REDIS_DB")
            .details(
                "The forms: `redis://user:password@host:port/db`, `rediss://…` for TLS, `unix:///path`, \
                 `redis-sentinel://host:port,host:port/name-of-the-master/db`, `redis-cluster://host:port,host:port`; \
                 the last two with `rediss-` for TLS. Redis must have `maxmemory-policy noeviction`.",
            )
            .for_workers();
        redis_host: Option<String> = optional("REDIS_HOST", "127.0.0.1, if another REDIS_ part is set", text)
            .means("Host of Redis, if REDIS_URL is not set")
            .ignored_beside("REDIS_URL");
        redis_port: u16 = setting("REDIS_PORT", "6379", |text| whole(text, 1..=65_535))
            .means("Port of Redis, if REDIS_URL is not set")
            // Kubernetes sets it to a URL for every service called redis.
            .ignored_beside("REDIS_URL");
        redis_password: Option<String> = optional("REDIS_PASSWORD", "none", text)
            .means("Password of Redis, if REDIS_URL is not set")
            .ignored_beside("REDIS_URL")
            .secret();
        redis_db: u32 = setting("REDIS_DB", "0", |text| whole(text, 0..=1_000_000))
            .means("Number of the Redis database, if REDIS_URL is not set")
            .ignored_beside("REDIS_URL");
        redis_tls_ca: Option<PathBuf> = optional("REDIS_TLS_CA", "the authorities that Mozilla trusts", path)
            .means("PEM file with the authority that signed the certificate of Redis")
            .for_workers();
        redis_tls_cert: Option<PathBuf> = optional("REDIS_TLS_CERT", "none", path)
            .means("PEM file with the certificate that Stampede shows to Redis; needs REDIS_TLS_KEY")
            .for_workers();
        redis_tls_key: Option<PathBuf> = optional("REDIS_TLS_KEY", "none", path)
            .means("PEM file with the private key of REDIS_TLS_CERT")
            .for_workers();
        queue_prefix: Option<String> = optional("QUEUE_PREFIX", "bull, in a Redis Cluster {bull}", text)
            .means("Prefix of the keys of all queues")
            .details(
                "In a Redis Cluster the prefix needs braces. BullMQ clients in other languages must be given the same prefix.",
            )
            .for_workers();
        max_job_bytes: usize = setting("MAX_JOB_BYTES", "262144", |text| whole(text, 1024..=64 << 20))
            .flag("max-job-bytes", "BYTES")
            .means("Largest payload of a job, in bytes")
            .details("A larger job is not added; a larger job that other software added is failed.")
            .for_workers();
        engine_fsync: FsyncArg = setting("ENGINE_FSYNC", "everysec", |text| {
            choice(text, &[("always", FsyncArg::Always), ("everysec", FsyncArg::Everysec), ("never", FsyncArg::Never)])
        })
            .flag("engine-fsync", "POLICY")
            .means("When the embedded engine syncs to disk: always, everysec or never")
            .details("With `everysec` a power cut loses at most one second.");
        engine_host: IpAddr = setting("ENGINE_HOST", "127.0.0.1", parse::host)
            .flag("engine-host", "ADDRESS")
            .means("Address that the embedded engine listens on")
            .details("An address that other machines reach needs `ENGINE_PASSWORD`.")
            .ignored_beside("REDIS_URL");
        engine_port: u16 = setting("ENGINE_PORT", "0", |text| whole(text, 0..=65_535))
            .flag("engine-port", "PORT")
            .means("Port of the embedded engine; 0: a free one at the first start, and the same at later ones")
            .details(
                "The port is in `DATA_DIR/engine.url`. If it is in use, the start fails; the engine never moves by itself.",
            )
            // Kubernetes sets it to a URL for every service called engine.
            .ignored_beside("REDIS_URL");
        engine_password: Option<String> = optional("ENGINE_PASSWORD", "made at the first start, in DATA_DIR/engine.url", text)
            .means("Password of the embedded engine")
            .details("If the variable is removed later, the password stays; it is in `DATA_DIR/engine.url`.")
            .ignored_beside("REDIS_URL")
            .secret();
    }
    "Data and files" {
        data_dir: PathBuf = computed("DATA_DIR", "./data", || PathBuf::from("data"), path)
            .flag("data-dir", "FOLDER")
            .means("Where everything is kept")
            .for_workers();
        given_database_url: Option<String> = optional("DATABASE_URL", "SQLite in DATA_DIR", database_url)
            .flag("database-url", "URL")
            .means("Database: sqlite:PATH or postgres://…")
            .for_workers();
        storage_type: Storage = setting("STORAGE_TYPE", "local", parse_storage)
            .means("Where PDFs are kept: local (PUBLIC_PATH) or nfs (NFS_PATH)")
            .for_workers();
        given_public_path: Option<PathBuf> = optional("PUBLIC_PATH", "DATA_DIR/public", path)
            .flag("public-path", "FOLDER")
            .means("Where PDFs are kept")
            .details("The file of a ticket is `tickets/ticket-{id}.pdf` in this folder. Several nodes need one shared folder.")
            .for_workers();
        nfs_path: Option<PathBuf> = optional("NFS_PATH", "none", path)
            .means("Folder where the share is mounted, with STORAGE_TYPE=nfs");
        file_sync: bool = setting("FILE_SYNC", "false", switch)
            .flag("file-sync", "BOOL")
            .means("Sync every PDF to disk before it counts as made: true or false")
            .details("Not needed for safety: a lost PDF is made again, byte for byte.")
            .for_workers();
    }
    "Tickets" {
        ticket_template: Option<PathBuf> = optional("TICKET_TEMPLATE", "the A4 design", readable_file)
            .flag("ticket-template", "FILE")
            .means("A Typst file to use instead of the built-in ticket")
            .details(
                "For events without a template of their own. Either made of fields ([guide](templates.md)), or a file that \
                 reads `ticket.json` and `qr.svg` and is typeset for every ticket.",
            )
            .for_workers();
        ticket_key_secret: Option<String> = optional(
            "TICKET_KEY_SECRET", "with SQLite, made in DATA_DIR/ticket-master.key", secrets::ticket_key_secret,
        )
            .means("At least 32 random characters that encrypt the private ticket keys in the database")
            .details(
                "With PostgreSQL it must be set, to the same value on all nodes. Make it with `openssl rand -hex 32`.",
            )
            .secret()
            .for_workers();
        max_quantity: u32 = setting("MAX_QUANTITY", "100000", |text| whole(text, 1..=1_000_000))
            .flag("max-quantity", "N")
            .means("Most tickets in one order");
        max_body_bytes: usize = setting("MAX_BODY_BYTES", "16777216", |text| whole(text, 1024..=1 << 30))
            .flag("max-body-bytes", "BYTES")
            .means("Largest request body, in bytes")
            .details(
                "Bodies that are being read may take 12 times as much memory together, and 1,024 bytes for each ticket of \
                 MAX_QUANTITY; one user may take half of that.",
            );
        max_upload_bytes: usize = setting("MAX_UPLOAD_BYTES", "134217728", |text| whole(text, 1024..=1 << 40))
            .flag("max-upload-bytes", "BYTES")
            .means("Largest file of guests that is uploaded as an order, in bytes")
            .details(
                "A file is kept in DATA_DIR/uploads while it is read, without a name; the guests of it take as much again. \
                 At most 16 are uploaded at a time, 2 by one user.",
            );
    }
    "Access" {
        admin_key: Option<String> = optional("ADMIN_KEY", "made and shown at the first start", secrets::admin_key)
            .means("The key of the administrator")
            .details("If the variable is removed later, that key is refused.")
            .secret();
        jwt_secret: Option<String> = optional("JWT_SECRET", "none", secrets::jwt_secret)
            .means("Secret of tokens (JWT) that an identity provider signs with HS256, at least 32 characters")
            .details("Tokens are accepted if one of `JWT_SECRET`, `JWT_KEYS` and `JWT_JWKS_URL` is set ([guide](http.md#tokens-of-an-identity-provider)).")
            .secret();
        jwt_keys: Option<PathBuf> = optional("JWT_KEYS", "none", path)
            .means("File with public keys for RS256, ES256 or EdDSA: PEM or JWKS")
            .details("It is read at the start.");
        jwt_jwks_url: Option<Url> = optional("JWT_JWKS_URL", "none", parse_jwks_url)
            .means("Address where the identity provider publishes its public keys (JWKS)")
            .details("Authorities of TLS are those of the system; `SSL_CERT_FILE` names others.");
        jwt_audience: Option<String> = optional("JWT_AUDIENCE", "none", text)
            .means("Audience (aud) that tokens must be for; required if tokens are accepted");
        jwt_issuer: Option<String> = optional("JWT_ISSUER", "any", text)
            .means("Issuer (iss) that tokens must be of");
        jwt_role_claim: String = setting("JWT_ROLE_CLAIM", "role", text)
            .means("Claim of tokens that names the role: admin, organiser, scanner or viewer");
        audit_days: u32 = setting("AUDIT_DAYS", "400", |text| whole(text, 0..=100_000))
            .means("Days for which entries of the audit log are kept; 0: for ever");
    }
    "Webhooks" {
        webhook_allow_private: AllowedAddresses = computed(
            "WEBHOOK_ALLOW_PRIVATE", "none", AllowedAddresses::default, |text| text.parse(),
        )
            .means("Addresses and networks that are not public and that webhooks and campaigns may reach all the same; * means all")
            .details(
                "Such as `10.1.2.3,192.168.0.0/16`. Organisers choose the URLs of webhooks, and marketers those of accounts: \
                 what is named here answers to them.",
            )
            .for_workers();
        webhook_log_days: u32 = setting("WEBHOOK_LOG_DAYS", "30", |text| whole(text, 1..=3_650))
            .means("Days that the log of webhook deliveries is kept");
    }
    "Campaigns" {
        telegram_api_url: Url = setting("TELEGRAM_API_URL", "https://api.telegram.org", parse_base_url)
            .means("Telegram's Bot API, for accounts of the channel telegram")
            .details(
                "Such as a Bot API server of your own. The operator chooses it, so it may be an address that is not public, also \
                 without WEBHOOK_ALLOW_PRIVATE.",
            )
            .for_workers();
        whatsapp_api_url: Url = setting("WHATSAPP_API_URL", "https://graph.facebook.com", parse_base_url)
            .means("WhatsApp's Cloud API, for accounts of the channel whatsapp")
            .details("It may be an address that is not public, as that of TELEGRAM_API_URL.")
            .for_workers();
    }
    "Stickers" {
        worker_pool_size: usize = computed("WORKER_POOL_SIZE", "one per core", cores, |text| whole(text, 0..=1_024))
            .flag("worker-pool-size", "N")
            .means("Threads that draw stickers in a node that serves HTTP; 0: none, its stickers are jobs for workers")
            .details("A worker process has one such thread, whatever this says. No thread is started before the first sticker in a worker.");
        worker_queue_size: usize = setting("WORKER_QUEUE_SIZE", "100", |text| whole(text, 0..=1_000_000))
            .flag("worker-queue-size", "N")
            .means("Stickers that may wait while all threads are busy; more are refused with 503. 0: only if a thread is free");
    }
    "Scaling" {
        scale_up_pressure: f64 = setting("SCALE_UP_PRESSURE", "10", |text| fraction(text, 1e6))
            .means("Add workers when waiting ÷ (running + 1) jobs exceeds this, and the load is below SCALE_UP_LOAD");
        scale_up_waiting: u64 = setting("SCALE_UP_WAITING", "100", |text| whole(text, 0..=1_000_000_000))
            .means("Add workers when more jobs than this wait, and the load is below SCALE_UP_LOAD");
        scale_up_load: f64 = setting("SCALE_UP_LOAD", "0.8", |text| fraction(text, 1e6))
            .means("Add no workers when the load of the machine ÷ its cores exceeds this");
        scale_up_cooldown: Duration = setting("SCALE_UP_COOLDOWN", "30", |text| seconds(text, 0..=86_400))
            .means("Seconds after workers were added before more are added");
        scale_down_busy: f64 = setting("SCALE_DOWN_BUSY", "0.5", |text| fraction(text, 1.0))
            .means("Remove a worker when nothing waits and busy ÷ all slots is below this");
        scale_down_cooldown: Duration = setting("SCALE_DOWN_COOLDOWN", "60", |text| seconds(text, 0..=86_400))
            .means("Seconds after a change of the number of workers before one is removed");
        scale_interval: Duration = setting("SCALE_INTERVAL_MS", "2000", |text| milliseconds(text, 100..=3_600_000))
            .means("Milliseconds between two decisions about the number of workers");
        api_latency_limit: Duration = setting("API_LATENCY_LIMIT_MS", "300", |text| milliseconds(text, 1..=600_000))
            .means("With WORKER_MODE=auto, stop workers when one of ten requests takes longer than this");
        stuck_queue_after: Duration = setting("STUCK_QUEUE_AFTER", "60", |text| seconds(text, 0..=86_400))
            .means("Seconds without progress after which a queue with waiting jobs raises an alert");
    }
    "Start, stop and logs" {
        start_timeout: Duration = setting("START_TIMEOUT", "0", |text| seconds(text, 0..=86_400))
            .flag("start-timeout", "SECONDS")
            .means("How long to keep trying to reach database and Redis at start, in seconds")
            .for_workers();
        shutdown_timeout: Duration = setting("SHUTDOWN_TIMEOUT", "30", |text| seconds(text, 1..=3_600))
            .flag("shutdown-timeout", "SECONDS")
            .means("How long running jobs may take to end at shutdown, in seconds")
            .details("Jobs that have not ended by then are handed back to the queue.")
            .for_workers();
        log_level: String = setting("LOG_LEVEL", "info", parse_level)
            .flag("log-level", "LEVEL")
            .means("What is logged: error, warn, info, debug or trace, or a filter such as info,stampede_broker=debug")
            .for_workers();
        log_format: LogFormat = setting("LOG_FORMAT", "text", parse_format)
            .flag("log-format", "FORMAT")
            .means("Format of log lines: text or json")
            .details("Logs are written to standard error.")
            .for_workers();
    }
}

fn parse_storage(text: &str) -> Result<Storage, String> {
    match text {
        "local" => Ok(Storage::Local),
        "nfs" => Ok(Storage::Nfs),
        _ => Err("must be local or nfs (s3 is not supported yet)".to_owned()),
    }
}

/// The address before the path of a link.
fn parse_base_url(text: &str) -> Result<Url, String> {
    let right = "must be an address such as https://tickets.example.org, without ? and #";
    let url: Url = text.parse().map_err(|_| right.to_owned())?;
    let is_base = ["http", "https"].contains(&url.scheme())
        && url.has_host()
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if is_base { Ok(url) } else { Err(right.to_owned()) }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn default_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_complete_and_its_names_are_its_own() {
        let mut names = BTreeSet::new();
        for setting in groups().iter().flat_map(|group| &group.settings) {
            assert!(names.insert(setting.name), "{} is there twice", setting.name);
            assert!(!setting.meaning.is_empty() && !setting.default.is_empty(), "{}", setting.name);
            assert!(!setting.meaning.ends_with('.'), "{}: no full stop", setting.name);
            if let Some(flag) = setting.flag {
                assert_eq!(flag.long, setting.name.to_lowercase().replace('_', "-"));
            }
        }
        for name in PLANNED.into_iter().chain(REFUSED.map(|(name, _)| name)) {
            assert!(!names.contains(name), "{name} is used and planned");
        }
    }
}
