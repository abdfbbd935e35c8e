//! CPU time of a sticker on one thread, by variant and format.

use rustix::time::{ClockId, clock_gettime};
use stampede_sticker::{Format, Studio, Text, shipped};

const TEXTS: [&str; 4] =
    ["Привет,\nмир! 🎉", "С днём\nрождения,\nАлиса 🎂", "OK", "Hello\nTelegram\nstickers"];
const ROUNDS: usize = 20;

fn cpu_ms() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// The least of several measurements, for the machine may do other things too.
fn least(mut draw: impl FnMut(usize)) -> f64 {
    let rounds = (0..7).map(|_| {
        let began = cpu_ms();
        (0..ROUNDS).for_each(&mut draw);
        (cpu_ms() - began) / ROUNDS as f64
    });
    rounds.fold(f64::MAX, f64::min)
}

#[test]
#[ignore = "measures; wants --release"]
fn time_of_a_sticker() {
    let began = cpu_ms();
    let studio = Studio::new().unwrap();
    println!("studio {:.1} ms", cpu_ms() - began);
    let texts = TEXTS.map(|text| Text::new(text).unwrap());
    for shipped in shipped() {
        let time = |format| {
            least(|round| {
                std::hint::black_box(
                    studio.draw(&texts[round % texts.len()], &shipped.variant, format).unwrap(),
                );
            })
        };
        let (webp, png, tgs) = (time(Format::Webp), time(Format::Png), time(Format::Tgs));
        let bytes = |format| {
            texts
                .iter()
                .map(|text| studio.draw(text, &shipped.variant, format).unwrap().len())
                .max()
                .unwrap()
        };
        println!(
            "{:8} WEBP {webp:.2} ms, {} bytes; PNG {png:.2} ms, {} bytes; TGS {tgs:.2} ms, {} bytes",
            shipped.name,
            bytes(Format::Webp),
            bytes(Format::Png),
            bytes(Format::Tgs)
        );
    }
}
