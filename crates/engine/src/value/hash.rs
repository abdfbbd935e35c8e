//! Hashes: fields and values, packed into one buffer while there are few.
//!
//! Most hashes are records of a dozen fields; a map of strings would cost a hundred bytes per field.
//! The packed form is one buffer in insertion order, searched from the front:
//!
//! ```text
//!   len field len value len field len value …     see `packed.rs`
//! ```
//!
//! Redis packs hashes of up to 512 fields with no field or value over 64 bytes. That limit is visible to
//! clients (`OBJECT ENCODING`, whether `HSCAN` obeys `COUNT`) and is tracked as `redis_packed`. Hashes
//! of a few fields with long values stay packed here nevertheless.

use super::packed::{append, head_of, text_at};
use crate::blob::Blob;
use crate::dict::{self, Dict};

const MAX_PACKED: usize = 512;
const MAX_PACKED_LEN: usize = 64;
/// The number of fields that stay packed if some are long.
const MAX_PACKED_LONG: usize = 32;

/// A map from fields to values.
#[derive(Debug, Clone)]
pub(crate) struct Hash {
    form: Form,
    redis_packed: bool,
}

#[derive(Debug, Clone)]
enum Form {
    Packed { bytes: Vec<u8>, count: usize },
    Table(Dict<Blob>),
}

impl Default for Hash {
    fn default() -> Self {
        Self { form: Form::Packed { bytes: Vec::new(), count: 0 }, redis_packed: true }
    }
}

impl Hash {
    /// The number of fields.
    pub(crate) fn len(&self) -> usize {
        match &self.form {
            Form::Packed { count, .. } => *count,
            Form::Table(table) => table.len(),
        }
    }

    /// Whether the hash is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of Redis's encoding.
    pub(crate) fn encoding(&self) -> &'static str {
        if self.redis_packed { "listpack" } else { "hashtable" }
    }

    /// The value of a field.
    pub(crate) fn get(&self, field: &[u8]) -> Option<&[u8]> {
        match &self.form {
            Form::Packed { bytes, .. } => {
                find(bytes, field).map(|found| &bytes[found.value_start..found.end])
            }
            Form::Table(table) => table.get(field).map(|value| &**value),
        }
    }

    /// Reserves memory for `texts` fields and values of `len` bytes that are about to be set.
    pub(crate) fn reserve(&mut self, texts: usize, len: usize) {
        if let Form::Packed { bytes, .. } = &mut self.form {
            bytes.reserve_exact(len + texts);
        }
    }

    /// Sets a field; `true` if it is new.
    pub(crate) fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        self.reshape_for(field.len().max(value.len()));
        let new = match &mut self.form {
            Form::Packed { bytes, count } => match find(bytes, field) {
                Some(found) => {
                    let (head, width) = head_of(value.len());
                    let text = head[..width].iter().chain(value).copied();
                    bytes.splice(found.field_end..found.end, text);
                    false
                }
                None => {
                    // Exact: most hashes never grow again.
                    bytes.reserve_exact(field.len() + value.len() + 10);
                    append(bytes, field);
                    append(bytes, value);
                    *count += 1;
                    true
                }
            },
            Form::Table(table) => match table.get_mut(field) {
                Some(old) => {
                    *old = Blob::new(value);
                    false
                }
                None => table.insert(field, Blob::new(value)).is_none(),
            },
        };
        if new {
            self.reshape_for(0);
        }
        new
    }

    /// Removes a field; `true` if it existed.
    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        match &mut self.form {
            Form::Packed { bytes, count } => match find(bytes, field) {
                Some(found) => {
                    bytes.drain(found.start..found.end);
                    *count -= 1;
                    true
                }
                None => false,
            },
            Form::Table(table) => table.remove(field).is_some(),
        }
    }

    /// Fields and values; in insertion order while packed.
    pub(crate) fn iter(&self) -> Iter<'_> {
        match &self.form {
            Form::Packed { bytes, .. } => Iter::Packed { bytes, at: 0 },
            Form::Table(table) => Iter::Table { table, at: 0 },
        }
    }

    /// The field and value at an index below `len()`, in no particular order.
    pub(crate) fn at(&self, index: usize) -> Option<(&[u8], &[u8])> {
        match &self.form {
            Form::Packed { .. } => self.iter().nth(index),
            Form::Table(table) => {
                (index < table.len()).then(|| table.at(index)).map(|(f, v)| (&**f, &**v))
            }
        }
    }

    /// Visits some fields and returns the next cursor; hashes that Redis packs are visited whole.
    pub(crate) fn scan(&self, cursor: u64, mut visit: impl FnMut(&[u8], &[u8])) -> u64 {
        match &self.form {
            Form::Packed { .. } if self.redis_packed => {
                self.iter().for_each(|(field, value)| visit(field, value));
                0
            }
            Form::Packed { count, .. } => dict::scan_packed(cursor, *count, |is_next| {
                let fields = self.iter().filter(|(field, _)| is_next(field));
                fields.for_each(|(field, value)| visit(field, value));
            }),
            Form::Table(table) => table.scan(cursor, |field, value| visit(field, value)),
        }
    }

    /// The approximate number of bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        match &self.form {
            Form::Packed { bytes, .. } => bytes.capacity(),
            Form::Table(table) => {
                let texts = |(f, v): (&Blob, &Blob)| f.heap_size() + v.heap_size();
                table.table_size() + table.iter().map(texts).sum::<usize>()
            }
        }
    }

    /// Converts the hash to a table if it, or a text about to be stored, is too large for the
    /// packed form.
    fn reshape_for(&mut self, longest: usize) {
        let len = self.len();
        if longest > MAX_PACKED_LEN || len > MAX_PACKED {
            self.redis_packed = false;
        }
        let most = if self.redis_packed { MAX_PACKED } else { MAX_PACKED_LONG };
        if len > most && matches!(self.form, Form::Packed { .. }) {
            let mut table = Dict::of_packed();
            for (field, value) in self.iter() {
                table.insert(field, Blob::new(value));
            }
            self.form = Form::Table(table);
        }
    }
}

