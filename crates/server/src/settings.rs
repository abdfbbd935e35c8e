//! Settings: from flags and environment to checked values, all mistakes reported at once.
//!
//! Adding a setting? A flag in `cli.rs`, a field and a line in [`Settings::resolve`] here, a line in
//! [`Settings::worker_env`] if workers need it, and a row in the table of README.

mod fleet;
mod log;
mod placeholders;
mod reader;
mod redis;
mod scaling;
mod secrets;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use stampede_broker::TlsFiles;

pub(crate) use self::fleet::{Fleet, Mode};
pub(crate) use self::log::{Log, LogFormat};
pub(crate) use self::reader::Mistake;
use self::reader::{Environment, Reader};
pub(crate) use self::redis::Redis;
pub(crate) use self::scaling::Scaling;
use crate::cli::{FsyncArg, SettingArgs};

/// Checked settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// What this node is, and how many workers it has.
    pub(crate) fleet: Fleet,
    pub(crate) scaling: Scaling,
    pub(crate) job_concurrency: usize,
    pub(crate) server_name: String,
    pub(crate) host: IpAddr,
    pub(crate) port: u16,
    /// Somebody has chosen the port: then also a node that only works has a health page there.
    pub(crate) port_is_given: bool,
    pub(crate) redis: Redis,
    /// What the keys of queues begin with, if not with BullMQ's default.
    pub(crate) queue_prefix: Option<String>,
    pub(crate) max_job_bytes: usize,
    pub(crate) redis_tls: TlsFiles,
    pub(crate) engine_fsync: FsyncArg,
    pub(crate) database_url: String,
    pub(crate) data_dir: PathBuf,
    pub(crate) public_path: PathBuf,
    pub(crate) file_sync: bool,
    pub(crate) ticket_template: Option<PathBuf>,
    pub(crate) max_quantity: u32,
    pub(crate) max_body_bytes: usize,
    pub(crate) start_timeout: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) log: Log,
    pub(crate) admin_key: Option<String>,
    pub(crate) ticket_key_secret: Option<String>,
}

