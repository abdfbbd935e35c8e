//! What can go wrong when talking to Redis.

/// Errors a caller tells apart: is Redis away, is it the wrong Redis, or did a call fail?
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody answers, or the connection broke. Trying again later makes sense.
    #[error(
        "cannot reach Redis at {url}: {reason}. Is it running there? Check REDIS_URL (or REDIS_HOST and REDIS_PORT)"
    )]
    Unreachable {
        /// Where, without the password.
        url: String,
        /// What the network said.
        reason: String,
    },
    /// It does not want us.
    #[error(
        "Redis at {url} does not let us in: {reason}. Check user name and password in REDIS_URL (or REDIS_PASSWORD)"
    )]
    AccessDenied {
        /// Where, without the password.
        url: String,
        /// What the server said.
        reason: String,
    },
    /// It has no database of that number.
    #[error(
        "Redis at {url} has no such database: {reason}. Most have 0 to 15; check the end of REDIS_URL (or REDIS_DB)"
    )]
    NoSuchDatabase {
        /// Where, without the password.
        url: String,
        /// What the server said.
        reason: String,
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
    /// A command failed.
    #[error("Redis: {0}")]
    Redis(#[from] redis::RedisError),
    /// The official crate reports an error.
    #[error("BullMQ: {0}")]
    BullMq(#[from] bullmq::Error),
    /// A script answered something that BullMQ's protocol does not have.
    #[error("unexpected answer of script {script}: {answer}")]
    Protocol {
        /// Which script.
        script: &'static str,
        /// What it said.
        answer: String,
    },
}

impl Error {
    /// The connection is the problem, not what was asked; the same call may work later.
    pub fn is_outage(&self) -> bool {
        let redis = match self {
            Self::Unreachable { .. } | Self::Loading { .. } => return true,
            Self::Redis(error) | Self::BullMq(bullmq::Error::Redis(error)) => error,
            _ => return false,
        };
        redis.is_io_error()
            || redis.is_timeout()
            || redis.is_connection_dropped()
            || redis.is_connection_refusal()
            || matches!(
                redis.kind(),
                redis::ErrorKind::AuthenticationFailed | redis::ErrorKind::ClusterConnectionNotFound
            )
            // The server is there, but not ready, or without memory, disk or replicas for now.
            || matches!(
                redis.code(),
                Some(
                    "LOADING" | "MASTERDOWN" | "READONLY" | "TRYAGAIN" | "CLUSTERDOWN" | "BUSY"
                    | "OOM" | "MISCONF" | "NOREPLICAS"
                    // Somebody changes the password: what is done must not be lost meanwhile.
                    | "NOAUTH" | "WRONGPASS"
                )
            )
    }
}
