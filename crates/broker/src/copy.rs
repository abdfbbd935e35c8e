//! Copies a whole keyspace from one Redis-protocol server to another: engine → Redis, Redis → engine.
//!
//! ```text
//!  source ── SCAN, TYPE, PEXPIRETIME, MEMORY USAGE ──▶ keys ── pages of values ──▶ Sink
//!                                                                                  ├ Writer    first pass
//!                                                                                  └ Comparer  second pass
//! ```
//!
//! Both passes walk the source in the same way (`walk.rs`): small values whole and many at a time, large
//! ones in pages, so that neither side nor this process ever holds more than a few megabytes of it. The
//! first pass writes (`write.rs`); the second reads every value again on both sides and compares them,
//! with expiry, stream ids and the number of keys of each type (`compare.rs`).
//!
//! The source must be at rest: nothing keeps a queue from changing between two pages of it. Connected
//! workers are warned about, and a change that matters fails the second pass.
//!
//! A copy that breaks off leaves [`MARKER`] in the target, and the next one says so. It is not resumed:
//! it starts again with [`Target::Replace`].
//!
//! Not copied: consumer groups (BullMQ has none; they are named in the report), functions, modules' types.

mod compare;
mod server;
mod walk;
mod write;

use std::collections::BTreeMap;
use std::fmt;

use self::compare::Comparer;
use self::server::Server;
use self::walk::Walk;
use self::write::Writer;

/// Stands in the target's first database until a copy is whole.
pub const MARKER: &str = "stampede:unfinished-copy";

/// What to copy where.
///
/// A URL without a database stands for all of them. With one (`redis://host/2`) only that one is read or
/// written; into one database only one database can go.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the keys are.
    pub from: String,
    /// Where they shall be.
    pub to: String,
    /// What to do when there are keys already.
    pub target: Target,
}

/// What may happen to keys in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Nothing: its databases must be empty.
    MustBeEmpty,
    /// The databases that are written to are emptied first.
    Replace,
}

/// The six types of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A string.
    String,
    /// A hash.
    Hash,
    /// A list.
    List,
    /// A set.
    Set,
    /// A sorted set.
    SortedSet,
    /// A stream.
    Stream,
}

impl Kind {
    /// The name that `TYPE` answers.
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "hash" => Self::Hash,
            "list" => Self::List,
            "set" => Self::Set,
            "zset" => Self::SortedSet,
            "stream" => Self::Stream,
            _ => return None,
        })
    }

    /// The command that says how long a value is.
    fn length_command(self) -> &'static str {
        match self {
            Self::String => "STRLEN",
            Self::Hash => "HLEN",
            Self::List => "LLEN",
            Self::Set => "SCARD",
            Self::SortedSet => "ZCARD",
            Self::Stream => "XLEN",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::String => "strings",
            Self::Hash => "hashes",
            Self::List => "lists",
            Self::Set => "sets",
            Self::SortedSet => "sorted sets",
            Self::Stream => "streams",
        })
    }
}

/// Keys of each type.
pub type Counts = BTreeMap<Kind, u64>;

/// What a copy tells while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// So many of all keys are copied.
    Copied {
        /// Keys copied.
        keys: u64,
        /// Keys found at the beginning.
        total: u64,
    },
    /// So many of all keys were compared.
    Compared {
        /// Keys compared.
        keys: u64,
        /// Keys copied.
        total: u64,
    },
    /// Something the operator should know.
    Warning(String),
}

/// One database of a finished copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Its number in the source.
    pub from: i64,
    /// Its number in the target.
    pub to: i64,
    /// What is in it.
    pub keys: Counts,
}

/// A finished copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The databases that had keys.
    pub databases: Vec<Database>,
    /// What was left out, in words.
    pub left_out: Vec<String>,
}

impl Report {
    /// Keys copied in all.
    pub fn keys(&self) -> u64 {
        self.databases.iter().flat_map(|database| database.keys.values()).sum()
    }
}

