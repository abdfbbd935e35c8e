//! One row of the table of settings, and the macro that makes the table.

/// Everything about a setting that does not depend on its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The environment variable.
    pub(crate) name: &'static str,
    /// The flag of the command line; `None`: the setting is a variable only.
    pub(crate) flag: Option<Flag>,
    /// The default as people read it.
    pub(crate) default: &'static str,
    /// What the setting does, in one sentence: for `--help` and for `docs/settings.md`.
    pub(crate) meaning: &'static str,
    /// More about it, for `docs/settings.md` alone.
    pub(crate) details: &'static str,
    /// Another setting that this one is ignored beside.
    pub(crate) ignored_beside: Option<&'static str>,
    pub(crate) workers: Workers,
    pub(crate) secrecy: Secrecy,
}

/// A flag such as `--port PORT`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag {
    /// The name without dashes before it.
    pub(crate) long: &'static str,
    /// The word that stands for the value in the help.
    pub(crate) value: &'static str,
}

/// Whether the supervisor hands a setting to worker processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workers {
    GetIt,
    DoNot,
}

/// Whether the value of a setting may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrecy {
    Shown,
    Hidden,
}

type Parse<T> = Box<dyn Fn(&str) -> Result<T, String>>;

/// A setting with its type: how a text becomes a value, and the value when there is no text.
pub(crate) struct Row<T> {
    pub(super) setting: Setting,
    /// Turns a text into the value; the error says what would be right.
    pub(super) parse: Parse<T>,
    pub(super) fallback: Fallback<T>,
}

/// The value of a setting that nobody has set.
pub(super) enum Fallback<T> {
    /// The value of this text.
    Text(&'static str),
    /// The result of a computation.
    Computed(Box<dyn Fn() -> T>),
}

impl<T> Row<T> {
    fn new(
        name: &'static str,
        default: &'static str,
        parse: Parse<T>,
        fallback: Fallback<T>,
    ) -> Self {
        let setting = Setting {
            name,
            flag: None,
            default,
            meaning: "",
            details: "",
            ignored_beside: None,
            workers: Workers::DoNot,
            secrecy: Secrecy::Shown,
        };
        Self { setting, parse, fallback }
    }

    /// The setting is a flag, too: its name, and the word for its value.
    pub(super) fn flag(mut self, long: &'static str, value: &'static str) -> Self {
        self.setting.flag = Some(Flag { long, value });
        self
    }

    /// What the setting does, in one sentence.
    pub(super) fn means(mut self, meaning: &'static str) -> Self {
        self.setting.meaning = meaning;
        self
    }

    /// What else the document says.
    pub(super) fn details(mut self, details: &'static str) -> Self {
        self.setting.details = details;
        self
    }

    /// The setting is ignored, and not even checked, if the other one is set.
    pub(super) fn ignored_beside(mut self, other: &'static str) -> Self {
        self.setting.ignored_beside = Some(other);
        self
    }

    /// The supervisor hands the setting to worker processes.
    pub(super) fn for_workers(mut self) -> Self {
        self.setting.workers = Workers::GetIt;
        self
    }

    /// The value is never shown.
    pub(super) fn secret(mut self) -> Self {
        self.setting.secrecy = Secrecy::Hidden;
        self
    }
}

/// A setting whose default is the value of a text.
pub(super) fn setting<T>(
    name: &'static str,
    default: &'static str,
    parse: impl Fn(&str) -> Result<T, String> + 'static,
) -> Row<T> {
    Row::new(name, default, Box::new(parse), Fallback::Text(default))
}

/// A setting whose default is computed; `default` describes it.
pub(super) fn computed<T>(
    name: &'static str,
    default: &'static str,
    value: impl Fn() -> T + 'static,
    parse: impl Fn(&str) -> Result<T, String> + 'static,
) -> Row<T> {
    Row::new(name, default, Box::new(parse), Fallback::Computed(Box::new(value)))
}

/// A setting that may be absent; `default` describes what happens then.
pub(super) fn optional<T: 'static>(
    name: &'static str,
    default: &'static str,
    parse: impl Fn(&str) -> Result<T, String> + 'static,
) -> Row<Option<T>> {
    computed(name, default, || None, move |text| parse(text).map(Some))
}

/// Settings under one heading of the document.
pub(crate) struct Group {
    pub(crate) heading: &'static str,
    pub(crate) settings: Vec<Setting>,
}

/// Makes of the rows: the struct `Values` with a field for each, a function for each row in the module
/// `rows`, and `groups()`, the table as data.
macro_rules! settings {
    ($( $heading:literal { $( $field:ident: $type:ty = $row:expr; )* } )*) => {
        /// The checked value of every setting.
        #[derive(Clone)]
        pub(crate) struct Values { $( $( pub(crate) $field: $type, )* )* }

        impl Values {
            /// Reads all settings. `None` means that a default of the table is wrong: then the reader has
            /// a mistake that names it.
            pub(in crate::settings) fn read(reader: &mut Reader<'_>) -> Option<Self> {
                Some(Self { $( $( $field: reader.value(&rows::$field())?, )* )* })
            }
        }

        /// Each row, for code that reads one setting alone.
        pub(super) mod rows {
            use super::*;
            $( $( pub(in crate::settings) fn $field() -> Row<$type> { $row } )* )*
        }

        /// The table as data, in the order of the document.
        pub(crate) fn groups() -> Vec<Group> {
            vec![ $( Group { heading: $heading, settings: vec![ $( rows::$field().setting, )* ] }, )* ]
        }
    };
}
pub(super) use settings;
