//! Migrations are embedded at compile time; a new file among them has to cause a new build.
#![allow(clippy::print_stdout)]

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
