//! Texts that people might put on stickers: names in many scripts, emoji sequences, right to left, short and long.
//!
//! Deterministic: text `n` is the same in every run, and the first few have one of each kind.

use fastrand::Rng;
use unicode_segmentation::UnicodeSegmentation;

const NAMES: &[&str] = &[
    "Ann",
    "José Muñoz",
    "Zoë Ångström",
    "Łukasz Żółć",
    "Nguyễn Thị Ánh",
    "Čeněk",
    "Ïmrån",
    "O'Neill-Šmíd",
    "Анна Ёлкина",
    "Щукин",
    "Ђорђе",
    "Қанат Әлиев",
    "Їжак Ґудзь",
    "Ελένη Παπαδοπούλου",
    "Ἀριστοτέλης",
    "محمد علي",
    "فاطمة الزهراء",
    "عبد الله",
    "گلناز پژمان",
    "لا إله",
    "مُحَمَّد",
    "اردو زبان",
    "שָׁלוֹם",
    "דוד כהן",
    "רָחֵל",
    "Արմեն Հակոբյան",
    "გიორგი ბერიძე",
    "ნინო",
    "राहुल शर्मा",
    "क्षितिज श्रीवास्तव",
    "प्रिया",
    "สมชาย ใจดี",
    "กำลังใจ",
    "น้ำผึ้ง",
    "王小明",
    "山田太郎",
    "さくら",
    "カタカナ",
    "김민수",
    "대한민국",
    "東京タワー",
    "ㄅㄆㄇ",
];

const PHRASES: &[&str] = &[
    "Happy birthday, dear Alice!",
    "OK",
    "С днём рождения,\nАлиса!",
    "LOL",
    "Good morning",
    "to be\nor not\nto be",
    "100 %",
    "Yes!!!",
    "¿Qué?",
    "Привет, мир!",
    "كل عام وأنتم بخير",
    "שנה טובה",
    "जन्मदिन मुबारक",
    "สวัสดีครับ",
    "生日快乐",
    "お誕生日おめでとう",
    "생일 축하해요",
    "Γειά σου Κόσμε",
    "Բարև",
    "გამარჯობა",
    "a^2 + b^2 = c^2",
    "50 € → 40 €",
    "(╯°□°)╯",
    "e=mc²",
    "№ 1",
    "…",
    "-",
    ".",
    "I",
    "W",
    "@home #1",
    "fi ffl Ætt",
];

const EMOJI: &[&str] = &[
    "😀",
    "😂",
    "🥰",
    "🤖",
    "👍",
    "👍🏽",
    "👋🏿",
    "🎉",
    "🔥",
    "❤️",
    "❤",
    "☀️",
    "☀",
    "✈️",
    "⚽",
    "🐙",
    "🦄",
    "🍕",
    "🎂",
    "👩‍👩‍👧‍👦",
    "👨🏾‍💻",
    "👩🏻‍🚀",
    "🏳️‍🌈",
    "🏴‍☠️",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "🇩🇪",
    "🇯🇵",
    "🇧🇷",
    "1️⃣",
    "#️⃣",
    "👁️‍🗨️",
    "🧑🏽‍🤝‍🧑🏿",
    "💑🏼",
    "🤷🏻‍♀️",
    "🧜‍♂️",
    "🦸🏽",
    "🗺️",
    "🏙️",
    "🎠",
    "🧩",
    "©️",
    "™️",
    "🈵",
    "㊗️",
    "♾️",
    "⁉️",
];

const MIXED: &[&str] = &[
    "Ann محمد 123",
    "محمد (Ann) 123!",
    "שלום Ann, 5:30",
    "A אב ج 漢 क ก 가 🎉",
    "مرحبا 👋 שלום",
    "Ω≈ç√∫ µ ≤ ≥",
    "١٢٣ ٤٥٦",
    "‏hello‏ עולם",
    "Café ☕ مقهى",
    "🇫🇷 Paris – Tōkyō 🇯🇵",
    "x\u{301}\u{302}y\u{303}",
    "A\u{200D}B",
    "A\u{FE0F}B",
    "\u{202E}reversed\u{202C} text",
];

/// Text `number` of the corpus.
pub(crate) fn text(number: usize) -> String {
    let mut rng = Rng::with_seed(number as u64 + 1);
    match number % 10 {
        0 => one_of(&mut rng, PHRASES).to_owned(),
        1 => one_of(&mut rng, NAMES).to_owned(),
        2 => one_of(&mut rng, EMOJI).to_owned(),
        3 => format!("{} {}", one_of(&mut rng, PHRASES), one_of(&mut rng, EMOJI)),
        4 => one_of(&mut rng, MIXED).to_owned(),
        5 => one_letter(&mut rng),
        6 => row_of_emoji(&mut rng),
        7 => lines(&mut rng),
        8 => long(&mut rng),
        _ => format!(
            "{}{}\n{}",
            one_of(&mut rng, EMOJI),
            one_of(&mut rng, NAMES),
            one_of(&mut rng, PHRASES).replace('\n', " ")
        ),
    }
}

fn one_of(rng: &mut Rng, list: &'static [&'static str]) -> &'static str {
    rng.choice(list).copied().unwrap_or("x")
}

fn one_letter(rng: &mut Rng) -> String {
    let name = one_of(rng, NAMES);
    let letters: Vec<&str> =
        name.graphemes(true).filter(|part| part.starts_with(char::is_alphabetic)).collect();
    rng.choice(letters).unwrap_or("x").to_owned()
}

/// Two to nine emoji, with or without spaces.
fn row_of_emoji(rng: &mut Rng) -> String {
    let space = if rng.bool() { " " } else { "" };
    let row: Vec<&str> = (0..rng.usize(2..=9)).map(|_| one_of(rng, EMOJI)).collect();
    row.join(space)
}

/// Up to eight given lines.
fn lines(rng: &mut Rng) -> String {
    let lines: Vec<&str> = (0..rng.usize(2..=8)).map(|_| one_of(rng, NAMES)).collect();
    lines.join("\n")
}

/// Up to 200 graphemes: words, one endless word, or emoji among words.
fn long(rng: &mut Rng) -> String {
    let (most, space) = (rng.usize(40..=200), if rng.u8(0..4) == 0 { "" } else { " " });
    let mut words = Vec::new();
    while words.iter().map(|word: &&str| word.len()).sum::<usize>() < 1200 {
        let list = if rng.u8(0..6) == 0 { EMOJI } else { NAMES };
        words.push(one_of(rng, list));
    }
    words.join(space).graphemes(true).take(most).collect()
}
