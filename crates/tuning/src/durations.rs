//! Formats durations for sentences about stalls, in which writers wait for writeback.

use std::time::Duration;

use haul_units::Time;

/// Formats a duration, with tenths of a second below ten seconds.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        less if less < 0.05 => "less than 0.1 s".to_owned(),
        few if few < 9.95 => format!("{few:.1} s"),
        some if some < 99.5 => format!("{some:.0} s"),
        _ => Time(time).to_string(),
    }
}

/// Formats a range of durations, or a single duration if both ends have the same text.
pub(crate) fn range(least: Duration, most: Duration) -> String {
    let (least, most) = (seconds(least), seconds(most));
    if least == most { most } else { format!("{least} to {most}") }
}

/// Formats a number of hundredths of a second, the unit of the kernel's settings.
pub(crate) fn centisecs(count: u64) -> String {
    match (count / 100, count % 100) {
        (seconds, 0) => format!("{seconds} s"),
        (seconds, rest) => format!("{seconds}.{rest:02} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_reasonable_precision() {
        for (ms, text) in [
            (10, "less than 0.1 s"),
            (50, "0.1 s"),
            (9_900, "9.9 s"),
            (11_400, "11 s"),
            (99_400, "99 s"),
            (307_000, "5 min 7 s"),
        ] {
            assert_eq!(seconds(Duration::from_millis(ms)), text);
        }
        let second = Duration::from_secs(1);
        assert_eq!(range(second, second), "1.0 s");
        assert_eq!(range(second, second * 20), "1.0 s to 20 s");
        assert_eq!([centisecs(500), centisecs(3050), centisecs(5)], ["5 s", "30.50 s", "0.05 s"]);
    }
}
