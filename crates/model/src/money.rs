//! Money: an exact decimal amount with its currency. Never a float.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Largest amount a price may have; it keeps every ticket's price printable.
const MAX_AMOUNT: i64 = 1_000_000_000_000;

/// Why an amount or a currency was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not a decimal number.
    #[error("must be a decimal number such as 49.90")]
    NotANumber,
    /// Below zero or absurdly large.
    #[error("must be between 0 and {MAX_AMOUNT}")]
    OutOfRange,
    /// More decimal places than the currency has.
    #[error("has more decimal places than {currency} has ({places})")]
    TooPrecise {
        /// The currency in question.
        currency: Currency,
        /// How many places it has.
        places: u32,
    },
    /// Not an ISO 4217 code.
    #[error("must be a three-letter ISO 4217 code such as EUR")]
    UnknownCurrency,
}

/// An ISO 4217 currency.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Currency(iso_currency::Currency);

impl Currency {
    /// The United States dollar, the default of seed clients.
    pub const USD: Self = Self(iso_currency::Currency::USD);

    /// The three-letter code.
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// Decimal places of an amount in this currency.
    pub fn places(self) -> u32 {
        self.0.exponent().map_or(2, u32::from)
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Currency {
    type Err = MoneyError;

    fn from_str(code: &str) -> Result<Self, MoneyError> {
        iso_currency::Currency::from_code(code).map(Self).ok_or(MoneyError::UnknownCurrency)
    }
}

impl JsonSchema for Currency {
    fn schema_name() -> Cow<'static, str> {
        "Currency".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Z]{3}$", "examples": ["EUR"] })
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        code.parse().map_err(serde::de::Error::custom)
    }
}

/// An amount of money, held with exactly the decimal places of its currency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Money {
    amount: Decimal,
    currency: Currency,
}

impl Money {
    /// Reads an amount such as `49.9`; refuses what the currency cannot express.
    pub fn parse(amount: &str, currency: Currency) -> Result<Self, MoneyError> {
        let starts_and_ends_in_digits =
            amount.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit())
                && amount.ends_with(|c: char| c.is_ascii_digit());
        if !starts_and_ends_in_digits || amount.contains('_') {
            return Err(MoneyError::NotANumber);
        }
        let mut amount = Decimal::from_str_exact(amount)
            .or_else(|_| Decimal::from_scientific(amount))
            .map_err(|_| MoneyError::NotANumber)?;
        if amount.is_sign_negative() && !amount.is_zero() || amount > Decimal::from(MAX_AMOUNT) {
            return Err(MoneyError::OutOfRange);
        }
        let places = currency.places();
        if amount.normalize().scale() > places {
            return Err(MoneyError::TooPrecise { currency, places });
        }
        amount.rescale(places);
        amount.set_sign_positive(true);
        Ok(Self { amount, currency })
    }

    /// The sum of two amounts; `None`: they are in different currencies, or too large.
    pub fn plus(self, other: Self) -> Option<Self> {
        let amount = self.amount.checked_add(other.amount);
        let amount = amount.filter(|_| self.currency == other.currency)?;
        Some(Self { amount, ..self })
    }

    /// So many times the amount; `None`: it is too large.
    pub fn times(self, count: u64) -> Option<Self> {
        let amount = self.amount.checked_mul(Decimal::from(count))?;
        Some(Self { amount, ..self })
    }

    /// The currency.
    pub fn currency(self) -> Currency {
        self.currency
    }

    /// The amount with all of the currency's decimal places: `49.90`.
    pub fn amount(self) -> String {
        self.amount.to_string()
    }

    /// How a price is printed: `$49.90`, `€49.90`, or `49.90 KZT` where a symbol would be unclear.
    pub fn display(self) -> String {
        let symbol = match self.currency.code() {
            "USD" => "$",
            "EUR" => "€",
            "GBP" => "£",
            "JPY" => "¥",
            code => return format!("{} {code}", self.amount),
        };
        format!("{symbol}{}", self.amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn currency(code: &str) -> Currency {
        code.parse().unwrap()
    }

    #[test]
    fn amounts_take_the_places_of_their_currency() {
        for (text, code, shown) in [
            ("100", "USD", "$100.00"),
            ("19.99", "EUR", "€19.99"),
            ("0", "GBP", "£0.00"),
            ("-0", "GBP", "£0.00"),
            ("1500", "JPY", "¥1500"),
            ("1e3", "USD", "$1000.00"),
            ("2.500", "KWD", "2.500 KWD"),
            ("4500.50", "RUB", "4500.50 RUB"),
        ] {
            let money = Money::parse(text, currency(code)).unwrap();
            assert_eq!(money.display(), shown);
            assert_eq!(Money::parse(&money.amount(), currency(code)), Ok(money));
        }
    }

    #[test]
    fn amounts_of_one_currency_add_up_exactly() {
        let money = |text: &str, code: &str| Money::parse(text, currency(code)).unwrap();
        let sum = money("0.10", "EUR").plus(money("0.20", "EUR")).unwrap();
        assert_eq!(sum, money("0.30", "EUR"));
        assert_eq!(money("49.90", "EUR").times(100_000).unwrap().amount(), "4990000.00");
        assert_eq!(money("1", "EUR").plus(money("1", "USD")), None);
    }

    #[test]
    fn what_the_currency_cannot_express_is_refused() {
        for (text, code) in [
            ("-1", "USD"),
            ("1.999", "USD"),
            ("10.5", "JPY"),
            ("NaN", "USD"),
            ("", "USD"),
            ("12,50", "EUR"),
            ("1_0", "EUR"),
            ("5.", "EUR"),
            (".5", "EUR"),
            ("1e40", "USD"),
            ("1000000000001", "USD"),
        ] {
            assert!(Money::parse(text, currency(code)).is_err(), "{text} {code}");
        }
        assert_eq!("usd!".parse::<Currency>(), Err(MoneyError::UnknownCurrency));
    }
}
