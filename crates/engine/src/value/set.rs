//! Sets: sorted integers, a short list, or a hash table, as in Redis 7.2.
//!
//! | form | while | order |
//! |---|---|---|
//! | integers | all members are integers, at most 512 | numeric |
//! | list | at most 128 members of at most 64 bytes | of insertion |
//! | table | otherwise | none |
//!
//! `SSCAN` returns the first two forms whole. A set never returns to an earlier form.

use super::packed::{append, text_at};
use crate::blob::Blob;
use crate::dict::Dict;
use crate::number::parse_int;

const MAX_INTS: usize = 512;
const MAX_LIST: usize = 128;
const MAX_LIST_LEN: usize = 64;

/// A set of strings.
#[derive(Debug, Clone)]
pub(crate) enum Set {
    /// Integers in ascending order.
    Ints(Vec<i64>),
    /// Short members in one buffer, in the order of insertion; see `packed.rs`.
    List {
        /// The packed members.
        bytes: Vec<u8>,
        /// The number of members.
        count: usize,
    },
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
            Self::List { count, .. } => *count,
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
            Self::List { .. } => "listpack",
            Self::Table(_) => "hashtable",
        }
    }

    /// Chooses the form before `SADD` adds `count` members, of which `first` is the first. As in
    /// Redis, the number counts even if some of them are equal.
    pub(crate) fn reserve(&mut self, first: &[u8], count: usize) {
        let fits = match self {
            Self::Ints(ints) if ints.is_empty() && parse_int(first).is_none() => {
                *self = Self::List { bytes: Vec::new(), count: 0 };
                count <= MAX_LIST
            }
            Self::Ints(_) => count <= MAX_INTS,
            Self::List { .. } => count <= MAX_LIST,
            Self::Table(_) => true,
        };
        if !fits {
            self.make_table();
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
                    if ints.len() < MAX_LIST && member.len() <= MAX_LIST_LEN {
                        self.make_list();
                    } else {
                        self.make_table();
                    }
                    self.add(member)
                }
            },
            Self::List { bytes, count } => {
                if find(bytes, member).is_some() {
                    return false;
                }
                if *count < MAX_LIST && member.len() <= MAX_LIST_LEN {
                    append(bytes, member);
                    *count += 1;
                    return true;
                }
                self.make_table();
                self.add(member)
            }
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
            Self::List { bytes, count } => match find(bytes, member) {
                Some((start, end)) => {
                    bytes.drain(start..end);
                    *count -= 1;
                    true
                }
                None => false,
            },
            Self::Table(table) => table.remove(member).is_some(),
        }
    }

    /// Whether the set contains a member.
    pub(crate) fn contains(&self, member: &[u8]) -> bool {
        match self {
            Self::Ints(ints) => {
                parse_int(member).is_some_and(|int| ints.binary_search(&int).is_ok())
            }
            Self::List { bytes, .. } => find(bytes, member).is_some(),
            Self::Table(table) => table.contains(member),
        }
    }

    /// The member at an index below `len()`.
    pub(crate) fn at(&self, index: usize) -> Blob {
        match self {
            Self::Ints(ints) => Blob::from_int(ints[index]),
            Self::List { .. } => self.iter().nth(index).unwrap_or_default(),
            Self::Table(table) => table.at(index).0.clone(),
        }
    }

    /// All members: integers in numeric order, a list in the order of insertion.
    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter { set: self, index: 0, offset: 0 }
    }

    /// Visits some members and returns the next cursor; integers and lists are visited whole.
    pub(crate) fn scan(&self, cursor: u64, mut visit: impl FnMut(&Blob)) -> u64 {
        match self {
            Self::Ints(_) | Self::List { .. } => {
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
            Self::List { bytes, .. } => bytes.capacity(),
            Self::Table(table) => {
                table.table_size() + table.iter().map(|(m, ())| m.heap_size()).sum::<usize>()
            }
        }
    }

    fn make_list(&mut self) {
        let (mut bytes, count) = (Vec::new(), self.len());
        self.iter().for_each(|member| append(&mut bytes, &member));
        *self = Self::List { bytes, count };
    }

    fn make_table(&mut self) {
        let mut table = Dict::default();
        for member in self.iter() {
            table.insert(&member, ());
        }
        *self = Self::Table(table);
    }
}

