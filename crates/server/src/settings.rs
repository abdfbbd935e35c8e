//! Settings: from flags and environment to checked values, all mistakes reported at once.
//!
//! Adding a setting? A flag in `cli.rs`, a field and a line in [`Settings::resolve`] here, a line in
//! [`Settings::worker_env`] if workers need it, and a row in the table of README.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use url::Url;

use crate::cli::{FsyncArg, SettingArgs};

/// Checked settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) worker_count: usize,
    pub(crate) job_concurrency: usize,
    pub(crate) server_name: String,
    pub(crate) host: IpAddr,
    pub(crate) port: u16,
    pub(crate) redis: Redis,
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

/// What the operator asked this node to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Api,
    Worker,
    Both,
    /// Serves and works; shifting workers with the load comes with the cluster.
    Auto,
}

impl Mode {
    pub(crate) fn serves(self) -> bool {
        self != Self::Worker
    }

    pub(crate) fn works(self) -> bool {
        self != Self::Api
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Worker => "worker",
            Self::Both => "both",
            Self::Auto => "auto",
        }
    }
}

/// Which Redis to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Redis {
    /// One that somebody else runs.
    At(String),
    /// The embedded engine, with its journal in the data directory.
    Embedded,
}

/// What is logged, and how.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// A setting that cannot be used: the variable, its value, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    name: &'static str,
    value: String,
    right: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}: {}", self.name, without_secret(&self.value), self.right)
    }
}

/// Whatever stands before an `@` may be a password.
fn without_secret(value: &str) -> String {
    match value.rsplit_once('@') {
        Some((before, after)) => match before.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://***@{after}"),
            None => format!("***@{after}"),
        },
        None => value.to_owned(),
    }
}

/// Characters of a secret.
const MIN_SECRET: usize = 32;

/// Where settings without a flag come from.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

struct Reader<'a> {
    environment: Environment<'a>,
    mistakes: Vec<Mistake>,
}

impl Reader<'_> {
    /// Reads one setting; an empty one counts as not given.
    fn read<T>(
        &mut self,
        name: &'static str,
        given: Option<&str>,
        default: T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> T {
        let Some(value) = given.map(str::trim).filter(|value| !value.is_empty()) else {
            return default;
        };
        parse(value).unwrap_or_else(|right| {
            self.mistakes.push(Mistake { name, value: value.to_owned(), right });
            default
        })
    }

    /// Reads a whole number within bounds.
    fn number(
        &mut self,
        name: &'static str,
        given: Option<&str>,
        default: u64,
        bounds: std::ops::RangeInclusive<u64>,
    ) -> u64 {
        self.read(name, given, default, |value| {
            value.parse().ok().filter(|n| bounds.contains(n)).ok_or_else(|| {
                format!("must be a whole number from {} to {}", bounds.start(), bounds.end())
            })
        })
    }

    fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name).filter(|value| !value.trim().is_empty())
    }

    /// A setting of the product that this version cannot honour: better to stop than to ignore it.
    fn refuse(&mut self, name: &'static str, right: &str) {
        if let Some(value) = self.variable(name) {
            self.mistakes.push(Mistake { name, value, right: right.to_owned() });
        }
    }
}

