//! The texts that people gave, unchecked: from flags first, then from variables.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Command};

use super::row::Setting;
use super::table::groups;

/// The heading of settings in the help.
pub(crate) const HEADING: &str = "Settings";

/// Reads an environment variable.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The settings of the command line: for each variable with a flag, the flag's text, or else the
/// variable's.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    texts: BTreeMap<&'static str, String>,
}

impl Given {
    /// The text for each setting that has one. An empty text counts as none.
    pub(super) fn texts(&self, environment: Environment<'_>) -> Texts {
        let text = |name: &'static str| self.texts.get(name).cloned().or_else(|| environment(name));
        let settings = groups().into_iter().flat_map(|group| group.settings);
        let given = settings.filter_map(|setting| Some((setting.name, text(setting.name)?)));
        Texts(given.filter(|(_, text)| !text.trim().is_empty()).collect())
    }
}

/// The text of each setting that somebody has set.
#[derive(Clone, Default)]
pub(super) struct Texts(BTreeMap<&'static str, String>);

impl Texts {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, text)| (*name, text.as_str()))
    }
}

impl std::fmt::Debug for Texts {
    /// Names only: texts may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

impl clap::Args for Given {
    fn augment_args(command: Command) -> Command {
        let settings = groups().into_iter().flat_map(|group| group.settings);
        command.args(settings.filter_map(|setting| argument(&setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self::default();
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in groups().into_iter().flat_map(|group| group.settings) {
            let Some(flag) = setting.flag else { continue };
            if let Ok(Some(text)) = matches.try_get_one::<String>(flag.long) {
                self.texts.insert(setting.name, text.clone());
            }
        }
        Ok(())
    }
}

/// The flag of a setting. It is understood by every command; its text may come from the variable.
fn argument(setting: &Setting) -> Option<Arg> {
    let flag = setting.flag?;
    let help = format!("{} [default: {}]", setting.meaning, setting.default);
    let argument = Arg::new(flag.long).long(flag.long).value_name(flag.value).env(setting.name);
    Some(argument.hide_env_values(true).global(true).help(help).help_heading(HEADING))
}

#[cfg(test)]
impl<const N: usize> From<[(&'static str, &str); N]> for Given {
    fn from(texts: [(&'static str, &str); N]) -> Self {
        Self { texts: texts.map(|(name, text)| (name, text.to_owned())).into() }
    }
}
