//! Sets: sorted integers while all members are integers and there are few, else a hash table.
//!
//! As in Redis 7.0, a set of up to 512 integers is returned in numeric order. A set that became a
//! table stays one.

use crate::blob::Blob;
use crate::dict::Dict;
use crate::number::parse_int;

const MAX_INTS: usize = 512;

/// A set of strings.
#[derive(Debug, Clone)]
pub(crate) enum Set {
    /// Integers in ascending order.
    Ints(Vec<i64>),
    /// Members of any kind.
    Table(Dict<()>),
}

impl Default for Set {
    fn default() -> Self {
        Self::Ints(Vec::new())
    }
}

impl Set {
    /// The number of members.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Ints(ints) => ints.len(),
            Self::Table(table) => table.len(),
        }
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of Redis's encoding.
    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Self::Ints(_) => "intset",
            Self::Table(_) => "hashtable",
        }
    }

    /// Adds a member; `true` if it is new.
    pub(crate) fn add(&mut self, member: &[u8]) -> bool {
        match self {
            Self::Ints(ints) => match parse_int(member) {
                Some(int) => {
                    let Err(position) = ints.binary_search(&int) else { return false };
                    ints.insert(position, int);
                    if ints.len() > MAX_INTS {
                        self.make_table();
                    }
                    true
                }
                None => {
                    self.make_table();
                    self.add(member)
                }
            },
            Self::Table(table) => {
                let before = table.len();
                table.find_or_insert(member, || ());
                table.len() > before
            }
        }
    }

    /// Removes a member; `true` if it existed.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        match self {
            Self::Ints(ints) => {
                let found = parse_int(member).and_then(|int| ints.binary_search(&int).ok());
                found.map(|position| ints.remove(position)).is_some()
            }
            Self::Table(table) => table.remove(member).is_some(),
        }
    }

    /// Whether the set contains a member.
    pub(crate) fn contains(&self, member: &[u8]) -> bool {
        match self {
            Self::Ints(ints) => {
                parse_int(member).is_some_and(|int| ints.binary_search(&int).is_ok())
            }
            Self::Table(table) => table.contains(member),
        }
    }

    /// The member at an index below `len()`.
    pub(crate) fn at(&self, index: usize) -> Blob {
        match self {
            Self::Ints(ints) => Blob::from_int(ints[index]),
            Self::Table(table) => table.at(index).0.clone(),
        }
    }

    /// All members; integers in numeric order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Blob> {
        (0..self.len()).map(|index| self.at(index))
    }

    /// Visits some members and returns the next cursor; integer sets are visited whole.
    pub(crate) fn scan(&self, cursor: u64, mut visit: impl FnMut(&Blob)) -> u64 {
        match self {
            Self::Ints(_) => {
                self.iter().for_each(|member| visit(&member));
                0
            }
            Self::Table(table) => table.scan(cursor, |member, ()| visit(member)),
        }
    }

    /// The approximate number of bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        match self {
            Self::Ints(ints) => ints.capacity() * 8,
            Self::Table(table) => {
                table.table_size() + table.iter().map(|(m, ())| m.heap_size()).sum::<usize>()
            }
        }
    }

    fn make_table(&mut self) {
        let mut table = Dict::default();
        for member in self.iter() {
            table.insert(&member, ());
        }
        *self = Self::Table(table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_returned_in_numeric_order() {
        let mut set = Set::default();
        for member in ["30", "-7", "4"] {
            assert!(set.add(member.as_bytes()));
        }
        let members: Vec<Blob> = set.iter().collect();
        assert_eq!(members, ["-7", "4", "30"].map(|text| Blob::new(text.as_bytes())));
        assert!(!set.contains(b"04"));
        assert_eq!(set.encoding(), "intset");
    }

    #[test]
    fn one_word_makes_it_a_table_for_good() {
        let mut set = Set::default();
        set.add(b"1");
        set.add(b"one");
        set.remove(b"one");
        assert_eq!((set.encoding(), set.len()), ("hashtable", 1));
        assert!(set.contains(b"1"));
    }
}
