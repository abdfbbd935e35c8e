//! Settings: from flags and environment to checked values, with all mistakes reported at once.
//!
//! `settings/table.rs` is the table: one row a setting. This file reads it, and puts together the values
//! that depend on several settings.
//!
//! Adding a setting? See the head of `settings/table.rs`.

mod document;
mod engine;
mod files;
mod fleet;
mod given;
mod jwt;
mod log;
mod parse;
mod placeholders;
mod reader;
mod redis;
mod row;
mod scaling;
mod secrets;
mod table;
mod workers;

use std::ops::Deref;
use std::path::PathBuf;

use stampede_broker::TlsFiles;
use stampede_identity::JwtConfig;

pub(crate) use self::document::{markdown, plain, variables_only};
pub(crate) use self::engine::EngineAddress;
pub(crate) use self::fleet::{Fleet, Mode};
use self::given::Texts;
pub(crate) use self::given::{Environment, Given, HEADING};
pub(crate) use self::jwt::is_in_the_clear;
pub(crate) use self::log::{Log, LogFormat};
pub(crate) use self::reader::Mistake;
use self::reader::Reader;
pub(crate) use self::redis::Redis;
pub(crate) use self::scaling::Scaling;
use self::table::{PLANNED, REFUSED, Values, rows};

/// Checked settings. The fields are values that depend on several settings; the settings themselves are
/// fields of the table's `Values`, such as `settings.port`.
#[derive(Clone)]
pub(crate) struct Settings {
    /// The roles of this node and its numbers of workers.
    pub(crate) fleet: Fleet,
    pub(crate) scaling: Scaling,
    /// Whether the operator has set `PORT`: then a node without API has a health page there.
    pub(crate) port_is_given: bool,
    pub(crate) redis: Redis,
    /// Where the embedded engine listens.
    pub(crate) engine: EngineAddress,
    pub(crate) redis_tls: TlsFiles,
    pub(crate) database_url: String,
    pub(crate) public_path: PathBuf,
    pub(crate) log: Log,
    /// How tokens of an identity provider are checked; `None`: they are not accepted.
    pub(crate) jwt: Option<JwtConfig>,
    values: Values,
    texts: Texts,
}

impl Deref for Settings {
    type Target = Values;

    fn deref(&self) -> &Values {
        &self.values
    }
}

impl std::fmt::Debug for Settings {
    /// Names of the settings that were given: values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("given", &self.texts).finish_non_exhaustive()
    }
}

