//! What can go wrong when talking to Redis.

use crate::link::is_stuck;

/// Errors a caller tells apart: is Redis away, is it the wrong Redis, or did a call fail?
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Redis does not answer, or the connection broke. Trying again later makes sense.
    #[error(
        "cannot reach Redis at {url}: {reason}. Is it running there? Check REDIS_URL (or REDIS_HOST and REDIS_PORT)"
    )]
    Unreachable {
        /// Where, without the password.
        url: String,
        /// What the network said.
        reason: String,
    },
    /// It is there and does not let us in: the password or the database is wrong.
    #[error("Redis at {url} refuses us: {reason}")]
    Refused {
        /// Where, without the password.
        url: String,
        /// What is wrong, and what to do about it.
        reason: String,
    },
    /// It is a copy that takes no jobs.
    #[error(
        "Redis at {url} is a read-only replica of {primary}, and jobs can be added and taken only there. \
         Use the address of the primary"
    )]
    ReadOnlyReplica {
        /// Where, without the password.
        url: String,
        /// The server it follows.
        primary: String,
    },
    /// It is another kind of server than the address says.
    #[error("Redis at {url} is {what}: {remedy}")]
    WrongKind {
        /// Where, without the password.
        url: String,
        /// What it is.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A certificate that cannot be read.
    #[error("cannot read {}: {reason}. Check REDIS_TLS_CA, REDIS_TLS_CERT and REDIS_TLS_KEY", path.display())]
    Certificate {
        /// Which file.
        path: std::path::PathBuf,
        /// Why not.
        reason: String,
    },
    /// It is there, but still reads its data.
    #[error("Redis at {url} is still loading its data")]
    Loading {
        /// Where, without the password.
        url: String,
    },
    /// Redis may throw jobs away when memory is short.
    #[error(
        "Redis at {url} has maxmemory-policy {policy}, so it may delete jobs when its memory is full. \
         Set it to noeviction: redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"
    )]
    EvictionPolicy {
        /// Where, without the password.
        url: String,
        /// The policy found.
        policy: String,
    },
    /// Too old for BullMQ.
    #[error("Redis at {url} has version {version}; BullMQ needs 6.2 or newer")]
    TooOld {
        /// Where, without the password.
        url: String,
        /// The version found.
        version: String,
    },
    /// The URL cannot be understood.
    #[error(
        "{url} is not a Redis URL: {reason} (expected redis://[user:password@]host:port[/database], rediss://…, \
         redis-sentinel://host:port,host:port/name or redis-cluster://host:port,host:port)"
    )]
    InvalidUrl {
        /// The URL, without the password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A name that would run into other keys.
    #[error("{name:?} cannot be a {what}: {reason}")]
    InvalidName {
        /// What it was to be.
        what: &'static str,
        /// The beginning of it.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A schedule that cannot be understood.
    #[error("this schedule is not valid: {0}")]
    InvalidSchedule(String),
    /// A payload that is too large for a queue.
    #[error(
        "the payload of job {id:?} has {bytes} bytes, and {limit} is the most; store it elsewhere and send a reference"
    )]
    PayloadTooLarge {
        /// Which job.
        id: String,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// Something about a job that a queue has no room for.
    #[error("job {id:?} cannot be added: {reason}")]
    InvalidOption {
        /// Which job.
        id: String,
        /// What is wrong.
        reason: String,
    },
    /// A job of a flow that has to wait for another one.
    #[error(
        "job {id:?} cannot run: {child}, which has to be done before, has failed; run that one again first"
    )]
    ChildFailed {
        /// Which job.
        id: String,
        /// The key of the other one.
        child: String,
    },
    /// There is nothing to replay.
    #[error(
        "there is no dead letter of job {id:?}; other software makes none for jobs that fail: those are retried"
    )]
    UnknownLetter {
        /// Which job.
        id: String,
    },
    /// Jobs are being worked on that would be lost.
    #[error("jobs of queue {queue:?} are being worked on")]
    Busy {
        /// Which queue.
        queue: String,
    },
    /// A job that belongs to a schedule.
    #[error(
        "job {id:?} is the next one of a schedule, and comes as long as that; end the schedule instead"
    )]
    OfSchedule {
        /// Which job.
        id: String,
    },
    /// Nothing is known of it: it was never added, or has ended and was not kept.
    #[error("there is no job {id:?}; if it has ended, it was not kept")]
    UnknownJob {
        /// Which job.
        id: String,
    },
    /// A server that knew us asks for another password now.
    #[error(
        "Redis does not know us any more ({0}). Was its password changed? Then check REDIS_URL or REDIS_PASSWORD"
    )]
    NotAdmitted(redis::RedisError),
    /// A command failed.
    #[error("Redis: {0}")]
    Redis(redis::RedisError),
    /// The official crate reports an error.
    #[error("BullMQ: {0}")]
    BullMq(bullmq::Error),
    /// A script answered something that BullMQ's protocol does not have.
    #[error("unexpected answer of script {script}: {answer}")]
    Protocol {
        /// Which script.
        script: &'static str,
        /// The error text of the server.
        answer: String,
    },
}

