//! The eight variants that ship, by name.

use crate::Error;
use crate::palette::{Colour, Palette};
use crate::variant::{Animation, Fill, Font, Outline, Shadow, Shape, Variant};

/// Characters of an unknown name that are shown.
const SHOWN: usize = 40;

/// A variant that ships.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// Its place among the eight.
    pub index: usize,
    /// Its name.
    pub name: &'static str,
    /// What it looks like, in a few words.
    pub about: &'static str,
    /// The design.
    pub variant: Variant,
}

/// All shipped variants, in the order in which a set has them.
pub fn shipped() -> &'static [Shipped] {
    &SHIPPED
}

/// The shipped variant of this name; the error names the nearest.
pub fn by_name(name: &str) -> Result<&'static Shipped, Error> {
    SHIPPED.iter().find(|shipped| shipped.name == name).ok_or_else(|| Error::UnknownVariant {
        name: name.chars().filter(|c| !c.is_control()).take(SHOWN).collect(),
        nearest: nearest(name),
        known: SHIPPED.iter().map(|shipped| shipped.name).collect(),
    })
}

fn nearest(name: &str) -> Option<&'static str> {
    let lower: String = name.chars().take(SHOWN).flat_map(char::to_lowercase).collect();
    let distance = |shipped: &Shipped| strsim::osa_distance(lower.trim(), shipped.name);
    let best = SHIPPED.iter().min_by_key(|shipped| distance(shipped))?;
    // A third of the letters: a name that has more wrong is another one.
    (distance(best) <= (best.name.len() / 3).max(1)).then_some(best.name)
}

const fn palette(ink: u32, accent: u32, outline: u32, shadow: u32, shape: u32) -> Palette {
    Palette {
        ink: Colour::of(ink),
        accent: Colour::of(accent),
        outline: Colour::of(outline),
        shadow: Colour::of(shadow),
        shape: Colour::of(shape),
    }
}

static SHIPPED: [Shipped; 8] = [
    Shipped {
        index: 0,
        name: "classic",
        about: "coral to violet, white outline, soft shadow; letters hop",
        variant: Variant {
            palette: palette(0xff4f6d, 0x7a3fd0, 0xffffff, 0x1b1030, 0xff4f6d),
            fill: Fill::Gradient,
            outline: Outline::Thick,
            shadow: Shadow::Soft,
            shape: Shape::None,
            font: Font::ExtraBold,
            animation: Animation::Bounce,
        },
    },
    Shipped {
        index: 1,
        name: "sunset",
        about: "amber to magenta with a white edge; a wave runs through it",
        variant: Variant {
            palette: palette(0xffb019, 0xe0218a, 0xffffff, 0x4a0d3a, 0xe0218a),
            fill: Fill::Gradient,
            outline: Outline::Thin,
            shadow: Shadow::Soft,
            shape: Shape::None,
            font: Font::ExtraBold,
            animation: Animation::Wave,
        },
    },
    Shipped {
        index: 2,
        name: "neon",
        about: "white letters in a pink glow on deep violet; beats like a heart",
        variant: Variant {
            palette: palette(0xffffff, 0x7df9ff, 0x2a0a4f, 0xff2bd6, 0x2a0a4f),
            fill: Fill::Gradient,
            outline: Outline::Thick,
            shadow: Shadow::Glow,
            shape: Shape::None,
            font: Font::SemiBold,
            animation: Animation::Pulse,
        },
    },
    Shipped {
        index: 3,
        name: "comic",
        about: "yellow with a black outline and a hard red shadow; shakes",
        variant: Variant {
            palette: palette(0xffd60a, 0xff9500, 0x16161d, 0xe5263e, 0xffd60a),
            fill: Fill::Gradient,
            outline: Outline::Thick,
            shadow: Shadow::Hard,
            shape: Shape::None,
            font: Font::ExtraBold,
            animation: Animation::Shake,
        },
    },
    Shipped {
        index: 4,
        name: "ink",
        about: "black on a white edge, calm; is typed letter by letter",
        variant: Variant {
            palette: palette(0x17171c, 0x17171c, 0xffffff, 0x17171c, 0xffffff),
            fill: Fill::Solid,
            outline: Outline::Thick,
            shadow: Shadow::None,
            shape: Shape::None,
            font: Font::SemiBold,
            animation: Animation::Type,
        },
    },
    Shipped {
        index: 5,
        name: "mint",
        about: "mint green with a dark edge and a soft shadow; fades and returns",
        variant: Variant {
            palette: palette(0x5ff2c0, 0x1fb98a, 0x0b4f46, 0x04332d, 0x0b4f46),
            fill: Fill::Solid,
            outline: Outline::Thick,
            shadow: Shadow::Soft,
            shape: Shape::None,
            font: Font::ExtraBold,
            animation: Animation::Fade,
        },
    },
    Shipped {
        index: 6,
        name: "bubble",
        about: "white letters in a blue speech bubble; letters hop",
        variant: Variant {
            palette: palette(0xffffff, 0x1d5fe0, 0xffffff, 0x0a2050, 0x36a3ff),
            fill: Fill::Gradient,
            outline: Outline::Thick,
            shadow: Shadow::Soft,
            shape: Shape::Bubble,
            font: Font::SemiBold,
            animation: Animation::Bounce,
        },
    },
    Shipped {
        index: 7,
        name: "ribbon",
        about: "white letters on a red ribbon; a wave runs through them",
        variant: Variant {
            palette: palette(0xffffff, 0xc81e3a, 0xffffff, 0x4a0613, 0xf0384f),
            fill: Fill::Gradient,
            outline: Outline::Thin,
            shadow: Shadow::Soft,
            shape: Shape::Ribbon,
            font: Font::ExtraBold,
            animation: Animation::Wave,
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_list() {
        for (index, shipped) in shipped().iter().enumerate() {
            assert_eq!(shipped.index, index);
            assert_eq!(by_name(shipped.name).unwrap().index, index);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let message = |name: &str| by_name(name).unwrap_err().to_string();
        assert_eq!(message("noen"), "there is no variant \"noen\"; did you mean neon?");
        assert_eq!(message("Clasic"), "there is no variant \"Clasic\"; did you mean classic?");
        assert_eq!(
            message("watercolour"),
            "there is no variant \"watercolour\"; use one of classic, sunset, neon, comic, ink, mint, bubble, ribbon"
        );
        assert!(message(&format!("\u{1B}{}", "x".repeat(10_000))).len() < 200);
        assert!(message("").contains("use one of"));
    }
}
