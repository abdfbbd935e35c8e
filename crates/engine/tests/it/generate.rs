//! Generates random commands from a seed.
//!
//! [`TEMPLATES`] use a small language: words are literal, `<x>` is a random value made by
//! [`Generator::thing`], `[a b]` is optional, `{a|b}` is a choice, `+` repeats the group before it a few
//! times, `*` many times. There are few keys and values, so that commands interact. One key in twenty
//! belongs to another type. One command in twelve is then damaged: an argument is dropped, duplicated or
//! replaced by an odd value.

mod templates;

use std::fmt;

use templates::{BURSTS, RARE, TEMPLATES};

/// Commands that belong together, and whether to wait after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) commands: Vec<Vec<Vec<u8>>>,
    pub(crate) pause: bool,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, args) in self.commands.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            for arg in args {
                write!(f, "\"{}\" ", arg.escape_ascii())?;
            }
        }
        if self.pause { write!(f, "(pause)") } else { Ok(()) }
    }
}

/// Integers at the edges of what a command may compute with.
const EDGES: [&str; 12] = [
    "9223372036854775807",
    "9223372036854775806",
    "-9223372036854775808",
    "-9223372036854775807",
    "4611686018427387904",
    "-4611686018427387905",
    "9223372036854775",
    "-9223372036854776",
    "4294967296",
    "-4294967297",
    "-2147483649",
    "18446744073709551616",
];

const ODD: [&str; 14] = [
    "",
    "abc",
    "-1",
    "0",
    "1.5",
    "9223372036854775808",
    "9223372036854775807",
    " 1",
    "+1",
    "-0",
    "nan",
    "inf",
    "-9223372036854775808",
    "0x1f",
];

/// All templates.
pub(crate) fn templates() -> impl Iterator<Item = &'static str> {
    [TEMPLATES, RARE, BURSTS].into_iter().flatten().copied()
}

