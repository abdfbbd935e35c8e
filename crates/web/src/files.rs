//! The files of the page, embedded.

/// What a file is; decides its content type and whether comments are taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The page itself.
    Html,
    /// Styles.
    Css,
    /// A module, or the service worker.
    JavaScript,
    /// What makes the page installable.
    Manifest,
    /// A drawing.
    Svg,
    /// A picture.
    Png,
}

impl Kind {
    /// The value of `Content-Type`.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Css => "text/css; charset=utf-8",
            Self::JavaScript => "text/javascript; charset=utf-8",
            Self::Manifest => "application/manifest+json",
            Self::Svg => "image/svg+xml",
            Self::Png => "image/png",
        }
    }
}

/// One file of the page.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path below `assets/`.
    pub(crate) path: &'static str,
    /// What it is.
    pub(crate) kind: Kind,
    /// Its bytes, as written.
    pub(crate) bytes: &'static [u8],
}

macro_rules! files {
    ($($kind:ident $path:literal)*) => {
        &[$(File {
            path: $path,
            kind: Kind::$kind,
            bytes: include_bytes!(concat!("../assets/", $path)),
        }),*]
    };
}

/// The page.
pub(crate) static PAGE: &str = "gate.html";
/// The service worker.
pub(crate) static SERVICE_WORKER: &str = "sw.js";
/// The manifest.
pub(crate) static MANIFEST: &str = "manifest.webmanifest";

/// All files.
pub(crate) static FILES: &[File] = files! {
    Html "gate.html"
    JavaScript "sw.js"
    Manifest "manifest.webmanifest"
    Css "gate.css"
    Svg "icon.svg"
    Png "icon-192.png"
    Png "icon-512.png"
    JavaScript "js/api.js"
    JavaScript "js/bundle.js"
    JavaScript "js/camera.js"
    JavaScript "js/database.js"
    JavaScript "js/decide.js"
    JavaScript "js/device.js"
    JavaScript "js/door.js"
    JavaScript "js/feedback.js"
    JavaScript "js/hand-scanner.js"
    JavaScript "js/main.js"
    JavaScript "js/menu.js"
    JavaScript "js/outbox.js"
    JavaScript "js/page.js"
    JavaScript "js/photo.js"
    JavaScript "js/scan-worker.js"
    JavaScript "js/setup.js"
    JavaScript "js/sync.js"
    JavaScript "js/texts.js"
    JavaScript "js/token.js"
    JavaScript "js/trusted.js"
    JavaScript "js/verdict.js"
    JavaScript "js/qr/finders.js"
    JavaScript "js/qr/perspective.js"
    JavaScript "js/qr/picture.js"
    JavaScript "js/qr/read.js"
    JavaScript "js/qr/reed-solomon.js"
    JavaScript "js/qr/symbol.js"
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn add_files(folder: &Path, below: &str, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{below}{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                add_files(&entry.path(), &format!("{path}/"), found);
            } else if !path.ends_with(".d.ts") {
                found.insert(path);
            }
        }
    }

    #[test]
    fn every_file_in_the_folder_is_embedded() {
        let mut found = BTreeSet::new();
        add_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("assets"), "", &mut found);
        let embedded: BTreeSet<_> = FILES.iter().map(|file| file.path.to_owned()).collect();
        assert_eq!(embedded, found);
    }
}
