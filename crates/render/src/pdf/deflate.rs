//! Compressing streams, for those who prefer smaller files to quicker ones.

use libdeflater::{CompressionLvl, Compressor};

/// Level of libdeflate: the quickest. Higher ones take twice as long for a hundredth of the size.
const LEVEL: i32 = 1;

/// Compresses streams into memory that is used again.
pub(crate) struct Deflater {
    compressor: Compressor,
    packed: Vec<u8>,
}

impl Deflater {
    pub(crate) fn new() -> Self {
        let level = CompressionLvl::new(LEVEL).unwrap_or_default();
        Self { compressor: Compressor::new(level), packed: Vec::new() }
    }

    /// The compressed bytes, or `None` if they would be no fewer.
    pub(crate) fn deflate(&mut self, data: &[u8]) -> Option<&[u8]> {
        let bound = self.compressor.zlib_compress_bound(data.len());
        if self.packed.len() < bound {
            self.packed.resize(bound, 0);
        }
        let length = self.compressor.zlib_compress(data, &mut self.packed).ok()?;
        (length < data.len()).then(|| &self.packed[..length])
    }
}