pub(crate) struct Generator {
    state: u64,
    made: usize,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        // Seeds are spread: SplitMix64 streams of neighbouring states overlap.
        let mut spread = Self { state: seed, made: 0 };
        let halves = [spread.below(1 << 32), spread.below(1 << 32)];
        Self { state: (halves[0] as u64) << 32 | halves[1] as u64, made: 0 }
    }

    pub(crate) fn step(&mut self) -> Step {
        self.made += 1;
        match self.below(400) {
            0 => return self.expiring(),
            1 => return self.burst(),
            _ => {}
        }
        let rare = self.below(1000) == 0;
        let template = if rare { self.pick(RARE) } else { self.pick(TEMPLATES) };
        let mut args = Vec::new();
        self.expand(template.as_bytes(), &mut args);
        // A damaged timeout could block forever, ranges by text need equal scores, and Redis may refuse
        // to sort by numbers (see `rules.rs`), so that nothing would be stored.
        let fragile = template.starts_with('B')
            || template.contains("BLOCK")
            || template.starts_with("SORT") && template.contains("STORE")
            || template.starts_with("ZADD <y>")
            || template.starts_with("ZADD y");
        if !fragile && self.below(12) == 0 {
            self.damage(&mut args);
        }
        let mut commands = vec![args];
        if template.starts_with("SPOP") {
            // The popped element is random.
            let key = commands[0].get(1).cloned().unwrap_or_default();
            commands.push(vec![b"DEL".to_vec(), key]);
        }
        Step { commands, pause: false }
    }

    /// A key that expires soon, and a read of all keys once it has.
    fn expiring(&mut self) -> Step {
        let template =
            self.pick(&["SET <k> <v> PX 2", "PSETEX <s> 3 <v>", "PEXPIRE <k> 2", "GETEX <s> PX 1"]);
        let mut args = Vec::new();
        self.expand(template.as_bytes(), &mut args);
        Step { commands: vec![args], pause: true }
    }

    /// Many commands of one kind, so that a stream gets long.
    fn burst(&mut self) -> Step {
        let template = self.pick(BURSTS);
        let count = 20 + self.below(100);
        let one = |generator: &mut Self| {
            let mut args = Vec::new();
            generator.expand(template.as_bytes(), &mut args);
            args
        };
        Step { commands: (0..count).map(|_| one(self)).collect(), pause: false }
    }

    fn damage(&mut self, args: &mut Vec<Vec<u8>>) {
        // One argument more is an option in 7.2, and an error in 7.0.
        if args[0].ends_with(b"RANK") {
            return;
        }
        let at = self.below(args.len());
        match self.below(4) {
            0 if args.len() > 1 => drop(args.remove(at.max(1))),
            1 => {
                let doubled = args[at].clone();
                args.insert(at.max(1).min(args.len()), doubled);
            }
            2 => args[at] = args[at].to_ascii_lowercase(),
            // Redis draws as often as it is asked, for years.
            _ if args[0].windows(4).any(|part| part.eq_ignore_ascii_case(b"RAND")) => {}
            _ if at > 0 && self.below(2) == 0 => {
                args[at] = self.pick(&EDGES).as_bytes().to_vec();
            }
            _ if at > 0 => args[at] = self.pick(&ODD).as_bytes().to_vec(),
            _ => args.push(self.pick(&ODD).as_bytes().to_vec()),
        }
    }

    /// Generates a command from a template that is not in the list.
    pub(crate) fn made_from(&mut self, template: &str) -> Vec<Vec<u8>> {
        let mut args = Vec::new();
        self.expand(template.as_bytes(), &mut args);
        args
    }

    fn expand(&mut self, template: &[u8], out: &mut Vec<Vec<u8>>) {
        let mut at = 0;
        while at < template.len() {
            let end = at + unit(&template[at..]);
            let body = &template[at..end];
            // Only groups repeat: a plus or a star on its own is an argument.
            let sign = template.get(end).filter(|_| b"(<{".contains(&body[0]));
            let times = match sign {
                Some(b'+') => self.repetitions(),
                Some(b'*') => 1 + self.below(80),
                _ => 1,
            };
            for _ in 0..times {
                match body[0] {
                    b'[' if self.below(5) < 2 => self.expand(&body[1..body.len() - 1], out),
                    b'[' | b' ' => {}
                    b'(' => self.expand(&body[1..body.len() - 1], out),
                    b'{' => {
                        let choices = alternatives(&body[1..body.len() - 1]);
                        let choice = choices[self.below(choices.len())];
                        self.expand(choice, out);
                    }
                    b'<' => {
                        let thing = self.thing(&body[1..body.len() - 1]);
                        out.push(thing);
                    }
                    _ => out.push(body.to_vec()),
                }
            }
            at = end + usize::from(matches!(sign, Some(b'+' | b'*')));
        }
    }

    fn repetitions(&mut self) -> usize {
        match self.below(40) {
            0 => 60,
            1..10 => 3,
            10..20 => 2,
            _ => 1,
        }
    }

    fn thing(&mut self, name: &[u8]) -> Vec<u8> {
        let text = match name {
            b"s" | b"h" | b"l" | b"t" | b"z" | b"x" if self.below(20) > 0 => {
                let kind = char::from(name[0]);
                // Large values are mostly left alone, so that they can become large.
                let suffix = if self.below(8) == 0 { "big" } else { self.pick(&["1", "2"]) };
                format!("{kind}{suffix}")
            }
            b"s" | b"h" | b"l" | b"t" | b"z" | b"x" | b"k" => {
                let suffix = if self.below(100) == 0 { "big" } else { self.pick(&["1", "2"]) };
                format!("{}{suffix}", self.pick(&["s", "h", "l", "t", "z", "x"]))
            }
            // Sorted sets of equal scores, for ranges by text.
            b"y" => self.pick(&["y1", "y2"]).to_owned(),
            b"v" => return self.value(),
            b"f" => match self.below(10) {
                0 => format!("field:{}", self.below(700)),
                1 => self.pick(&["", "7", "a-rather-long-name-of-a-field"]).to_owned(),
                _ => format!("f{}", self.below(6)),
            },
            b"m" => match self.below(10) {
                0..3 => self.below(700).to_string(),
                3 => self.pick(&["", "-5", "007", "9223372036854775807", "longer than usual: 0123456789012345678901234567890123456789012345678901234567890"]).to_owned(),
                _ => char::from(b'a' + self.below(8) as u8).to_string(),
            },
            b"i" => match self.below(12) {
                0 => self.pick(&ODD).to_owned(),
                2 => self.pick(&EDGES).to_owned(),
                1 => self.pick(&["100", "-100", "4611686018427387904"]).to_owned(),
                _ => (self.below(16) as i64 - 6).to_string(),
            },
            b"int" => (self.below(1200) as i64 - 100).to_string(),
            b"name" => format!("name:{}", self.below(900)),
            // Counts that a command really iterates over.
            b"n" => match self.below(10) {
                0 => self.pick(&["", "abc", "-1", "0", "1.5", "600"]).to_owned(),
                _ => self.below(6).to_string(),
            },
            // Counts of draws: large ones that Redis refuses too, or that are as many as there are.
            b"manyof" => self.pick(&["9223372036854775807", "4611686018427387904", "-9223372036854775808", "-9223372036854775809", "1000"]).to_owned(),
            b"bit" => match self.below(10) {
                0 => self.pick(&["", "abc", "-1", "4294967296", "9223372036854775807", "#", "#1", "#9223372036854775807", "1.5"]).to_owned(),
                1 => format!("#{}", self.below(20)),
                _ => self.below(200).to_string(),
            },
            b"field" => match self.below(10) {
                0 => self.pick(&["", "i", "u64", "i65", "i0", "x8", "u-1", "U8", "i64", "u63"]).to_owned(),
                _ => format!("{}{}", self.pick(&["i", "u"]), 1 + self.below(63)),
            },
            // Keys that no other command renames: `SORT` of Redis changes the encoding of a sorted set.
            b"sortable" => self.pick(&["o1", "o2", "p1", "p2", "y1", "y2", "unsortable", "nosuch"]).to_owned(),
            b"offset" => self.pick(&["0", "1", "5", "20", "-1", "536870912", "abc"]).to_owned(),
            b"float" => match self.below(6) {
                0 => self.pick(&ODD).to_owned(),
                1 => self.pick(&["1e300", "-1e-10", "0.1", "1e17", "3.0e2", "1e-20", "123456789.123456789"]).to_owned(),
                2 => format!("{}.{}", self.below(100), self.below(1000)),
                _ => (self.below(30) as i64 - 10).to_string(),
            },
            b"score" => match self.below(12) {
                0 => self.pick(&ODD).to_owned(),
                1 => self.pick(&["-inf", "+inf", "0.1", "1e20", "-0.0", "1e-7", "3.14159", "0x10"]).to_owned(),
                _ => (self.below(30) as i64 - 10).to_string(),
            },
            b"bound" => match self.below(10) {
                0 => self.pick(&["", "(", "abc", "nan", "(inf", "1e400", " 3"]).to_owned(),
                1..4 => self.pick(&["-inf", "+inf", "(5", "(-2", "0.1"]).to_owned(),
                _ => (self.below(30) as i64 - 10).to_string(),
            },
            b"lex" => match self.below(8) {
                0 => self.pick(&["", "a", "[", "("]).to_owned(),
                1..4 => self.pick(&["-", "+"]).to_owned(),
                _ => format!("{}{}", self.pick(&["[", "("]), char::from(b'a' + self.below(8) as u8)),
            },
            // Consumer groups and consumers.
            b"g" => match self.below(40) {
                0 => self.pick(&["", "nosuch", "STREAMS"]).to_owned(),
                _ => self.pick(&["g1", "g1", "g2"]).to_owned(),
            },
            b"c" => match self.below(40) {
                0 => self.pick(&["", "a-consumer-with-a-rather-long-name", "COUNT"]).to_owned(),
                _ => format!("c{}", self.below(4)),
            },
            b"id" => self.id(),
            b"open" => format!("({}", self.id()),
            // New ids ascend over time; the last possible id is rare, because none can follow it.
            b"newid" => match self.below(3000) {
                0 => "18446744073709551615-18446744073709551615".to_owned(),
                1..100 => self.pick(&["", "abc", "-", "$", "1-", "-1", "007", "0-0", "1-x"]).to_owned(),
                100..1000 => (self.made / 4 + self.below(4)).to_string(),
                _ => format!("{}-{}", self.made / 4 + self.below(3), self.below(4)),
            },
            b"pattern" => self.pick(&["*", "s*", "?1", "[hl]*", "f[1-3]", "*big", "\\*", "[^a]*", "a"]).to_owned(),
            b"cursor" => self.pick(&["0", "0", "0", "0", "abc", "", "-1", "1 "]).to_owned(),
            b"seconds" => match self.below(8) {
                0 => self.pick(&ODD).to_owned(),
                _ => (1000 + self.below(1_000_000)).to_string(),
            },
            b"ms" => match self.below(8) {
                0 => self.pick(&ODD).to_owned(),
                _ => (1_000_000 + self.below(1_000_000_000)).to_string(),
            },
            b"at" => match self.below(8) {
                0 => self.pick(&ODD).to_owned(),
                _ => (4_000_000_000_u64 + self.below(5) as u64).to_string(),
            },
            b"atms" => match self.below(8) {
                0 => self.pick(&ODD).to_owned(),
                _ => (4_000_000_000_000_u64 + self.below(5) as u64 * 250).to_string(),
            },
            b"timeout" => self.pick(&["0.001", "0.001", "0.001", "0.001", "0.001", "0.001", "0.001", "0.002", "abc", "-1", "1e400", "", "nan"]).to_owned(),
            b"wait" => self.pick(&["1", "2", "abc", "-1", "1.5"]).to_owned(),
            b"db" => self.pick(&["0", "0", "0", "1", "15", "16", "-1", "abc", "99999999999"]).to_owned(),
            other => panic!("no such thing: {}", other.escape_ascii()),
        };
        text.into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        match self.below(10) {
            0 => Vec::new(),
            1 => vec![b'x'; 40 + self.below(60)],
            2 => b"\r\n\0\xff".to_vec(),
            3 => self.pick(&ODD).as_bytes().to_vec(),
            4 => format!("{}.{}", self.below(10), self.below(100)).into_bytes(),
            5..8 => (self.below(40) as i64 - 10).to_string().into_bytes(),
            _ => vec![b'a' + self.below(6) as u8; 1 + self.below(3)],
        }
    }

    fn id(&mut self) -> String {
        match self.below(10) {
            0 => self
                .pick(&["", "abc", "-", "+", "$", "1-", "-1", "1-1-1", "007", "0-0", "1-x", "(5"])
                .to_owned(),
            1 if self.below(20) == 0 => self
                .pick(&[
                    "18446744073709551615-18446744073709551615",
                    "18446744073709551615",
                    "18446744073709551616",
                ])
                .to_owned(),
            // Near the ids added lately.
            1..5 => (self.made / 4).saturating_sub(self.below(80)).to_string(),
            _ => format!("{}-{}", (self.made / 4).saturating_sub(self.below(80)), self.below(3)),
        }
    }

    /// A random element.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A random number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * limit as u128) >> 64) as usize
    }
}

