//! The two passes over every database: copy, then compare.

use super::compare::Comparer;
use super::server::Server;
use super::walk::Walk;
use super::write::Writer;
use super::{Database, Pair, Report, Step};
use crate::Error;

/// Both sides, and what goes where.
pub(super) struct Passes {
    pub(super) source: Server,
    pub(super) target: Server,
    pub(super) pairs: Vec<Pair>,
    pub(super) total: u64,
}

impl Passes {
    /// The report, and what is not the same on both sides.
    pub(super) async fn run(
        mut self,
        tell: &mut (dyn FnMut(Step) + Send),
    ) -> Result<(Report, Vec<String>), Error> {
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
    ) -> Result<Vec<String>, Error> {
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

    async fn select(&mut self, pair: Pair) -> Result<(), Error> {
        self.source.select(pair.from).await?;
        self.target.select(pair.to).await
    }
}
