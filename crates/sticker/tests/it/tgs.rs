//! Animated stickers hold only what Telegram allows. `interop/stickers` asks other people's programs the same.

use serde_json::Value;
use stampede_sticker::{Format, Studio, Text, shipped};

/// Types of shapes that may occur: groups, paths, fills, gradient fills, strokes, transforms.
const ALLOWED: [&str; 6] = ["gr", "sh", "fl", "gf", "st", "tr"];

fn lottie(bytes: &[u8]) -> Value {
    let mut decompressor = libdeflater::Decompressor::new();
    // The last four bytes of a gzip file are the length of what it holds.
    let length = u32::from_le_bytes(*bytes.last_chunk().unwrap()) as usize;
    let mut text = vec![0; length];
    decompressor.gzip_decompress(bytes, &mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn check_shapes(shapes: &Value) {
    for shape in shapes.as_array().unwrap() {
        let kind = shape["ty"].as_str().unwrap();
        assert!(ALLOWED.contains(&kind), "{kind}");
        if kind == "gr" {
            let items = shape["it"].as_array().unwrap();
            assert_eq!(items.last().unwrap()["ty"], "tr", "a group ends with its transform");
            check_shapes(&shape["it"]);
        }
    }
}

#[test]
fn only_allowed_shapes_are_written() {
    let studio = Studio::new().unwrap();
    let text = Text::new("Hi 👋🏽 مرحبا\n1️⃣ नमस्ते").unwrap();
    for shipped in shipped() {
        let of = lottie(&studio.draw(&text, &shipped.variant, Format::Tgs).unwrap());
        assert_eq!(
            (&of["w"], &of["h"], &of["fr"], &of["tgs"]),
            (&512.into(), &512.into(), &60.into(), &1.into())
        );
        assert!(of["op"].as_u64().unwrap() <= 180 && of["ip"] == 0, "{}", shipped.name);
        assert_eq!(of["assets"], Value::Array(Vec::new()));
        for layer in of["layers"].as_array().unwrap() {
            assert_eq!(layer["ty"], 4, "a layer of shapes");
            for forbidden in ["masksProperties", "hasMask", "ef", "tt", "tm", "ao"] {
                assert!(
                    matches!(layer[forbidden], Value::Null) || layer[forbidden] == 0,
                    "{forbidden}"
                );
            }
            check_shapes(&layer["shapes"]);
        }
    }
}

#[test]
fn joined_scripts_move_as_words() {
    let studio = Studio::new().unwrap();
    let moving = |typed: &str| {
        let text = Text::new(typed).unwrap();
        let of = lottie(&studio.draw(&text, &shipped()[1].variant, Format::Tgs).unwrap());
        of.to_string().matches(r#""p":{"a":1"#).count()
    };
    assert_eq!(moving("abcd"), 4);
    assert_eq!(moving("مرحبا"), 1);
    assert_eq!(moving("مرحبا بكم"), 2);
    assert_eq!(moving("नमस्ते"), 1);
    assert_eq!(moving("👩‍👩‍👧"), 1);
}

/// Vertices of all paths that a stroke at the foot of a layer follows.
fn vertices(shapes: &Value) -> usize {
    let of = |shape: &Value| match shape["ty"].as_str() {
        Some("sh") => shape["ks"]["k"]["v"].as_array().unwrap().len(),
        Some("gr") => vertices(&shape["it"]),
        _ => 0,
    };
    shapes.as_array().unwrap().iter().map(of).sum()
}

#[test]
fn no_stroke_follows_more_than_players_can_draw() {
    let studio = Studio::new().unwrap();
    for typed in ["生日快乐 お誕生日 ".repeat(16), "Ann Ёлкина ".repeat(18), "🦄🎡".repeat(60)]
    {
        let text = Text::new(&typed).unwrap();
        for shipped in shipped() {
            let of = lottie(&studio.draw(&text, &shipped.variant, Format::Tgs).unwrap());
            for layer in of["layers"].as_array().unwrap() {
                let has_stroke =
                    layer["shapes"].as_array().unwrap().iter().any(|shape| shape["ty"] == "st");
                assert!(
                    !has_stroke || vertices(&layer["shapes"]) <= 2000,
                    "{typed:?} as {}",
                    shipped.name
                );
            }
        }
    }
}
