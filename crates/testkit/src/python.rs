//! Python with packages of PyPI.

use std::path::Path;
use std::process::Command;

/// The Python that has these packages, which `interop/run` installs outside the clone: `mail-packages`, say.
pub fn python(packages: &str) -> String {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/run");
    let output = Command::new(&run).arg(packages).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", run.display()));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    format!("{}/venv/bin/python", said.trim())
}
