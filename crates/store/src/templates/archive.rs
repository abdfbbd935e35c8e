//! The files of a template as one tar archive: equal files give equal bytes, and any tar can open it.

use std::collections::BTreeMap;
use std::io::Read;

use stampede_model::TemplateFiles;

/// Packs the files in the order of their names, without times and owners.
pub(crate) fn pack(files: &TemplateFiles) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files.iter() {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        // Names are relative and without dots by construction, and writing into a Vec does not fail.
        let appended = archive.append_data(&mut header, name, bytes);
        debug_assert!(appended.is_ok(), "{name}: {appended:?}");
    }
    archive.into_inner().unwrap_or_default()
}

/// Reads an archive that [`pack`] wrote.
pub(crate) fn unpack(archive: &[u8]) -> Result<TemplateFiles, String> {
    let mut files = BTreeMap::new();
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(|error| error.to_string())? {
        let mut entry = entry.map_err(|error| error.to_string())?;
        let name = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|_| "a name is not UTF-8".to_owned())?;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        files.insert(name, bytes);
    }
    TemplateFiles::new(files).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> TemplateFiles {
        let long = format!("{}/{}.png", "ä".repeat(45), "ö".repeat(45));
        let files = [
            ("template.typ".to_owned(), b"Hello".to_vec()),
            ("img/logo.png".to_owned(), (0..=255).cycle().take(100_000).collect()),
            (long, Vec::new()),
        ];
        TemplateFiles::new(files.into()).unwrap()
    }

    #[test]
    fn files_come_back_as_they_were() {
        assert_eq!(unpack(&pack(&files())).unwrap(), files());
        assert_eq!(pack(&files()), pack(&files()));
    }

    #[test]
    fn a_damaged_archive_is_an_error() {
        let whole = pack(&files());
        for end in [0, 1, 511, 513, whole.len() / 2] {
            assert!(unpack(&whole[..end]).is_err(), "{end}");
        }
        assert!(unpack(&vec![b'x'; 10_000]).is_err());
    }
}
