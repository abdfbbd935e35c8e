//! The token's text in a QR code: at most 45 × 45 modules at level M, whatever the ticket.

use qrcodegen::{QrCode, QrCodeEcc, QrSegment, Version};
use stampede_model::{EventId, Signer};

fn side(text: &str) -> i32 {
    QrCode::encode_text(text, QrCodeEcc::Medium).unwrap().size()
}

#[test]
fn the_extremes_fit_forty_one_modules() {
    let events =
        [EventId::from_bytes([0; 16]), EventId::from_bytes([0xff; 16]), EventId::generate()];
    for event in events {
        for seed in [[0; 32], [0xff; 32], [0x5a; 32]] {
            for number in [0, 1, u32::MAX] {
                let signer = Signer::new(event, number, &seed);
                for (serial, generation) in [(0, 0), (1, 1), (u32::MAX, u32::MAX)] {
                    let text = signer.sign(serial, generation).to_string();
                    assert_eq!(text.len(), 149);
                    assert_eq!(side(&text), 41, "{text}");
                }
            }
        }
    }
}

/// Why base32: of the texts that 93 bytes can become, only it and base45 fit, and base45 needs no
/// smaller symbol.
#[test]
fn no_other_alphabet_gives_a_smaller_symbol() {
    let base45 = "$".repeat(93 / 2 * 3 + 2);
    let base64 = "x".repeat((93usize * 4).div_ceil(3));
    let hexadecimal = "F".repeat(93 * 2);
    assert_eq!(side(&base45), 41);
    assert_eq!(side(&base64), 49);
    assert_eq!(side(&hexadecimal), 49);
    // Nor do the bare bytes, which many scanners garble.
    let bare = [QrSegment::make_bytes(&[0xff; 93])];
    let (low, high) = (Version::MIN, Version::MAX);
    let qr = QrCode::encode_segments_advanced(&bare, QrCodeEcc::Medium, low, high, None, false);
    assert_eq!(qr.unwrap().size(), 41);
}