impl Settings {
    /// Checks everything; either all is well, or every mistake is listed.
    pub(crate) fn resolve(
        args: &SettingArgs,
        environment: Environment<'_>,
    ) -> Result<Self, Vec<Mistake>> {
        let mut reader = Reader { environment, mistakes: Vec::new() };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let data_dir = data_dir(args);
        let mode = reader.read("WORKER_MODE", args.worker_mode.as_deref(), Mode::Both, |value| {
            [Mode::Api, Mode::Worker, Mode::Both, Mode::Auto]
                .into_iter()
                .find(|mode| mode.as_str() == value)
                .ok_or_else(|| "must be api, worker, both or auto".to_owned())
        });
        let storage = reader.variable("STORAGE_TYPE");
        let nfs_path = reader.variable("NFS_PATH");
        let public_path = match (storage.as_deref(), nfs_path) {
            (Some("nfs"), Some(path)) => PathBuf::from(path),
            (Some("nfs"), None) => {
                let right = "needs NFS_PATH, the folder where the share is mounted".to_owned();
                reader.mistakes.push(Mistake {
                    name: "STORAGE_TYPE",
                    value: "nfs".to_owned(),
                    right,
                });
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
        let redis = read_redis(&mut reader, args.redis_url.as_deref());
        if mode == Mode::Worker && redis == Redis::Embedded {
            let right = "a node that only works needs REDIS_URL, where others put jobs, and their \
                         DATABASE_URL"
                .to_owned();
            reader.mistakes.push(Mistake {
                name: "WORKER_MODE",
                value: "worker".to_owned(),
                right,
            });
        }
        let default_database = format!("sqlite:{}", data_dir.join("stampede.db").display());
        let settings = Self {
            mode,
            worker_count: reader.number(
                "WORKER_COUNT",
                args.worker_count.as_deref(),
                cores as u64,
                1..=1024,
            ) as usize,
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
            redis,
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
            log: read_log(&mut reader, args),
            admin_key: read_admin_key(&mut reader),
            ticket_key_secret: read_ticket_key_secret(&mut reader),
            data_dir,
        };
        if reader.mistakes.is_empty() { Ok(settings) } else { Err(reader.mistakes) }
    }

    /// Variables of the product that are set, but that this version does not use yet.
    pub(crate) fn unused_variables(environment: Environment<'_>) -> Vec<&'static str> {
        const UNUSED: [&str; 11] = [
            "MIN_WORKERS",
            "MAX_WORKERS",
            "IS_COORDINATOR",
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

impl Log {
    /// Only what a command needs that has no other settings.
    pub(crate) fn resolve(args: &SettingArgs) -> Result<Self, Vec<Mistake>> {
        let mut reader = Reader { environment: &|_| None, mistakes: Vec::new() };
        let log = read_log(&mut reader, args);
        if reader.mistakes.is_empty() { Ok(log) } else { Err(reader.mistakes) }
    }
}

fn read_log(reader: &mut Reader<'_>, args: &SettingArgs) -> Log {
    let right = "must be error, warn, info, debug, trace or off, or a list of these such as \
                 info,stampede_broker=debug";
    let level = reader.read("LOG_LEVEL", args.log_level.as_deref(), "info".to_owned(), |value| {
        let fits = value.split(',').all(is_log_directive) && EnvFilter::try_new(value).is_ok();
        if fits { Ok(value.to_owned()) } else { Err(right.to_owned()) }
    });
    let format =
        reader.read(
            "LOG_FORMAT",
            args.log_format.as_deref(),
            LogFormat::Text,
            |value| match value {
                "text" => Ok(LogFormat::Text),
                "json" => Ok(LogFormat::Json),
                _ => Err("must be text or json".to_owned()),
            },
        );
    Log { level, format }
}

fn read_redis(reader: &mut Reader<'_>, url: Option<&str>) -> Redis {
    let url = reader.read("REDIS_URL", url, None, |value| {
        let right = "must look like redis://host:6379 or redis://user:password@host:6379/0";
        match Url::parse(value).as_ref().map(Url::scheme) {
            Ok("redis" | "rediss" | "unix" | "redis+unix") => Ok(Some(value.to_owned())),
            _ => Err(right.to_owned()),
        }
    });
    if let Some(url) = url {
        return Redis::At(url);
    }
    let parts = ["REDIS_HOST", "REDIS_PORT", "REDIS_PASSWORD", "REDIS_DB"]
        .map(|name| reader.variable(name));
    if parts.iter().all(Option::is_none) {
        return Redis::Embedded;
    }
    let [host, port, password, database] = parts;
    let port = reader.number("REDIS_PORT", port.as_deref(), 6379, 1..=65_535);
    let database = reader.number("REDIS_DB", database.as_deref(), 0, 0..=1_000_000);
    let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
    let Ok(mut url) = Url::parse(&format!("redis://{host}:{port}/{database}")) else {
        let right = "must be a host name or an address".to_owned();
        reader.mistakes.push(Mistake { name: "REDIS_HOST", value: host, right });
        return Redis::Embedded;
    };
    // A password cannot be refused by a URL that has a host.
    let _ = url.set_password(password.as_deref());
    Redis::At(url.to_string())
}

fn read_admin_key(reader: &mut Reader<'_>) -> Option<String> {
    let key = reader.variable("ADMIN_KEY")?;
    // It travels in a header: anything else could never be presented.
    if key.chars().all(|c| c.is_ascii_graphic()) {
        return Some(key);
    }
    let right = "must be visible ASCII characters without spaces".to_owned();
    reader.mistakes.push(Mistake { name: "ADMIN_KEY", value: "…".to_owned(), right });
    None
}

fn read_ticket_key_secret(reader: &mut Reader<'_>) -> Option<String> {
    let secret = reader.variable("TICKET_KEY_SECRET")?;
    // It is not stretched, so it must not be guessable.
    if secret.len() >= MIN_SECRET && secret.chars().all(|c| c.is_ascii_graphic()) {
        return Some(secret);
    }
    let right = format!(
        "must be at least {MIN_SECRET} random visible ASCII characters; make it with: openssl rand -hex 32"
    );
    reader.mistakes.push(Mistake { name: "TICKET_KEY_SECRET", value: "…".to_owned(), right });
    None
}

/// A level, or a module with its level. A bare word would be taken for a module and silence the rest.
fn is_log_directive(directive: &str) -> bool {
    let level = directive.rsplit('=').next().unwrap_or_default().trim();
    ["error", "warn", "info", "debug", "trace", "off"].contains(&level)
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
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
        assert_eq!(mistakes.len(), 7);
    }

    #[test]
    fn secrets_in_wrong_values_are_not_shown() {
        for value in ["mysql://u:secret@h/db", "http://:secret@h", "u:secret@h"] {
            let shown = without_secret(value);
            assert!(
                !shown.contains("secret") && shown.ends_with(value.rsplit('@').next().unwrap()),
                "{shown}"
            );
        }
        assert_eq!(without_secret("localhost:6379"), "localhost:6379");
    }

    #[test]
    fn a_log_level_that_would_silence_everything_is_refused() {
        for (level, fine) in [
            ("verbose", false),
            ("info", true),
            ("warn,stampede_broker=debug", true),
            ("x=loud", false),
        ] {
            let args = SettingArgs { log_level: Some(level.into()), ..SettingArgs::default() };
            assert_eq!(Settings::resolve(&args, &none).is_ok(), fine, "{level}");
        }
    }

    #[test]
    fn redis_may_be_given_in_parts_and_its_password_is_encoded() {
        let environment = |name: &str| match name {
            "REDIS_HOST" => Some("cache".to_owned()),
            "REDIS_PASSWORD" => Some("p@ss/w".to_owned()),
            "REDIS_DB" => Some("2".to_owned()),
            _ => None,
        };
        let settings = Settings::resolve(&SettingArgs::default(), &environment).unwrap();
        assert_eq!(settings.redis, Redis::At("redis://:p%40ss%2Fw@cache:6379/2".into()));
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

    #[test]
    fn modes_say_what_a_node_does() {
        for (mode, serves, works) in [
            (Mode::Api, true, false),
            (Mode::Worker, false, true),
            (Mode::Both, true, true),
            (Mode::Auto, true, true),
        ] {
            assert_eq!((mode.serves(), mode.works()), (serves, works));
        }
    }
}