/// An iterator over fields and values.
#[derive(Debug)]
pub(crate) enum Iter<'a> {
    /// In insertion order.
    Packed {
        /// The packed buffer.
        bytes: &'a [u8],
        /// The offset of the next field.
        at: usize,
    },
    /// In the order of the table.
    Table {
        /// The table.
        table: &'a Dict<Blob>,
        /// The next index.
        at: usize,
    },
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Packed { bytes, at } => {
                if *at == bytes.len() {
                    return None;
                }
                let (field_start, field_end) = text_at(bytes, *at);
                let (value_start, value_end) = text_at(bytes, field_end);
                *at = value_end;
                Some((&bytes[field_start..field_end], &bytes[value_start..value_end]))
            }
            Self::Table { table, at } => {
                let item = (*at < table.len()).then(|| table.at(*at))?;
                *at += 1;
                Some((item.0, item.1))
            }
        }
    }
}

struct Found {
    start: usize,
    field_end: usize,
    value_start: usize,
    end: usize,
}

fn find(bytes: &[u8], field: &[u8]) -> Option<Found> {
    let mut start = 0;
    while start < bytes.len() {
        let (field_start, field_end) = text_at(bytes, start);
        let (value_start, end) = text_at(bytes, field_end);
        if bytes[field_start..field_end] == *field {
            return Some(Found { start, field_end, value_start, end });
        }
        start = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(hash: &Hash) -> Vec<String> {
        hash.iter().map(|(field, _)| String::from_utf8_lossy(field).into_owned()).collect()
    }

    #[test]
    fn a_small_hash_keeps_the_order_of_insertion() {
        let mut hash = Hash::default();
        for field in ["name", "data", "opts"] {
            assert!(hash.set(field.as_bytes(), b"1"));
        }
        assert!(!hash.set(b"name", &[b'x'; 60]));
        assert!(hash.remove(b"data"));
        assert!(hash.set(b"data", b"2"));
        assert_eq!(fields(&hash), ["name", "opts", "data"]);
        assert_eq!(hash.get(b"name"), Some(&[b'x'; 60][..]));
        assert_eq!(hash.encoding(), "listpack");
    }

    #[test]
    fn a_scan_returns_a_few_fields_at_a_time_while_the_hash_becomes_a_table() {
        let mut hash = Hash::default();
        hash.set(b"long", &[b'x'; 100]);
        for number in 0..24 {
            hash.set(format!("f{number}").as_bytes(), b"v");
        }
        let (mut cursor, mut seen, mut steps, mut most) = (0, Vec::new(), 0, 0);
        loop {
            let before = seen.len();
            cursor = hash.scan(cursor, |field, _| seen.push(field.to_vec()));
            most = most.max(seen.len() - before);
            if cursor == 0 {
                break;
            }
            steps += 1;
            // It grows beyond what stays packed here.
            if steps < 30 {
                hash.set(format!("new{steps}").as_bytes(), b"v");
            }
        }
        let stayed = (0..24).map(|number| format!("f{number}").into_bytes());
        for field in stayed.chain([b"long".to_vec()]) {
            assert!(seen.contains(&field), "{}", field.escape_ascii());
        }
        assert!(steps > 10 && most < 12, "{steps} steps, at most {most} fields");
        assert!(matches!(hash.form, Form::Table(_)));
    }

    #[test]
    fn long_values_survive_packing_and_tables() {
        let mut hash = Hash::default();
        for number in 0..600_usize {
            hash.set(format!("f{number}").as_bytes(), &vec![b'v'; number]);
        }
        assert_eq!(hash.encoding(), "hashtable");
        for number in 0..600_usize {
            let value = hash.get(format!("f{number}").as_bytes());
            assert_eq!(value, Some(&*vec![b'v'; number]));
        }
        assert_eq!(hash.len(), 600);
    }
}