impl Settings {
    /// Checks everything; either all is well, or every mistake is listed.
    pub(crate) fn resolve(
        args: &SettingArgs,
        environment: Environment<'_>,
    ) -> Result<Self, Vec<Mistake>> {
        // Before anything else: what a placeholder leads to would only confuse.
        let unfilled = placeholders::find(args, environment);
        if !unfilled.is_empty() {
            return Err(unfilled);
        }
        let mut reader = Reader::new(environment);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let data_dir = data_dir(args);
        let fleet = fleet::read_fleet(&mut reader, args, cores);
        let storage = reader.variable("STORAGE_TYPE");
        let nfs_path = reader.variable("NFS_PATH");
        let public_path = match (storage.as_deref(), nfs_path) {
            (Some("nfs"), Some(path)) => {
                // Made here, it would be a folder of this machine that no other node sees.
                if !Path::new(&path).is_dir() {
                    reader
                        .refuse("NFS_PATH", "is no folder on this machine: is the share mounted?");
                }
                PathBuf::from(path)
            }
            (Some("nfs"), None) => {
                let right = "needs NFS_PATH, the folder where the share is mounted";
                reader.mistake("STORAGE_TYPE", "nfs", right);
                PathBuf::new()
            }
            (None | Some("local"), _) => {
                match args.public_path.as_deref().filter(|p| !p.is_empty()) {
                    Some(path) => PathBuf::from(path),
                    None => data_dir.join("public"),
                }
            }
            (Some(_), _) => {
                reader.refuse("STORAGE_TYPE", "must be local or nfs (s3 is not supported yet)");
                PathBuf::new()
            }
        };
        reader.refuse(
            "MONGODB_URI",
            "MongoDB is not supported yet; use DATABASE_URL with sqlite: or postgres://",
        );
        let redis = redis::read_redis(&mut reader, args.redis_url.as_deref());
        if fleet.mode == Mode::Worker && reader.blames("REDIS_") {
            // That it is wrong is said already.
        } else if fleet.mode == Mode::Worker && redis == Redis::Embedded {
            let right = "a node that only works needs REDIS_URL, where others put jobs, and their \
                         DATABASE_URL";
            reader.mistake("WORKER_MODE", "worker", right);
        } else if fleet.mode == Mode::Worker
            && args.database_url.as_deref().unwrap_or_default().is_empty()
        {
            // It would take the others' jobs and find their tickets in no database of its own.
            let right = "a node that only works needs DATABASE_URL, too: the database of those who put jobs";
            reader.mistake("WORKER_MODE", "worker", right);
        }
        let default_database = format!("sqlite:{}", data_dir.join("stampede.db").display());
        let settings = Self {
            fleet,
            scaling: scaling::read_scaling(&mut reader),
            job_concurrency: reader.number(
                "JOB_CONCURRENCY",
                args.job_concurrency.as_deref(),
                16,
                1..=10_000,
            ) as usize,
            server_name: reader.read(
                "SERVER_NAME",
                args.server_name.as_deref(),
                default_name(),
                read_name,
            ),
            host: reader.read(
                "HOST",
                args.host.as_deref(),
                IpAddr::from([127, 0, 0, 1]),
                read_host,
            ),
            port: reader.number("PORT", args.port.as_deref(), 3000, 1..=65_535) as u16,
            port_is_given: args.port.as_deref().is_some_and(|port| !port.trim().is_empty()),
            redis,
            queue_prefix: reader.variable("QUEUE_PREFIX"),
            max_job_bytes: {
                let given = reader.variable("MAX_JOB_BYTES");
                reader.number("MAX_JOB_BYTES", given.as_deref(), 256 << 10, 1024..=64 << 20)
            } as usize,
            redis_tls: redis::read_tls(&mut reader),
            engine_fsync: reader.read(
                "ENGINE_FSYNC",
                args.engine_fsync.as_deref(),
                FsyncArg::default(),
                |value| {
                    FsyncArg::from_str(value, true)
                        .map_err(|_| "must be always, everysec or never".to_owned())
                },
            ),
            database_url: reader.read(
                "DATABASE_URL",
                args.database_url.as_deref(),
                default_database,
                read_database,
            ),
            public_path,
            file_sync: reader.read("FILE_SYNC", args.file_sync.as_deref(), false, |value| {
                value.parse().map_err(|_| "must be true or false".to_owned())
            }),
            ticket_template: reader.read(
                "TICKET_TEMPLATE",
                args.ticket_template.as_deref(),
                None,
                |value| match std::fs::File::open(value) {
                    Ok(_) => Ok(Some(PathBuf::from(value))),
                    Err(error) => Err(format!("must be a Typst file that can be read: {error}")),
                },
            ),
            max_quantity: reader.number(
                "MAX_QUANTITY",
                args.max_quantity.as_deref(),
                100_000,
                1..=1_000_000,
            ) as u32,
            max_body_bytes: reader.number(
                "MAX_BODY_BYTES",
                args.max_body_bytes.as_deref(),
                16 << 20,
                1024..=1 << 30,
            ) as usize,
            start_timeout: Duration::from_secs(reader.number(
                "START_TIMEOUT",
                args.start_timeout.as_deref(),
                0,
                0..=86_400,
            )),
            shutdown_timeout: Duration::from_secs(reader.number(
                "SHUTDOWN_TIMEOUT",
                args.shutdown_timeout.as_deref(),
                30,
                1..=3_600,
            )),
            log: log::read_log(&mut reader, args),
            admin_key: secrets::read_admin_key(&mut reader),
            ticket_key_secret: secrets::read_ticket_key_secret(&mut reader),
            data_dir,
        };
        if reader.mistakes.is_empty() { Ok(settings) } else { Err(reader.mistakes) }
    }