/// The length of the first unit of a template: a group, a placeholder, a word or a space.
fn unit(template: &[u8]) -> usize {
    let close = match template[0] {
        b' ' => return 1,
        b'[' => b']',
        b'(' => b')',
        b'{' => b'}',
        b'<' => b'>',
        _ => {
            return template.iter().position(|b| b" []{}()|".contains(b)).unwrap_or(template.len());
        }
    };
    let (open, mut depth) = (template[0], 0);
    for (at, byte) in template.iter().enumerate() {
        if *byte == open {
            depth += 1;
        } else if *byte == close {
            depth -= 1;
            if depth == 0 {
                return at + 1;
            }
        }
    }
    panic!("not closed: {}", template.escape_ascii());
}

/// The choices of a group, split at bars outside of inner groups.
fn alternatives(group: &[u8]) -> Vec<&[u8]> {
    let (mut choices, mut start, mut at) = (Vec::new(), 0, 0);
    while at < group.len() {
        if group[at] == b'|' {
            choices.push(&group[start..at]);
            start = at + 1;
            at += 1;
        } else {
            at += unit(&group[at..]);
        }
    }
    choices.push(&group[start..]);
    choices
}

#[test]
fn stars_and_pluses_of_their_own_are_arguments() {
    let mut args = Vec::new();
    Generator::new(1).expand(b"XADD x * {+|+} - + (a b)+", &mut args);
    let texts: Vec<&[u8]> = args.iter().map(|arg| &**arg).collect();
    assert_eq!(texts[..6], [&b"XADD"[..], b"x", b"*", b"+", b"-", b"+"]);
    assert_eq!(texts[6..].len() % 2, 0);
}
