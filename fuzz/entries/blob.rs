//! Any bytes are refused as a compiled template, or can be used without harm.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use stampede_render::blob::{VERSION, content_hash, decode};
use stampede_render::compiled::Compiled;
use stampede_render::{Merged, Prepared, Values, stamp};

/// The entry: `data` as a blob, and as the body of one whose checksum is right.
pub(crate) fn run(data: &[u8]) {
    assert_eq!(content_hash(data).len(), 32);
    use_blob(data);
    let mut blob = b"STPL".to_vec();
    blob.extend_from_slice(&VERSION.to_le_bytes());
    blob.extend_from_slice(&Sha256::digest(data));
    blob.extend_from_slice(data);
    use_blob(&blob);
}

fn use_blob(blob: &[u8]) {
    let Ok(Compiled::Stamped(stamped)) = decode(blob) else { return };
    let Ok(prepared) = Prepared::new(*stamped) else { return };
    let prepared = Arc::new(prepared);
    let names: Vec<String> = ["name", "seat", "price", "code", "event"].map(str::to_owned).to_vec();
    let fields: Vec<(&str, &str)> =
        names.iter().map(|name| (name.as_str(), "Ann محمد 12")).collect();
    let values = Values { id: "1", fields: &fields };
    stamp(&prepared, &values).ok();
    let mut merged = Merged::new(Vec::new(), "fuzz");
    merged.add(&prepared, &values).ok();
    merged.finish().ok();
}