/// Why there is no whole copy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// One side cannot be used at all; nothing was changed.
    #[error(transparent)]
    Server(#[from] crate::Error),
    /// Too old to be copied from or to; nothing was changed.
    #[error("{url} has version {version}; a copy needs Redis or Valkey 7.0 or newer on both sides")]
    TooOld {
        /// Where, without the password.
        url: String,
        /// What it says.
        version: String,
    },
    /// Both URLs lead to one server; nothing was changed.
    #[error("{from} and {to} are the same server; there is nothing to copy")]
    SameServer {
        /// One address.
        from: String,
        /// The other.
        to: String,
    },
    /// Several databases cannot become one; nothing was changed.
    #[error(
        "{from} has keys in the databases {databases:?}, and all of them cannot go into the one that {to} \
         names. Name one of them in the source's URL too, or none in the target's"
    )]
    OneDatabase {
        /// The source.
        from: String,
        /// Its databases with keys.
        databases: Vec<i64>,
        /// The target.
        to: String,
    },
    /// The source is itself half a copy; nothing was changed.
    #[error(
        "{from} holds a copy that was never finished (key {MARKER}). Make that one whole first"
    )]
    UnfinishedSource {
        /// The source.
        from: String,
    },
    /// The target has keys; nothing was changed.
    #[error(
        "{to} is not empty: {keys} keys in database {database}{}. To delete them first, say --replace",
        unfinished.as_ref().map_or(String::new(), |from| format!(
            ", from a copy of {from} that was not finished"
        ))
    )]
    NotEmpty {
        /// The target.
        to: String,
        /// The first database with keys.
        database: i64,
        /// How many.
        keys: u64,
        /// The source of a copy that broke off.
        unfinished: Option<String>,
    },
    /// It broke off.
    #[error(
        "the copy broke off: {reason}. {to} holds a part of it and is marked as unfinished; run it again with \
         --replace"
    )]
    BrokenOff {
        /// The target.
        to: String,
        /// Why.
        reason: crate::Error,
    },
    /// Both sides are not the same in the end.
    #[error(
        "the copy is not the same as its source: {}. Most likely something wrote to {from} (or to {to}) \
         meanwhile: stop all workers and producers and run it again with --replace. The copy is marked as unfinished",
        differences.join("; ")
    )]
    Different {
        /// The source.
        from: String,
        /// The target.
        to: String,
        /// The first differences, in words.
        differences: Vec<String>,
    },
}

/// Copies everything, then compares everything.
pub async fn run(plan: &Plan, tell: &mut (dyn FnMut(Step) + Send)) -> Result<Report, Error> {
    let mut source = Server::connect(&plan.from).await?;
    let mut target = Server::connect(&plan.to).await?;
    target.must_keep_keys()?;
    let pairs = pairs(&source, &target)?;
    check_marker(&mut source, &pairs).await?;
    make_room(&mut target, &pairs, plan.target).await?;
    if let Some(warning) = source.others().await? {
        tell(Step::Warning(warning));
    }
    let (from, to) = (source.shown_url().to_owned(), target.shown_url().to_owned());
    let total = pairs.iter().map(|pair| pair.keys).sum();
    let passes = Passes { source, target, pairs, total };
    match passes.run(tell).await {
        Ok((report, differences)) if differences.is_empty() => Ok(report),
        Ok((_, differences)) => Err(Error::Different { from, to, differences }),
        Err(reason) => Err(Error::BrokenOff { to, reason }),
    }
}

/// A database of the source and the one it goes to.
#[derive(Debug, Clone, Copy)]
struct Pair {
    from: i64,
    to: i64,
    keys: u64,
}

fn pairs(source: &Server, target: &Server) -> Result<Vec<Pair>, Error> {
    if source.run_id() == target.run_id() {
        let (from, to) = (source.shown_url().to_owned(), target.shown_url().to_owned());
        return Err(Error::SameServer { from, to });
    }
    let found = source.databases();
    let wanted = found.into_iter().filter(|(db, _)| source.only().is_none_or(|only| only == *db));
    let pairs: Vec<Pair> =
        wanted.map(|(from, keys)| Pair { from, to: target.only().unwrap_or(from), keys }).collect();
    if target.only().is_some() && pairs.len() > 1 {
        return Err(Error::OneDatabase {
            from: source.shown_url().to_owned(),
            databases: pairs.iter().map(|pair| pair.from).collect(),
            to: target.shown_url().to_owned(),
        });
    }
    Ok(pairs)
}

