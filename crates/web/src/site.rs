//! The files as they are sent: versioned, without comments, compressed.

use std::collections::BTreeMap;

use libdeflater::{CompressionLvl, Compressor};
use sha2::{Digest, Sha256};

use crate::files::{FILES, File, Kind, MANIFEST, PAGE, SERVICE_WORKER};
use crate::plain::without_comments;

/// Stands in the page, the service worker and the manifest for the version.
const VERSION: &str = "{{version}}";
/// Stands in the service worker for the list of all addresses that a phone without a network needs.
const ADDRESSES: &str = "'{{addresses}}'";

/// One file, ready to be sent.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) kind: Kind,
    pub(crate) body: Vec<u8>,
    /// The body compressed with gzip, where that makes it smaller.
    pub(crate) gzip: Option<Vec<u8>>,
    /// A hash of the body, quoted as the header wants it.
    pub(crate) tag: String,
}

/// All files, ready to be sent.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) version: String,
    files: BTreeMap<&'static str, Sent>,
}

impl Site {
    /// Prepares the embedded files; takes some milliseconds.
    pub(crate) fn new() -> Self {
        let version = version();
        let addresses = addresses(&version);
        let files = FILES.iter().map(|file| (file.path, prepare(file, &version, &addresses)));
        let files = files.collect();
        Self { version, files }
    }

    /// The file at a path below `assets/`.
    pub(crate) fn file(&self, path: &str) -> Option<&Sent> {
        self.files.get(path)
    }
}

/// A hash of all files: another binary with other files has other addresses.
fn version() -> String {
    let mut hash = Sha256::new();
    for file in FILES {
        hash.update(file.path.as_bytes());
        hash.update((file.bytes.len() as u64).to_be_bytes());
        hash.update(file.bytes);
    }
    hex::encode(&hash.finalize()[..6])
}

/// The addresses that the service worker keeps, as a JavaScript array.
fn addresses(version: &str) -> String {
    let files = FILES.iter().map(|file| file.path);
    let files = files.filter(|path| ![PAGE, SERVICE_WORKER, MANIFEST].contains(path));
    let mut addresses = vec!["'/gate'".to_owned(), format!("'/gate/{MANIFEST}'")];
    addresses.extend(files.map(|path| format!("'/gate/{version}/{path}'")));
    format!("[{}]", addresses.join(","))
}

fn prepare(file: &File, version: &str, addresses: &str) -> Sent {
    let body = match (file.kind, std::str::from_utf8(file.bytes)) {
        (Kind::Css | Kind::JavaScript, Ok(text)) => {
            without_comments(text).replace(VERSION, version).replace(ADDRESSES, addresses).into()
        }
        (Kind::Html | Kind::Manifest, Ok(text)) => text.replace(VERSION, version).into_bytes(),
        _ => file.bytes.to_vec(),
    };
    let tag = format!("\"{}\"", hex::encode(&Sha256::digest(&body)[..12]));
    let gzip = compress(&body).filter(|gzip| gzip.len() < body.len());
    Sent { kind: file.kind, body, gzip, tag }
}

fn compress(body: &[u8]) -> Option<Vec<u8>> {
    let mut compressor = Compressor::new(CompressionLvl::best());
    let mut gzip = vec![0; compressor.gzip_compress_bound(body.len())];
    let length = compressor.gzip_compress(body, &mut gzip).ok()?;
    gzip.truncate(length);
    Some(gzip)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both languages, the reader and everything that works without a network; a phone loads it once a version.
    const BUDGET: usize = 38 << 10;

    #[test]
    fn styles_and_modules_of_the_page_are_within_their_budget() {
        let site = Site::new();
        let counted =
            site.files.values().filter(|sent| matches!(sent.kind, Kind::Css | Kind::JavaScript));
        let bytes: usize = counted.map(|sent| sent.gzip.as_ref().unwrap_or(&sent.body).len()).sum();
        assert!(bytes < BUDGET, "{bytes} bytes are sent");
    }

    #[test]
    fn no_placeholder_is_left() {
        let site = Site::new();
        for (path, sent) in &site.files {
            assert!(!sent.body.windows(2).any(|two| two == b"{{"), "{path}");
        }
        let worker = String::from_utf8(site.file("sw.js").unwrap().body.clone()).unwrap();
        assert!(worker.contains(&format!("'/gate/{}/js/main.js'", site.version)), "{worker}");
    }

    #[test]
    fn compressed_files_are_the_same_files() {
        for (path, sent) in &Site::new().files {
            let Some(gzip) = &sent.gzip else { continue };
            let mut body = vec![0; sent.body.len()];
            libdeflater::Decompressor::new().gzip_decompress(gzip, &mut body).unwrap();
            assert_eq!(body, sent.body, "{path}");
        }
    }
}
