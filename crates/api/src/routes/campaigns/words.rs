//! The words of closed sets, as fields of forms.

use std::fmt;

use stampede_model::campaign::{Channel, Day, SuppressionReason};

/// Declares a type for a word of a closed set, whose schema says what the words are.
macro_rules! inline_word {
    ($(#[doc = $doc:literal])* $name:ident of $value:ty { $($word:literal => $variant:expr,)* }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name(pub(crate) $value);

        impl $name {
            /// The words.
            pub(crate) const WORDS: &'static [&'static str] = &[$($word),*];
        }

        impl std::str::FromStr for $name {
            type Err = $crate::routes::campaigns::words::NoWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self($variant)),)*
                    _ => Err($crate::routes::campaigns::words::NoWord(Self::WORDS)),
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($word),*] })
            }
        }
    };
}

pub(crate) use inline_word;

/// The text is none of the words.
pub(crate) struct NoWord(pub(crate) &'static [&'static str]);

impl fmt::Display for NoWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [all @ .., last] => write!(f, "must be {} or {last}", all.join(", ")),
            [] => Ok(()),
        }
    }
}

inline_word! {
    /// How messages travel.
    ChannelWord of Channel {
        "console" => Channel::Console,
        "webhook" => Channel::Webhook,
        "smtp" => Channel::Smtp,
        "telegram" => Channel::Telegram,
        "whatsapp" => Channel::Whatsapp,
        "sms" => Channel::Sms,
    }
}

inline_word! {
    /// Why an address gets nothing any more.
    ReasonWord of SuppressionReason {
        "stop" => SuppressionReason::Stop,
        "bounce" => SuppressionReason::Bounce,
        "complaint" => SuppressionReason::Complaint,
        "blocked" => SuppressionReason::Blocked,
        "manual" => SuppressionReason::Manual,
    }
}

inline_word! {
    /// A day of the week.
    DayWord of Day {
        "monday" => Day::Monday,
        "tuesday" => Day::Tuesday,
        "wednesday" => Day::Wednesday,
        "thursday" => Day::Thursday,
        "friday" => Day::Friday,
        "saturday" => Day::Saturday,
        "sunday" => Day::Sunday,
    }
}

/// Whether recipients bring their own messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentKind {
    Own,
    Template,
}

inline_word! {
    /// What is sent.
    ContentWord of ContentKind {
        "own" => ContentKind::Own,
        "template" => ContentKind::Template,
    }
}
