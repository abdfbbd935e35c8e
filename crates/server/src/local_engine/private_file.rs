//! A file that only its owner can read, replaced as a whole.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

/// Writes a file of mode 600, or of the mode and group that an operator gave it. A reader finds the old
/// content or the new one, also after a power cut. A file that has this content already is not touched.
pub(super) fn write(path: &Path, content: &str) -> io::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = Path::new(&temporary);
    match std::fs::remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
    if let Ok(old) = std::fs::metadata(path)
        && chown(temporary, None, Some(old.gid())).is_ok()
    {
        file.set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
    }
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(temporary, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_new_file_is_private_and_a_replaced_one_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.url");
        // What a killed process may have left, readable by all.
        std::fs::write(folder.path().join("engine.url.tmp"), "half").unwrap();
        write(&path, "one").unwrap();
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write(&path, "two").unwrap();
        assert_eq!((mode(&path), std::fs::read_to_string(&path).unwrap().as_str()), (0o640, "two"));
        let inode = std::fs::metadata(&path).unwrap().ino();
        write(&path, "two").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