/// Answers of a server that is there, but not ready, or without memory, disk or replicas for now.
const NOT_NOW: [&str; 12] = [
    // The scripts were flushed once more than they were loaded.
    "NOSCRIPT",
    // A slot of a Cluster is on its way elsewhere.
    "MOVED",
    "ASK",
    "LOADING",
    "MASTERDOWN",
    "READONLY",
    "TRYAGAIN",
    "CLUSTERDOWN",
    "BUSY",
    "OOM",
    "MISCONF",
    "NOREPLICAS",
];
/// Answers of a server that does not know us (any more).
const NOT_ADMITTED: [&str; 2] = ["NOAUTH", "WRONGPASS"];

impl From<redis::RedisError> for Error {
    fn from(error: redis::RedisError) -> Self {
        if is_stranger(&error) { Self::NotAdmitted(error) } else { Self::Redis(error) }
    }
}

impl From<bullmq::Error> for Error {
    fn from(error: bullmq::Error) -> Self {
        match error {
            bullmq::Error::Redis(error) if is_stranger(&error) => Self::NotAdmitted(error),
            error => Self::BullMq(error),
        }
    }
}

impl Error {
    /// Why a connection could not be made.
    pub(crate) fn connecting(url: &str, error: redis::RedisError) -> Self {
        let url = url.to_owned();
        if is_stranger(&error) {
            let reason = "the password or the user name is wrong or missing. \
                          Check REDIS_URL (redis://user:password@host:port) or REDIS_PASSWORD"
                .to_owned();
            return Self::Refused { url, reason };
        }
        let text = error.to_string();
        if text.contains("refused to switch database") {
            let reason = format!(
                "there is no such database ({text}). The number at the end of REDIS_URL, or REDIS_DB, \
                 must be smaller than Redis' setting \"databases\", which is 16 by default"
            );
            return Self::Refused { url, reason };
        }
        if error.code() == Some("LOADING") {
            return Self::Loading { url };
        }
        Self::Unreachable { url, reason: text }
    }

    /// A copy for another caller of the same call.
    pub(crate) fn for_another(&self) -> Self {
        match self {
            Self::Redis(error) => Self::Redis(error.clone()),
            Self::NotAdmitted(error) => Self::NotAdmitted(error.clone()),
            other => Self::Protocol { script: "moveToFinished", answer: other.to_string() },
        }
    }

    /// The connection is the problem, not what was asked; the same call may work later.
    pub fn is_outage(&self) -> bool {
        let redis = match self {
            Self::Unreachable { .. } | Self::Loading { .. } | Self::ReadOnlyReplica { .. } => {
                return true;
            }
            // The password was changed; an operator will change our settings, or change it back.
            Self::NotAdmitted(_) => return true,
            Self::Redis(error) | Self::BullMq(bullmq::Error::Redis(error)) => error,
            _ => return false,
        };
        redis.is_io_error()
            || redis.is_timeout()
            || redis.is_connection_dropped()
            || redis.is_connection_refusal()
            || redis.kind() == redis::ErrorKind::ClusterConnectionNotFound
            // What was said to us in a form that we do not understand will be said so again.
            || (redis.kind() != redis::ErrorKind::Parse && is_stuck(redis))
            || answers(redis, &NOT_NOW)
    }
}

/// Whether a server wants a password, or another one than ours. Commands with many parts it refuses in
/// its own way before it has seen one.
fn is_stranger(error: &redis::RedisError) -> bool {
    error.kind() == redis::ErrorKind::AuthenticationFailed
        || answers(error, &NOT_ADMITTED)
        || error.detail().is_some_and(|detail| detail.contains("unauthenticated"))
}

/// Whether a server's answer, or one of those to the commands of a transaction, has such a code.
fn answers(error: &redis::RedisError, codes: &[&str]) -> bool {
    let alone = error.code().is_some_and(|code| codes.contains(&code));
    let inside = error.clone().into_server_errors();
    let inside =
        || inside.iter().flat_map(|all| all.iter()).any(|(_, e)| codes.contains(&e.code()));
    // Redis 6.2 puts the code of a command in a script behind that of the script: "… @user_script:50: -OOM …".
    let in_script = || {
        let detail = error.detail().unwrap_or_default();
        error.code() == Some("ERR")
            && detail.contains("@user_script")
            && codes.iter().any(|code| detail.contains(&format!("-{code} ")))
    };
    alone || inside() || in_script()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_let_us_in_yet_is_away_and_an_odd_answer_is_not() {
        let refused = "Redis server refused to switch database";
        let kind = redis::ErrorKind::Server(redis::ServerErrorKind::ResponseError);
        assert!(Error::from(redis::RedisError::from((kind, refused))).is_outage());
        assert!(!Error::from(redis::RedisError::from((kind, "no such thing"))).is_outage());
        let odd = redis::RedisError::from((redis::ErrorKind::Parse, "not a number"));
        assert!(!Error::from(odd).is_outage(), "it would be the same for ever");
    }

    #[test]
    fn answers_from_within_scripts_of_older_servers_are_understood() {
        let error = |text: &str| {
            let error = redis::make_extension_error("ERR".to_owned(), Some(text.to_owned()));
            Error::from(error).is_outage()
        };
        let ran = "Error running script (call to f_12ab): @user_script:50: @user_script: 50:";
        assert!(error(&format!("{ran} -READONLY You can't write against a read only replica.")));
        assert!(error(&format!("{ran} -OOM command not allowed when used memory > 'maxmemory'.")));
        assert!(!error(&format!("{ran} WRONGTYPE Operation against a key holding the wrong kind")));
        assert!(!error("a job whose reason is -OOM "));
    }
}
