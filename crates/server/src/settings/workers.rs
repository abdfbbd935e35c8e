//! The environment that the supervisor hands to worker processes.
//!
//! A worker process inherits the environment of the server. Here every setting of the table gets the value
//! that the worker shall see, so that flags of the server reach it. A setting that is not for workers is
//! handed over empty, which counts as not set: a worker needs no admin key.

use std::collections::BTreeMap;
use std::path::Path;

use super::Settings;
use super::row::Workers;
use super::table::groups;

impl Settings {
    /// The variables of a worker process. `redis_url` may be the address of the embedded engine; `template`
    /// is the copy of `TICKET_TEMPLATE` that all workers use.
    pub(crate) fn worker_env(
        &self,
        redis_url: &str,
        template: Option<&Path>,
    ) -> Vec<(String, String)> {
        let mut env: BTreeMap<&str, String> = BTreeMap::new();
        for setting in groups().into_iter().flat_map(|group| group.settings) {
            let text = match setting.workers {
                Workers::GetIt => self.texts.get(setting.name).unwrap_or_default(),
                Workers::DoNot => "",
            };
            env.insert(setting.name, text.to_owned());
        }
        for (name, decided) in self.decided_for_workers(redis_url, template) {
            env.insert(name, decided);
        }
        env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Settings that the server has decided, so that workers do not decide again.
    fn decided_for_workers(
        &self,
        redis_url: &str,
        template: Option<&Path>,
    ) -> [(&'static str, String); 6] {
        let template = template.map(|path| path.display().to_string()).unwrap_or_default();
        [
            ("REDIS_URL", redis_url.to_owned()),
            ("DATABASE_URL", self.database_url.clone()),
            ("DATA_DIR", self.data_dir.display().to_string()),
            ("STORAGE_TYPE", "local".to_owned()),
            ("PUBLIC_PATH", self.public_path.display().to_string()),
            ("TICKET_TEMPLATE", template),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::given::Given;
    use super::*;

    fn env_of(given: &Given, environment: &dyn Fn(&str) -> Option<String>) -> Env {
        let settings = Settings::resolve(given, environment).unwrap();
        settings.worker_env("redis://engine", None).into_iter().collect()
    }

    type Env = BTreeMap<String, String>;

    #[test]
    fn workers_get_their_settings_from_flags_and_variables_and_no_others() {
        let given = Given::from([("JOB_CONCURRENCY", "3"), ("PORT", "4000")]);
        let environment = |name: &str| match name {
            "MAX_JOB_BYTES" => Some("4096".to_owned()),
            "QUEUE_PREFIX" => Some("shop".to_owned()),
            "ADMIN_KEY" => Some("a-key-of-the-administrator".to_owned()),
            "REDIS_PASSWORD" => Some("pass".to_owned()),
            _ => None,
        };
        let env = env_of(&given, &environment);
        for (name, value) in [
            ("JOB_CONCURRENCY", "3"),
            ("MAX_JOB_BYTES", "4096"),
            ("QUEUE_PREFIX", "shop"),
            ("REDIS_URL", "redis://engine"),
            ("DATABASE_URL", "sqlite:data/stampede.db"),
            ("PUBLIC_PATH", "data/public"),
            ("ADMIN_KEY", ""),
            ("REDIS_PASSWORD", ""),
            ("PORT", ""),
        ] {
            assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn a_worker_reads_the_settings_of_its_server() {
        let given = Given::from([
            ("WORKER_MODE", "worker"),
            ("REDIS_URL", "redis://127.0.0.1"),
            ("DATABASE_URL", "postgres://me@127.0.0.1/tickets"),
            ("SHUTDOWN_TIMEOUT", "7"),
            ("LOG_FORMAT", "json"),
        ]);
        let env = env_of(&given, &|_| None);
        let worker = Settings::resolve(&Given::default(), &|name| env.get(name).cloned()).unwrap();
        assert_eq!(worker.database_url, "postgres://me@127.0.0.1/tickets");
        assert_eq!(worker.shutdown_timeout, std::time::Duration::from_secs(7));
        assert_eq!(worker.log.format, super::super::LogFormat::Json);
    }

    #[test]
    fn all_that_the_server_decides_is_marked_for_workers() {
        let settings = Settings::resolve(&Given::default(), &|_| None).unwrap();
        let table: Vec<_> = groups().into_iter().flat_map(|group| group.settings).collect();
        for (name, _) in settings.decided_for_workers("", None) {
            let row = table.iter().find(|setting| setting.name == name).unwrap();
            assert_eq!(row.workers, Workers::GetIt, "{name}");
        }
    }
}
