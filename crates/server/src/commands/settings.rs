//! `stampede settings`: the list of all settings, for the terminal or as `docs/settings.md`.

use crate::cli::SettingsList;
use crate::settings;

pub(crate) fn run(options: &SettingsList) {
    match options.markdown {
        true => print!("{}", settings::markdown()),
        false => print!("{}", settings::plain()),
    }
}
