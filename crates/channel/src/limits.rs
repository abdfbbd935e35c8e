//! How fast messages of an account may leave, how long they may be, and whether a message may be given twice.

use stampede_model::campaign::{Channel, Rate};

use crate::account::Account;
use crate::{console, smtp, webhook, whatsapp};

/// The limits of a provider, besides those that people set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// For all messages of the account.
    pub channel: Option<Rate>,
    /// For the messages to one person.
    pub pair: Option<Rate>,
}

/// The limits of an account's provider.
pub fn limits(account: &Account) -> Limits {
    let a_second = |max| Some(Rate { max, per_ms: 1_000 });
    match account.channel {
        Channel::Telegram => Limits { channel: a_second(25), pair: a_second(1) },
        Channel::Whatsapp => {
            let settings = serde_json::from_str::<whatsapp::Settings>(&account.settings);
            let also_in_app = settings.is_ok_and(|settings| settings.also_in_app);
            let channel = a_second(if also_in_app { 20 } else { 60 });
            Limits { channel, pair: Some(Rate { max: 1, per_ms: 6_000 }) }
        }
        Channel::Console | Channel::Webhook | Channel::Smtp | Channel::Sms => Limits::default(),
    }
}

/// The limits for the messages to one address, all of which hold: that of [`limits`], and 20 a minute for groups and channels of
/// Telegram.
pub fn pair_limits(account: &Account, address: &str) -> Vec<Rate> {
    let is_group = account.channel == Channel::Telegram && address.starts_with(['-', '@']);
    let of_group = is_group.then_some(Rate { max: 20, per_ms: 60_000 });
    limits(account).pair.into_iter().chain(of_group).collect()
}

/// Most messages of an account that a channel sends at the same time, over all processes; `None`: as many as there are.
pub fn most_at_once(channel: Channel) -> Option<u32> {
    match channel {
        Channel::Smtp => Some(smtp::MOST_CONNECTIONS),
        Channel::Console
        | Channel::Webhook
        | Channel::Telegram
        | Channel::Whatsapp
        | Channel::Sms => None,
    }
}

/// Whether the provider carries out a message once, however often it is given the same id.
pub fn is_idempotent(account: &Account) -> bool {
    match account.channel {
        Channel::Console => {
            let settings = serde_json::from_str::<console::Settings>(&account.settings);
            settings.is_ok_and(|settings| settings.is_always_known())
        }
        Channel::Webhook => {
            let settings = serde_json::from_str::<webhook::Settings>(&account.settings);
            settings.is_ok_and(|settings| settings.idempotent)
        }
        Channel::Smtp | Channel::Telegram | Channel::Whatsapp | Channel::Sms => false,
    }
}

/// Most of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Longest {
    /// How many.
    pub most: usize,
    /// Of what.
    pub unit: Unit,
}

/// How a length is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Characters (code points).
    Characters,
    /// UTF-16 code units.
    Utf16,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The length of a text.
    pub fn count(self, text: &str) -> usize {
        match self {
            Self::Characters => text.chars().count(),
            Self::Utf16 => text.encode_utf16().count(),
            Self::Bytes => text.len(),
        }
    }
}

/// The longest text that a channel sends. WhatsApp's is for texts and for the values of a template together.
pub fn longest(channel: Channel) -> Longest {
    let (most, unit) = match channel {
        Channel::Telegram => (4_096, Unit::Utf16),
        Channel::Whatsapp => (4_096, Unit::Characters),
        // What Twilio takes: ten segments and a little.
        Channel::Sms => (1_600, Unit::Characters),
        Channel::Smtp => (512 << 10, Unit::Bytes),
        Channel::Console | Channel::Webhook => (64 << 10, Unit::Bytes),
    };
    Longest { most, unit }
}

#[cfg(test)]
mod tests {
    use stampede_model::Timestamp;

    use super::*;

    fn account(channel: Channel, settings: &str) -> Account {
        let id = "a".parse().unwrap();
        let (settings, credentials) = (settings.to_owned(), Vec::new());
        Account { id, channel, settings, credentials, version: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn each_channel_has_the_limits_of_its_provider() {
        let rates = |channel, settings| {
            let Limits { channel, pair } = limits(&account(channel, settings));
            let told = |rate: Rate| (rate.max, rate.per_ms);
            (channel.map(told), pair.map(told))
        };
        let number = r#"{"phoneNumberId":"1","apiVersion":"v23.0","alsoInApp":false}"#;
        let in_app = number.replace("false", "true");
        assert_eq!(rates(Channel::Telegram, "{}"), (Some((25, 1_000)), Some((1, 1_000))));
        assert_eq!(rates(Channel::Whatsapp, number), (Some((60, 1_000)), Some((1, 6_000))));
        assert_eq!(rates(Channel::Whatsapp, &in_app), (Some((20, 1_000)), Some((1, 6_000))));
        for channel in [Channel::Console, Channel::Webhook, Channel::Smtp, Channel::Sms] {
            assert_eq!(rates(channel, "{}"), (None, None), "{channel:?}");
        }
        let telegram = account(Channel::Telegram, "{}");
        let (second, minute) = (Rate { max: 1, per_ms: 1_000 }, Rate { max: 20, per_ms: 60_000 });
        for (address, wanted) in
            [("42", &[second][..]), ("-100123", &[second, minute]), ("@news", &[second, minute])]
        {
            assert_eq!(pair_limits(&telegram, address), wanted, "{address}");
        }
        let pair = pair_limits(&account(Channel::Whatsapp, number), "-1");
        assert_eq!(pair, [Rate { max: 1, per_ms: 6_000 }]);
        assert_eq!(pair_limits(&account(Channel::Webhook, "{}"), "@any"), []);
    }

    #[test]
    fn mail_has_no_more_messages_on_their_way_than_connections() {
        for channel in Channel::ALL {
            let most = (channel == Channel::Smtp).then_some(4);
            assert_eq!(most_at_once(channel), most, "{channel:?}");
        }
    }

    #[test]
    fn only_a_channel_that_promises_it_is_idempotent() {
        for (channel, settings, promised) in [
            (Channel::Console, "{}", true),
            (Channel::Console, r#"{"unknown":0.5}"#, false),
            (Channel::Webhook, r#"{"url":"https://a.example/","idempotent":true}"#, true),
            (Channel::Webhook, r#"{"url":"https://a.example/","idempotent":false}"#, false),
            (Channel::Webhook, "{}", false),
            (Channel::Smtp, "{}", false),
            (Channel::Telegram, "{}", false),
            (Channel::Whatsapp, "{}", false),
            (Channel::Sms, "{}", false),
        ] {
            assert_eq!(
                is_idempotent(&account(channel, settings)),
                promised,
                "{channel:?} {settings}"
            );
        }
    }

    #[test]
    fn telegram_counts_an_emoji_twice() {
        let longest = longest(Channel::Telegram);
        assert_eq!((longest.most, longest.unit.count("a😀")), (4_096, 3));
    }
}
