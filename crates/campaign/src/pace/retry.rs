//! How long a recipient waits for its next attempt.

use std::time::Duration;

use stampede_model::campaign::Channel;

/// The pauses of mail, in minutes: servers that greylist accept a second attempt after some minutes.
const MAIL_MINUTES: [u64; 3] = [5, 15, 60];
/// The first pause of all other channels.
const FIRST: Duration = Duration::from_secs(30);
/// The longest pause of all other channels, before jitter.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// Jitter lengthens a pause by up to this share.
const JITTER: f64 = 0.2;

/// The pause after failed attempt number `attempt`, counted from 1.
///
/// Mail waits 5, 15, then 60 minutes. All other channels wait 30 s × 2ⁿ, up to an hour, lengthened by up to a fifth so that
/// recipients that failed together are not tried together. `jitter` is a random number from 0 to 1.
pub fn back_off(channel: Channel, attempt: u32, jitter: f64) -> Duration {
    let retries = attempt.max(1) - 1;
    if channel == Channel::Smtp {
        let last = MAIL_MINUTES.len() - 1;
        return Duration::from_secs(60 * MAIL_MINUTES[last.min(retries as usize)]);
    }
    let pause = FIRST.saturating_mul(2_u32.saturating_pow(retries)).min(LONGEST);
    pause.mul_f64(1.0 + JITTER * if jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_waits_5_15_and_60_minutes() {
        let minutes = |attempt| back_off(Channel::Smtp, attempt, 0.7).as_secs() / 60;
        assert_eq!([0, 1, 2, 3, 4, u32::MAX].map(minutes), [5, 5, 15, 60, 60, 60]);
    }

    #[test]
    fn other_channels_double_their_pause_up_to_an_hour() {
        for channel in Channel::ALL.into_iter().filter(|channel| *channel != Channel::Smtp) {
            let seconds = |attempt| back_off(channel, attempt, 0.0).as_secs();
            assert_eq!([1, 2, 3, 4].map(seconds), [30, 60, 120, 240]);
            assert_eq!([8, 40, u32::MAX].map(seconds), [3_600; 3]);
        }
    }

    #[test]
    fn jitter_only_lengthens_a_pause_and_by_a_fifth_at_most() {
        let pause = |jitter| back_off(Channel::Webhook, 1, jitter).as_millis();
        assert_eq!([0.0, 0.5, 1.0].map(pause), [30_000, 33_000, 36_000]);
        assert_eq!([-1.0, f64::NAN, 9.0].map(pause), [30_000, 30_000, 36_000]);
    }
}