impl Settings {
    /// Checks all settings; the error lists every mistake.
    pub(crate) fn resolve(
        given: &Given,
        environment: Environment<'_>,
    ) -> Result<Self, Vec<Mistake>> {
        let texts = given.texts(environment);
        // A placeholder would lead to mistakes that only confuse, so placeholders are reported alone.
        let unfilled = placeholders::find(&texts);
        if !unfilled.is_empty() {
            return Err(unfilled);
        }
        let mut reader = Reader::new(&texts);
        let Some(values) = Values::read(&mut reader) else { return Err(reader.mistakes) };
        for (name, right) in REFUSED {
            if let Some(value) = environment(name).filter(|value| !value.trim().is_empty()) {
                reader.mistake(name, value, right);
            }
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let default_database =
            || format!("sqlite:{}", values.data_dir.join("stampede.db").display());
        let redis = redis::read_redis(&mut reader, &values);
        let settings = Self {
            fleet: fleet::read_fleet(&mut reader, &values, cores),
            scaling: Scaling::of(&values),
            port_is_given: reader.is_given("PORT"),
            engine: engine::read_engine(&mut reader, &values, &redis),
            redis,
            redis_tls: redis::read_tls(&mut reader, &values),
            database_url: values.given_database_url.clone().unwrap_or_else(default_database),
            public_path: files::read_public_path(&mut reader, &values),
            log: Log { level: values.log_level.clone(), format: values.log_format },
            jwt: jwt::read_jwt(&mut reader, &values),
            values,
            texts: texts.clone(),
        };
        settings.check_worker_node(&mut reader);
        if reader.mistakes.is_empty() { Ok(settings) } else { Err(reader.mistakes) }
    }

    /// A node that only works needs the Redis and the database of the nodes that take orders: with its own
    /// it would find neither jobs nor tickets.
    fn check_worker_node(&self, reader: &mut Reader<'_>) {
        if self.fleet.mode != Mode::Worker || reader.blames("REDIS_") {
            return;
        }
        let right = if self.redis == Redis::Embedded {
            "a node that only works needs REDIS_URL, where others put jobs, and their DATABASE_URL"
        } else if !reader.is_given("DATABASE_URL") {
            "a node that only works needs DATABASE_URL, too: the database of those who put jobs"
        } else {
            return;
        };
        reader.mistake("WORKER_MODE", "worker", right);
    }

    /// Variables that are set, but that this version does not use yet.
    pub(crate) fn unused_variables(environment: Environment<'_>) -> Vec<&'static str> {
        let is_set = |name: &&str| environment(name).is_some_and(|value| !value.trim().is_empty());
        PLANNED.into_iter().filter(|name| is_set(name)).collect()
    }
}

/// `DATA_DIR` alone, for a command that needs no other setting.
pub(crate) fn data_dir(given: &Given) -> PathBuf {
    let texts = given.texts(&|_| None);
    Reader::new(&texts).value(&rows::data_dir()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn nothing_needs_to_be_set() {
        let settings = Settings::resolve(&Given::default(), &none).unwrap();
        assert_eq!(settings.redis, Redis::Embedded);
        assert_eq!(settings.database_url, "sqlite:data/stampede.db");
        assert_eq!(settings.public_path, PathBuf::from("data/public"));
        assert_eq!(settings.port, 3000);
    }

    #[test]
    fn all_mistakes_are_reported_at_once_with_name_value_and_remedy() {
        let given = Given::from([
            ("PORT", "http"),
            ("WORKER_MODE", "boss"),
            ("WORKER_COUNT", "0"),
            ("DATABASE_URL", "mysql://x"),
            ("REDIS_URL", "localhost:6379"),
            ("ENGINE_FSYNC", "sometimes"),
            ("SERVER_NAME", "all"),
            ("MIN_WORKERS", "many"),
            ("IS_COORDINATOR", "perhaps"),
        ]);
        let environment = |name: &str| (name == "STORAGE_TYPE").then(|| "ftp".to_owned());
        let mistakes = Settings::resolve(&given, &environment).unwrap_err();
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
            match Settings::resolve(&Given::default(), &environment) {
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
    fn contradictions_are_named_beside_wrong_values() {
        let given = Given::from([("MIN_WORKERS", "5"), ("MAX_WORKERS", "2"), ("PORT", "http")]);
        let environment = |name: &str| (name == "MONGODB_URI").then(|| "mongodb://x".to_owned());
        let mistakes = Settings::resolve(&given, &environment).unwrap_err();
        let names: Vec<&str> = mistakes.iter().map(|mistake| mistake.name).collect();
        assert_eq!(names, ["PORT", "MONGODB_URI", "MIN_WORKERS"]);
    }

    #[test]
    fn an_empty_flag_counts_as_not_given_and_hides_the_variable() {
        let given = Given::from([("PORT", " ")]);
        let environment = |name: &str| (name == "PORT").then(|| "4000".to_owned());
        let settings = Settings::resolve(&given, &environment).unwrap();
        assert_eq!((settings.port, settings.port_is_given), (3000, false));
    }

    #[test]
    fn variables_of_later_versions_are_named_and_change_nothing() {
        let environment = |name: &str| (name == "SENTRY_DSN").then(|| "https://x".to_owned());
        assert_eq!(Settings::unused_variables(&environment), ["SENTRY_DSN"]);
        assert!(Settings::resolve(&Given::default(), &environment).is_ok());
    }
}
