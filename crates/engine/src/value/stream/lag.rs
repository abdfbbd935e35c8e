//! How far a consumer group is behind its stream, counted in entries.
//!
//! A group counts the entries it has read. The count is right as long as no entry was deleted between
//! the group's position and the end of the stream. Otherwise it is derived from the position, which is
//! possible only at the ends of the stream; elsewhere the count is unknown.

use super::group::Group;
use super::{Id, Stream};

impl Stream {
    /// Moves a group to the next entry that it delivers.
    pub(crate) fn advance(&self, group: &mut Group, id: Id) {
        match group.entries_read {
            Some(read) if !self.has_gap_after(id) => {
                group.entries_read = Some(read.wrapping_add(1))
            }
            _ if self.entries_added > 0 => group.entries_read = self.entries_up_to(id),
            _ => {}
        }
        group.last_id = id;
    }

    /// The number of entries that a group has not read; `None` if unknown.
    pub(crate) fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        let known = group.entries_read.filter(|_| !self.has_gap_after(group.last_id));
        let read = known.or_else(|| self.entries_up_to(group.last_id))?;
        Some((self.entries_added as i64).wrapping_sub(read))
    }

    /// Whether an entry at or after `id`, and after the first entry, may have been deleted.
    fn has_gap_after(&self, id: Id) -> bool {
        let deleted = self.max_deleted_id;
        deleted != Id::MIN && id <= deleted && !self.is_empty() && self.first_id() <= deleted
    }

    /// How many entries were ever added up to `id`; `None` if unknown.
    fn entries_up_to(&self, id: Id) -> Option<i64> {
        let added = self.entries_added as i64;
        if added == 0 {
            return Some(0);
        }
        if self.is_empty() && id <= self.last_id {
            return Some(added);
        }
        if id >= self.last_id {
            return (id == self.last_id).then_some(added);
        }
        let (first, len) = (self.first_id(), self.len() as i64);
        let whole = self.max_deleted_id == Id::MIN || self.max_deleted_id < first;
        match id.cmp(&first) {
            std::cmp::Ordering::Less if whole => Some(added.wrapping_sub(len)),
            std::cmp::Ordering::Equal if whole => Some(added.wrapping_sub(len).wrapping_add(1)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(ms: u64) -> Id {
        Id { ms, seq: 0 }
    }

    #[test]
    fn the_lag_is_known_unless_an_entry_ahead_was_deleted() {
        let mut stream = Stream::default();
        (1..=5).for_each(|ms| stream.add(id(ms), &[&b"f"[..], b"v"]));
        let mut group = Group::new(Id::MIN, None);
        assert_eq!(stream.lag(&group), Some(5));
        stream.advance(&mut group, id(1));
        assert_eq!((stream.lag(&group), group.entries_read), (Some(4), Some(1)));
        stream.remove(id(3));
        assert_eq!(stream.lag(&group), None);
        for (ms, read) in [(2, None), (4, None), (5, Some(5))] {
            stream.advance(&mut group, id(ms));
            assert_eq!(group.entries_read, read, "{ms}");
        }
        assert_eq!(stream.lag(&group), Some(0));
    }
}
