//! A ZIP that is written piece by piece. Entries are not compressed; checksum and size stand before their
//! bytes, so that readers that cannot seek understand it.

use async_zip::base::write::ZipFileWriter;
use async_zip::error::ZipError;
use async_zip::{Compression, ZipDateTimeBuilder, ZipEntryBuilder};

/// Archives with at least this many entries are ZIP64. Smaller ones are not, for older readers.
const ZIP64_FROM: u64 = 65_000;

/// An archive that is being written.
pub(super) struct Archive {
    zip: ZipFileWriter<Vec<u8>>,
}

impl Archive {
    /// An archive for about this many entries.
    pub(super) fn new(entries: u64) -> Self {
        let zip = ZipFileWriter::new(Vec::new());
        Self { zip: if entries >= ZIP64_FROM { zip.force_zip64() } else { zip } }
    }

    /// Adds a file; returns the bytes that this added to the archive.
    pub(super) async fn add(&mut self, name: String, content: &[u8]) -> Result<Vec<u8>, ZipError> {
        // The first day that ZIP knows: equal tickets give equal bytes on every day.
        let day = ZipDateTimeBuilder::new().year(1980).month(1).day(1).build();
        let entry =
            ZipEntryBuilder::new(name.into(), Compression::Stored).last_modification_date(day);
        self.zip.write_entry_whole(entry, content).await?;
        Ok(std::mem::take(self.zip.inner_mut()))
    }

    /// Ends the archive with its directory; returns the bytes of that.
    pub(super) async fn finish(self) -> Result<Vec<u8>, ZipError> {
        self.zip.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;

    use super::*;

    /// Writes an archive with so many entries and has Python check it.
    async fn is_sound(entries: u64, content: &[u8]) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut archive = Archive::new(entries);
        for n in 0..entries {
            file.write_all(&archive.add(format!("ticket-{n:05}.pdf"), content).await.unwrap())
                .unwrap();
        }
        file.write_all(&archive.finish().await.unwrap()).unwrap();
        let script = "import sys, zipfile\n\
                      z = zipfile.ZipFile(sys.argv[1])\n\
                      print(len(z.namelist()), z.testzip(), z.namelist()[-1], z.infolist()[-1].header_offset)";
        let output =
            Command::new("python3").args(["-c", script]).arg(file.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr)
    }

    #[tokio::test]
    async fn more_entries_than_old_archives_can_count_are_no_problem() {
        let told = is_sound(66_000, b"x").await;
        assert!(told.starts_with("66000 None ticket-65999.pdf"), "{told}");
        let told = is_sound(3, b"").await;
        assert!(told.starts_with("3 None ticket-00002.pdf"), "{told}");
    }
}
