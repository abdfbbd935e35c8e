//! `cjson.decode`: JSON to Lua values, with the leniency and messages of lua-cjson.
//!
//! The text ends at its first zero byte, as in the original, which uses C strings.

use super::json::MAX_DEPTH;
use super::native::Raise;
use super::stack::Stack;

/// A token of the text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// A string; its text is in `Decoder::string`.
    String,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token {
    fn name(self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Error(text) => text,
        }
    }
}

/// `cjson.decode(text)`.
pub(super) fn decode(stack: &mut Stack<'_>) -> Result<usize, Raise> {
    if stack.args() != 1 {
        return Err(Raise::Argument(1, "expected 1 argument".to_owned()));
    }
    let text = stack.text(1)?;
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(Raise::Here("JSON parser does not support UTF-16 or UTF-32".to_owned()));
    }
    let config = stack.state().json.get();
    let mut decoder = Decoder {
        text,
        at: 0,
        token_at: 0,
        depth: 0,
        max_depth: MAX_DEPTH.min(config.decode_depth.max(0) as usize),
        invalid_numbers: config.decode_invalid,
        string: Vec::new(),
    };
    let token = decoder.next();
    decoder.push_value(stack, token)?;
    match decoder.next() {
        Token::End => Ok(1),
        token => Err(decoder.expected("the end", token)),
    }
}

struct Decoder<'a> {
    text: &'a [u8],
    at: usize,
    /// The offset of the last token, or of the error in it.
    token_at: usize,
    depth: usize,
    max_depth: usize,
    invalid_numbers: bool,
    string: Vec<u8>,
}