    /// Variables of the product that are set, but that this version does not use yet.
    pub(crate) fn unused_variables(environment: Environment<'_>) -> Vec<&'static str> {
        const UNUSED: [&str; 8] = [
            "WORKER_POOL_SIZE",
            "WORKER_QUEUE_SIZE",
            "S3_BUCKET",
            "S3_REGION",
            "S3_ENDPOINT",
            "CDN_URL",
            "JWT_SECRET",
            "SENTRY_DSN",
        ];
        let is_set = |name: &&str| environment(name).is_some_and(|value| !value.trim().is_empty());
        UNUSED.into_iter().filter(|name| is_set(name)).collect()
    }

    /// The settings as variables for a worker process; flags given to the server reach it this way.
    pub(crate) fn worker_env(
        &self,
        redis_url: &str,
        template: Option<&Path>,
    ) -> Vec<(String, String)> {
        let mut env: Vec<(&str, String)> = vec![
            ("REDIS_URL", redis_url.to_owned()),
            ("DATABASE_URL", self.database_url.clone()),
            ("DATA_DIR", self.data_dir.display().to_string()),
            ("PUBLIC_PATH", self.public_path.display().to_string()),
            ("STORAGE_TYPE", "local".to_owned()),
            ("FILE_SYNC", self.file_sync.to_string()),
            ("JOB_CONCURRENCY", self.job_concurrency.to_string()),
            ("SHUTDOWN_TIMEOUT", self.shutdown_timeout.as_secs().to_string()),
            ("LOG_LEVEL", self.log.level.clone()),
            (
                "LOG_FORMAT",
                if self.log.format == LogFormat::Json { "json" } else { "text" }.to_owned(),
            ),
        ];
        if let Some(template) = template {
            env.push(("TICKET_TEMPLATE", template.display().to_string()));
        }
        if let Some(secret) = &self.ticket_key_secret {
            env.push(("TICKET_KEY_SECRET", secret.clone()));
        }
        env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Where everything is kept.
pub(crate) fn data_dir(args: &SettingArgs) -> PathBuf {
    PathBuf::from(args.data_dir.as_deref().filter(|dir| !dir.is_empty()).unwrap_or("data"))
}

fn read_database(value: &str) -> Result<String, String> {
    let known = ["sqlite:", "postgres://", "postgresql://"];
    if known.iter().any(|scheme| value.starts_with(scheme) && value.len() > scheme.len()) {
        return Ok(value.to_owned());
    }
    Err("must be sqlite:PATH or postgres://user:password@host:5432/database".to_owned())
}

fn read_host(value: &str) -> Result<IpAddr, String> {
    let value = if value == "localhost" { "127.0.0.1" } else { value };
    value.parse().map_err(|_| {
        "must be an address of this machine such as 127.0.0.1 or 0.0.0.0 (all)".to_owned()
    })
}

fn read_name(value: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if value == "all" {
        return Err("means all nodes in commands; choose another name".to_owned());
    }
    if value.len() <= 63 && value.chars().all(fits) {
        return Ok(value.to_owned());
    }
    Err("must be at most 63 letters, digits, '-', '_' or '.'".to_owned())
}

fn default_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn nothing_needs_to_be_set() {
        let settings = Settings::resolve(&SettingArgs::default(), &none).unwrap();
        assert_eq!(settings.redis, Redis::Embedded);
        assert_eq!(settings.database_url, "sqlite:data/stampede.db");
        assert_eq!(settings.public_path, PathBuf::from("data/public"));
        assert_eq!(settings.port, 3000);
    }

    #[test]
    fn all_mistakes_are_reported_at_once_with_name_value_and_remedy() {
        let args = SettingArgs {
            port: Some("http".into()),
            worker_mode: Some("boss".into()),
            worker_count: Some("0".into()),
            database_url: Some("mysql://x".into()),
            redis_url: Some("localhost:6379".into()),
            engine_fsync: Some("sometimes".into()),
            server_name: Some("all".into()),
            min_workers: Some("many".into()),
            is_coordinator: Some("perhaps".into()),
            ..SettingArgs::default()
        };
        let environment = |name: &str| (name == "STORAGE_TYPE").then(|| "ftp".to_owned());
        let mistakes = Settings::resolve(&args, &environment).unwrap_err();
        let text = mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n");
        for part in [
            "PORT=http: must be a whole number from 1 to 65535",
            "WORKER_MODE=boss: must be api, worker, both or auto",
            "WORKER_COUNT=0",
            "DATABASE_URL=mysql://x",
            "REDIS_URL=localhost:6379",
            "STORAGE_TYPE=ftp",
            "ENGINE_FSYNC=sometimes: must be always, everysec or never",
            "SERVER_NAME=all: means all nodes",
            "MIN_WORKERS=many: must be a whole number from 0 to 1024",
            "IS_COORDINATOR=perhaps: must be true or false",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
        assert_eq!(mistakes.len(), 10);
    }

    #[test]
    fn a_secret_that_could_be_guessed_is_refused_and_not_shown() {
        for (secret, fine) in [
            ("short-and-secret", false),
            ("thirty-two characters and a space", false),
            ("0123456789abcdef0123456789abcdef", true),
        ] {
            let environment = |name: &str| (name == "TICKET_KEY_SECRET").then(|| secret.to_owned());
            match Settings::resolve(&SettingArgs::default(), &environment) {
                Ok(settings) => {
                    assert_eq!((settings.ticket_key_secret.as_deref(), fine), (Some(secret), true));
                    let env = settings.worker_env("redis://x", None);
                    assert!(env.contains(&("TICKET_KEY_SECRET".to_owned(), secret.to_owned())));
                }
                Err(mistakes) => {
                    let text = mistakes[0].to_string();
                    assert!(
                        !fine && text.contains("TICKET_KEY_SECRET") && !text.contains(secret),
                        "{text}"
                    );
                }
            }
        }
    }
}
