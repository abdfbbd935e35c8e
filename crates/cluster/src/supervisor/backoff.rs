//! Pauses before a worker is started again.

use std::time::Duration;

/// A worker that lived this long did not die from its start.
pub(crate) const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// So many deaths in a row, each soon after a start, are a crash loop.
pub(crate) const LOOPING: u32 = 4;

/// The first pause; it doubles with every death.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause outside of a crash loop; a dead worker is promised to be replaced within three seconds.
const PROMISED: Duration = Duration::from_millis(2_500);
/// The longest pause of all.
const LONGEST: Duration = Duration::from_secs(30);

/// The pause after so many deaths in a row.
pub(crate) fn pause(deaths: u32) -> Duration {
    let doubled = FIRST * 2u32.pow(deaths.saturating_sub(1).min(16));
    if deaths < LOOPING { doubled.min(PROMISED) } else { doubled.max(PROMISED).min(LONGEST) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_death_is_forgiven_at_once_and_many_make_us_patient() {
        let ms: Vec<u128> = (1..=12).map(|deaths| pause(deaths).as_millis()).collect();
        assert_eq!(ms[..4], [100, 200, 400, 2_500]);
        assert!(ms.windows(2).all(|pair| pair[0] <= pair[1]), "{ms:?}");
        assert_eq!(*ms.last().unwrap(), 30_000);
        assert_eq!(pause(u32::MAX), LONGEST);
    }
}
