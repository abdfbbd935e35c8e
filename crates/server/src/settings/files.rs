//! The folder of PDFs, from `STORAGE_TYPE`, `PUBLIC_PATH`, `NFS_PATH` and `DATA_DIR`.

use std::path::PathBuf;

use super::reader::Reader;
use super::table::{Storage, Values};

/// The folder where PDFs are kept.
pub(super) fn read_public_path(reader: &mut Reader<'_>, values: &Values) -> PathBuf {
    match (values.storage_type, &values.nfs_path) {
        (Storage::Nfs, Some(path)) => {
            // The folder is not created: it would be on this machine only, and no other node would see it.
            if !path.is_dir() {
                let right = "is no folder on this machine: is the share mounted?";
                reader.mistake("NFS_PATH", path.display(), right);
            }
            path.clone()
        }
        (Storage::Nfs, None) => {
            let right = "needs NFS_PATH, the folder where the share is mounted";
            reader.mistake("STORAGE_TYPE", "nfs", right);
            PathBuf::new()
        }
        (Storage::Local, _) => {
            values.given_public_path.clone().unwrap_or_else(|| values.data_dir.join("public"))
        }
    }
}
