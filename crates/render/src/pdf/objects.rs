//! Indirect objects one after the other, and where each of them begins.

use crate::pdf::deflate::Deflater;
use crate::pdf::write::integer;

/// Writes objects and remembers their places.
pub(crate) struct Objects<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    /// Bytes that went elsewhere before `out`.
    pub(crate) before: u64,
    /// Number and place of every object written.
    pub(crate) places: &'a mut Vec<(u32, u64)>,
    pub(crate) deflater: Option<&'a mut Deflater>,
}

impl Objects<'_> {
    /// Writes an object.
    pub(crate) fn object(&mut self, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
        self.begin(number);
        write(self.out);
        self.out.extend_from_slice(b"\nendobj\n");
    }

    /// Writes a stream; `entries` go into its dictionary.
    pub(crate) fn stream(&mut self, number: u32, entries: &[u8], data: &[u8]) {
        self.begin(number);
        let packed = match &mut self.deflater {
            Some(deflater) => deflater.deflate(data),
            None => None,
        };
        self.out.extend_from_slice(b"<</Length ");
        integer(self.out, packed.map_or(data, |packed| packed).len() as u64);
        if packed.is_some() {
            self.out.extend_from_slice(b"/Filter/FlateDecode");
        }
        self.out.extend_from_slice(entries);
        self.out.extend_from_slice(b">>stream\n");
        self.out.extend_from_slice(packed.unwrap_or(data));
        self.out.extend_from_slice(b"\nendstream\nendobj\n");
    }

    fn begin(&mut self, number: u32) {
        self.places.push((number, self.before + self.out.len() as u64));
        integer(self.out, u64::from(number));
        self.out.extend_from_slice(b" 0 obj\n");
    }
}