/// The offsets at which a packed member begins and ends, its length included.
fn find(bytes: &[u8], member: &[u8]) -> Option<(usize, usize)> {
    let mut at = 0;
    while at < bytes.len() {
        let (start, end) = text_at(bytes, at);
        if bytes[start..end] == *member {
            return Some((at, end));
        }
        at = end;
    }
    None
}

/// An iterator over the members of a set.
#[derive(Debug)]
pub(crate) struct Iter<'a> {
    set: &'a Set,
    index: usize,
    /// The offset of the next member of a list.
    offset: usize,
}

impl Iterator for Iter<'_> {
    type Item = Blob;

    fn next(&mut self) -> Option<Blob> {
        if self.index == self.set.len() {
            return None;
        }
        let member = match self.set {
            Set::List { bytes, .. } => {
                let (start, end) = text_at(bytes, self.offset);
                self.offset = end;
                Blob::new(&bytes[start..end])
            }
            set => set.at(self.index),
        };
        self.index += 1;
        Some(member)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.set.len() - self.index;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(set: &Set) -> Vec<String> {
        set.iter().map(|member| String::from_utf8_lossy(&member).into_owned()).collect()
    }

    #[test]
    fn integers_are_returned_in_numeric_order() {
        let mut set = Set::default();
        for member in ["30", "-7", "4"] {
            assert!(set.add(member.as_bytes()));
        }
        assert_eq!(texts(&set), ["-7", "4", "30"]);
        assert!(!set.contains(b"04"));
        assert_eq!(set.encoding(), "intset");
    }

    #[test]
    fn one_word_makes_integers_a_list_for_good() {
        let mut set = Set::default();
        for member in ["9", "1", "one", "5"] {
            assert!(set.add(member.as_bytes()));
        }
        assert!(!set.add(b"one"));
        assert_eq!((set.encoding(), texts(&set)), ("listpack", vec_of(["1", "9", "one", "5"])));
        assert!(set.remove(b"one") && !set.remove(b"one"));
        assert_eq!((set.encoding(), texts(&set)), ("listpack", vec_of(["1", "9", "5"])));
        assert!(set.contains(b"5") && !set.contains(b"one"));
    }

    fn vec_of<const N: usize>(texts: [&str; N]) -> Vec<String> {
        texts.map(str::to_owned).to_vec()
    }

    #[test]
    fn a_list_becomes_a_table_beyond_128_members_or_64_bytes() {
        let mut many = Set::default();
        for number in 0..128 {
            many.add(format!("m{number}").as_bytes());
        }
        let mut seen = Vec::new();
        assert_eq!(many.scan(0, |member| seen.push(member.clone())), 0);
        assert_eq!((many.encoding(), seen.len()), ("listpack", 128));
        many.add(b"m128");
        assert_eq!((many.encoding(), many.len()), ("hashtable", 129));
        for (len, encoding) in [(64, "listpack"), (65, "hashtable")] {
            let mut long = Set::default();
            long.add(b"1");
            long.add(&vec![b'x'; len]);
            assert_eq!((long.encoding(), long.len()), (encoding, 2));
        }
    }

    #[test]
    fn the_number_of_new_members_chooses_the_form_as_in_redis() {
        for (first, count, encoding) in [
            ("1", 512, "intset"),
            ("1", 513, "hashtable"),
            ("a", 128, "listpack"),
            ("a", 129, "hashtable"),
        ] {
            let mut set = Set::default();
            set.reserve(first.as_bytes(), count);
            set.add(first.as_bytes());
            assert_eq!(set.encoding(), encoding, "{first} and {count} members");
        }
    }
}