impl Decoder<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn expected(&self, what: &str, found: Token) -> Raise {
        let (found, at) = (found.name(), self.token_at + 1);
        Raise::Here(format!("Expected {what} but found {found} at character {at}"))
    }

    fn push_value(&mut self, stack: &mut Stack<'_>, token: Token) -> Result<(), Raise> {
        match token {
            Token::String => stack.push_bytes(&self.string),
            Token::Number(value) => stack.push_number(value),
            Token::Boolean(value) => stack.push_bool(value),
            Token::Null => stack.push_null_pointer(),
            Token::ObjectBegin => self.push_object(stack)?,
            Token::ArrayBegin => self.push_array(stack)?,
            token => return Err(self.expected("value", token)),
        }
        Ok(())
    }

    fn descend(&mut self, stack: &mut Stack<'_>) -> Result<(), Raise> {
        self.depth += 1;
        if self.depth <= self.max_depth && stack.ensure(3) {
            return Ok(());
        }
        let (depth, at) = (self.depth, self.at);
        Err(Raise::Here(format!(
            "Found too many nested data structures ({depth}) at character {at}"
        )))
    }

    fn push_object(&mut self, stack: &mut Stack<'_>) -> Result<(), Raise> {
        self.descend(stack)?;
        stack.push_table(0, 0);
        let mut token = self.next();
        if token != Token::ObjectEnd {
            loop {
                if token != Token::String {
                    return Err(self.expected("object key string", token));
                }
                stack.push_bytes(&self.string);
                match self.next() {
                    Token::Colon => {}
                    token => return Err(self.expected("colon", token)),
                }
                token = self.next();
                self.push_value(stack, token)?;
                stack.raw_set(-3)?;
                match self.next() {
                    Token::ObjectEnd => break,
                    Token::Comma => token = self.next(),
                    token => return Err(self.expected("comma or object end", token)),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn push_array(&mut self, stack: &mut Stack<'_>) -> Result<(), Raise> {
        self.descend(stack)?;
        stack.push_table(0, 0);
        let mut token = self.next();
        if token != Token::ArrayEnd {
            for n in 1.. {
                self.push_value(stack, token)?;
                stack.raw_set_at(-2, n);
                match self.next() {
                    Token::ArrayEnd => break,
                    Token::Comma => token = self.next(),
                    token => return Err(self.expected("comma or array end", token)),
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn next(&mut self) -> Token {
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.token_at = self.at;
        let single = match self.byte(0) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            0 => return Token::End,
            b'"' => return self.next_string(),
            b'-' | b'0'..=b'9' => {
                if !self.invalid_numbers && self.is_invalid_number() {
                    return Token::Error("invalid number");
                }
                return self.next_number();
            }
            _ => return self.next_word(),
        };
        self.at += 1;
        single
    }

    fn next_word(&mut self) -> Token {
        let words = [
            ("true", Token::Boolean(true)),
            ("false", Token::Boolean(false)),
            ("null", Token::Null),
        ];
        for (word, token) in words {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return token;
            }
        }
        let starts_number = matches!(self.byte(0), b'i' | b'I' | b'n' | b'N' | b'+');
        if starts_number && self.invalid_numbers && self.is_invalid_number() {
            return self.next_number();
        }
        Token::Error("invalid token")
    }

    fn next_string(&mut self) -> Token {
        self.string.clear();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0);
            let plain = rest.iter().position(special).unwrap_or(rest.len());
            self.string.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match self.byte(0) {
                b'"' => {
                    self.at += 1;
                    return Token::String;
                }
                b'\\' => {
                    let plain = match self.byte(1) {
                        byte @ (b'"' | b'\\' | b'/') => byte,
                        b'b' => 0x08,
                        b't' => b'\t',
                        b'n' => b'\n',
                        b'f' => 0x0c,
                        b'r' => b'\r',
                        b'u' => match self.unicode_escape() {
                            Some(used) => {
                                self.at += used;
                                continue;
                            }
                            None => return self.bad_string("invalid unicode escape code"),
                        },
                        _ => return self.bad_string("invalid escape code"),
                    };
                    self.string.push(plain);
                    self.at += 2;
                }
                _ => return self.bad_string("unexpected end of string"),
            }
        }
    }

    fn bad_string(&mut self, text: &'static str) -> Token {
        self.token_at = self.at;
        Token::Error(text)
    }

    /// Appends the character of `\uXXXX` or of a surrogate pair; returns the length of the escape.
    fn unicode_escape(&mut self) -> Option<usize> {
        let first = self.hex4(2)?;
        let (code, used) = if first & 0xf800 == 0xd800 {
            if first & 0x400 != 0 || self.byte(6) != b'\\' || self.byte(7) != b'u' {
                return None;
            }
            let second = self.hex4(8)?;
            if second & 0xfc00 != 0xdc00 {
                return None;
            }
            ((((first & 0x3ff) << 10) | (second & 0x3ff)) + 0x1_0000, 12)
        } else {
            (first, 6)
        };
        let mut buffer = [0; 4];
        self.string.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut buffer).as_bytes());
        Some(used)
    }

    fn hex4(&self, ahead: usize) -> Option<u32> {
        (0..4).try_fold(0, |value, n| {
            Some(value << 4 | char::from(self.byte(ahead + n)).to_digit(16)?)
        })
    }

    /// Whether a number that C accepts and JSON does not begins here.
    fn is_invalid_number(&self) -> bool {
        if self.byte(0) == b'+' {
            return true;
        }
        let skip = usize::from(self.byte(0) == b'-');
        match self.byte(skip) {
            b'0' => self.byte(skip + 1) | 0x20 == b'x' || self.byte(skip + 1).is_ascii_digit(),
            byte if byte <= b'9' => false,
            _ => ["inf", "nan"].iter().any(|word| self.has_word(skip, word)),
        }
    }

    fn has_word(&self, ahead: usize, word: &str) -> bool {
        self.text
            .get(self.at + ahead..self.at + ahead + word.len())
            .is_some_and(|text| text.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Parses a number like C's `strtod`: also hexadecimal, `inf` and `nan`.
    fn next_number(&mut self) -> Token {
        match self.strtod() {
            Some((value, len)) => {
                self.at += len;
                Token::Number(value)
            }
            None => Token::Error("invalid number"),
        }
    }

    fn strtod(&self) -> Option<(f64, usize)> {
        let negative = self.byte(0) == b'-';
        let start = usize::from(negative || self.byte(0) == b'+');
        let signed = |value: f64| if negative { -value } else { value };
        for (word, value) in
            [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)]
        {
            if self.has_word(start, word) {
                return Some((signed(value), start + word.len()));
            }
        }
        if self.byte(start) == b'0' && self.byte(start + 1) | 0x20 == b'x' {
            return Some(match self.hexadecimal(start + 2) {
                Some((value, end)) => (signed(value), end),
                None => (signed(0.0), start + 1),
            });
        }
        let digits = |mut at: usize| {
            while self.byte(at).is_ascii_digit() {
                at += 1;
            }
            at
        };
        let whole = digits(start);
        let mut end = whole;
        if self.byte(end) == b'.' {
            end = digits(end + 1);
        }
        if end == start || (whole == start && end == start + 1) {
            return None;
        }
        if self.byte(end) | 0x20 == b'e' {
            let sign = usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            let exponent = digits(end + 1 + sign);
            if exponent > end + 1 + sign {
                end = exponent;
            }
        }
        let text = std::str::from_utf8(&self.text[self.at..self.at + end]).ok()?;
        Some((text.parse().ok()?, end))
    }

    /// Parses a hexadecimal number with an optional fraction and exponent; `None` without a digit.
    fn hexadecimal(&self, start: usize) -> Option<(f64, usize)> {
        let (mut value, mut scale, mut digits, mut at) = (0.0_f64, 0_i32, 0, start);
        let mut in_fraction = false;
        loop {
            match (char::from(self.byte(at)).to_digit(16), self.byte(at)) {
                (Some(digit), _) => {
                    value = value * 16.0 + f64::from(digit);
                    scale -= if in_fraction { 4 } else { 0 };
                    digits += 1;
                }
                (None, b'.') if !in_fraction => in_fraction = true,
                _ => break,
            }
            at += 1;
        }
        if digits == 0 {
            return None;
        }
        if self.byte(at) | 0x20 == b'p' {
            let sign = usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
            let mut end = at + 1 + sign;
            let mut exponent = 0_i32;
            while self.byte(end).is_ascii_digit() {
                exponent =
                    exponent.saturating_mul(10).saturating_add(i32::from(self.byte(end) - b'0'));
                end += 1;
            }
            if end > at + 1 + sign {
                scale += if self.byte(at + 1) == b'-' { -exponent } else { exponent };
                at = end;
            }
        }
        Some((value * 2.0_f64.powi(scale), at))
    }
}