async fn check_marker(source: &mut Server, pairs: &[Pair]) -> Result<(), Error> {
    for pair in pairs {
        source.select(pair.from).await?;
        if source.marker().await?.is_some() {
            return Err(Error::UnfinishedSource { from: source.shown_url().to_owned() });
        }
    }
    Ok(())
}

/// Nothing may be in the databases that will be written to.
async fn make_room(target: &mut Server, pairs: &[Pair], rule: Target) -> Result<(), Error> {
    let found: BTreeMap<i64, u64> = target.databases().into_iter().collect();
    for pair in pairs {
        // Also finds out whether the target has a database of that number, before anything is written.
        target.select(pair.to).await?;
        if let Some(keys) = found.get(&pair.to).copied().filter(|_| rule == Target::MustBeEmpty) {
            let (to, unfinished) = (target.shown_url().to_owned(), target.marker().await?);
            return Err(Error::NotEmpty { to, database: pair.to, keys, unfinished });
        }
    }
    for pair in pairs.iter().filter(|pair| found.contains_key(&pair.to)) {
        target.select(pair.to).await?;
        target.flush().await?;
    }
    Ok(())
}

struct Passes {
    source: Server,
    target: Server,
    pairs: Vec<Pair>,
    total: u64,
}

impl Passes {
    /// The report, and what is not the same on both sides.
    async fn run(
        mut self,
        tell: &mut (dyn FnMut(Step) + Send),
    ) -> Result<(Report, Vec<String>), crate::Error> {
        let Some(first) = self.pairs.first().copied() else { return Ok(Default::default()) };
        let changes = self.source.changes().await?;
        self.target.select(first.to).await?;
        self.target.set_marker(self.source.shown_url()).await?;
        let mut report = Report::default();
        let mut done = 0;
        for pair in self.pairs.clone() {
            self.select(pair).await?;
            let mut walk = Walk::new(&mut self.source);
            let mut writer = Writer::new(&mut self.target);
            while walk.page(&mut writer).await? {
                let keys = done + walk.keys();
                tell(Step::Copied { keys, total: self.total.max(keys) });
            }
            let (keys, left_out) = walk.finish();
            done += keys.values().sum::<u64>();
            report.left_out.extend(left_out);
            report.databases.push(Database { from: pair.from, to: pair.to, keys });
        }
        let differences = self.compare(&report, tell).await?;
        if !differences.is_empty() {
            return Ok((report, differences));
        }
        if self.source.changes().await? != changes {
            tell(Step::Warning(format!(
                "keys in {} were changed or expired during the copy. All of them were found to be the same \
                 afterwards, but what is written from now on is not copied",
                self.source.shown_url()
            )));
        }
        self.target.select(first.to).await?;
        self.target.remove_marker().await?;
        Ok((report, differences))
    }

    async fn compare(
        &mut self,
        report: &Report,
        tell: &mut (dyn FnMut(Step) + Send),
    ) -> Result<Vec<String>, crate::Error> {
        let mut differences = Vec::new();
        let mut done = 0;
        let total = report.keys();
        for pair in self.pairs.clone() {
            self.select(pair).await?;
            let mut walk = Walk::new(&mut self.source);
            let mut comparer = Comparer::new(&mut self.target, pair.from);
            while walk.page(&mut comparer).await? {
                let keys = done + walk.keys();
                tell(Step::Compared { keys, total: total.max(keys) });
            }
            let (keys, _) = walk.finish();
            done += keys.values().sum::<u64>();
            differences.extend(comparer.finish(&keys, &mut self.source).await?);
        }
        Ok(differences)
    }

    async fn select(&mut self, pair: Pair) -> Result<(), crate::Error> {
        self.source.select(pair.from).await?;
        self.target.select(pair.to).await
    }
}
