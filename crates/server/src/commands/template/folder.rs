//! A template in a folder: reads all files; writes only into new or empty folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::commands::myself;
use anyhow::{Context, Result, bail};
use stampede_model::{MAIN_FILE, TemplateFiles};

/// Deepest nesting of folders; a deeper one is most likely a loop of links.
const DEPTH: usize = 8;

/// The metadata of a file; it changes when the file is saved.
pub(super) type Traces = BTreeMap<String, (Option<SystemTime>, u64)>;

/// Reads all files but hidden ones and previews that were made before.
pub(super) fn read(dir: &Path, output: Option<&Path>) -> Result<TemplateFiles> {
    let mut files = BTreeMap::new();
    let mut size = 0;
    for (name, path) in list(dir, output)? {
        size += fs::metadata(&path).map_or(0, |found| found.len());
        if size > TemplateFiles::MAX_BYTES {
            let limit = TemplateFiles::MAX_BYTES >> 20;
            bail!("{} has more than {limit} MB; a template may have that at most", dir.display());
        }
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        files.insert(name, bytes);
    }
    if !files.contains_key(MAIN_FILE) {
        bail!(
            "there is no {MAIN_FILE} in {}; begin with: {} template new DIR",
            dir.display(),
            myself()
        );
    }
    TemplateFiles::new(files).with_context(|| format!("the files in {}", dir.display()))
}

/// The metadata of all files.
pub(super) fn traces(dir: &Path, output: Option<&Path>) -> Result<Traces> {
    let traces = list(dir, output)?.into_iter().map(|(name, path)| {
        let found = fs::metadata(path).ok();
        let changed = found.as_ref().and_then(|found| found.modified().ok());
        (name, (changed, found.map_or(0, |found| found.len())))
    });
    Ok(traces.collect())
}

/// Name and path of each file.
fn list(dir: &Path, output: Option<&Path>) -> Result<Vec<(String, PathBuf)>> {
    let output = output.and_then(|path| path.canonicalize().ok());
    let mut found = Vec::new();
    walk(dir, "", 0, &mut found)?;
    found.retain(|(name, path)| {
        !matches!(name.as_str(), "preview.pdf" | "preview.png")
            && (output.is_none() || path.canonicalize().ok() != output)
    });
    Ok(found)
}

fn walk(dir: &Path, prefix: &str, depth: usize, found: &mut Vec<(String, PathBuf)>) -> Result<()> {
    if depth > DEPTH {
        bail!("{} is too deep in the template's folder", dir.display());
    }
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    for entry in entries {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            bail!("{} has a name that is not UTF-8", path.display());
        };
        // Hidden files, and backup files of editors.
        if name.starts_with('.') || name.ends_with('~') {
            continue;
        }
        let name = format!("{prefix}{name}");
        if path.is_dir() {
            walk(&path, &format!("{name}/"), depth + 1, found)?;
        } else {
            if found.len() > TemplateFiles::MAX_FILES + 2 {
                bail!("there are more than {} files", TemplateFiles::MAX_FILES);
            }
            found.push((name, path));
        }
    }
    Ok(())
}

/// Writes the files of a design into a new or empty folder.
pub(super) fn write(dir: &Path, files: &TemplateFiles) -> Result<()> {
    let taken = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if taken {
        bail!("{} is not empty; choose a new folder", dir.display());
    }
    for (name, bytes) in files.iter() {
        let path = dir.join(name);
        let parent = path.parent().unwrap_or(dir);
        let made = fs::create_dir_all(parent).and_then(|()| fs::write(&path, bytes));
        made.with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Writes a file atomically: a viewer that reloads it never sees half of it.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let write = || -> std::io::Result<()> {
        // Temporary files are private; a preview gets the permissions of any new file.
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        let mut builder = tempfile::Builder::new();
        let mut draft = builder.prefix(".preview-").permissions(rights).tempfile_in(folder)?;
        std::io::Write::write_all(&mut draft, bytes)?;
        draft.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_without_hidden_files_and_previews() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("t");
        let files = BTreeMap::from([
            ("template.typ".to_owned(), b"x".to_vec()),
            ("img/logo.png".to_owned(), vec![1]),
        ]);
        let files = TemplateFiles::new(files).unwrap();
        write(&dir, &files).unwrap();
        assert!(write(&dir, &files).unwrap_err().to_string().contains("not empty"));
        for name in [".git", "preview.pdf", "out.png", "template.typ~"] {
            fs::write(dir.join(name), "y").unwrap();
        }
        let output = dir.join("out.png");
        assert_eq!(read(&dir, Some(&output)).unwrap(), files);
        assert_eq!(traces(&dir, Some(&output)).unwrap().len(), 2);
        fs::remove_file(dir.join("template.typ")).unwrap();
        let message = read(&dir, None).unwrap_err().to_string();
        assert!(
            message.contains("no template.typ") && message.contains("template new"),
            "{message}"
        );
    }

    #[test]
    fn a_loop_of_links_ends() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("again")).unwrap();
        assert!(read(folder.path(), None).unwrap_err().to_string().contains("too deep"));
    }
}
