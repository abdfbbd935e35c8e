//! The studio: equal input gives equal bytes, in every thread.

use stampede_sticker::{Format, Studio, Text, shipped};

#[test]
fn threads_share_a_studio_and_draw_the_same_bytes() {
    let studio = Studio::new().unwrap();
    let text = Text::new("Привет, 👩‍🚀 محمد!").unwrap();
    let draw = |studio: &Studio| -> Vec<Vec<u8>> {
        let formats = [Format::Webp, Format::Tgs];
        shipped()
            .iter()
            .flat_map(|shipped| {
                formats.map(|format| studio.draw(&text, &shipped.variant, format).unwrap())
            })
            .collect()
    };
    let expected = draw(&Studio::new().unwrap());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(|| draw(&studio))).collect();
        for thread in threads {
            assert!(thread.join().unwrap() == expected);
        }
    });
}

#[test]
fn equal_texts_in_different_spelling_give_equal_bytes() {
    let studio = Studio::new().unwrap();
    let draw = |typed: &str| {
        studio.draw(&Text::new(typed).unwrap(), &shipped()[1].variant, Format::Webp).unwrap()
    };
    assert!(draw("Zoë") == draw(" Zoe\u{308}\n"));
}
