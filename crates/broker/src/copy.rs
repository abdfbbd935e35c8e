//! Copies a whole keyspace from one Redis-protocol server to another: engine → Redis, Redis → engine.
//!
//! ```text
//!  source ── SCAN, TYPE, PEXPIRETIME, MEMORY USAGE ──▶ keys ── pages of values ──▶ Sink
//!                                                                                  ├ Writer    first pass
//!                                                                                  └ Comparer  second pass
//! ```
//!
//! Both passes (`passes.rs`) walk the source in the same way (`walk.rs`): small values whole and many at a time, large
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
mod error;
mod kind;
mod passes;
mod piece;
mod position;
mod server;
mod walk;
mod write;

use std::collections::BTreeMap;

use futures::future::BoxFuture;

pub use self::error::Error;
pub use self::kind::Kind;
use self::passes::Passes;
use self::server::Server;

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

/// Copies everything, then compares everything.
pub fn run<'a>(
    plan: &'a Plan,
    tell: &'a mut (dyn FnMut(Step) + Send),
) -> BoxFuture<'a, Result<Report, Error>> {
    // Boxed: compiled here, and not in the crate of the command line.
    Box::pin(copy_and_compare(plan, tell))
}

async fn copy_and_compare(
    plan: &Plan,
    tell: &mut (dyn FnMut(Step) + Send),
) -> Result<Report, Error> {
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
