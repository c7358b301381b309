//! Short labels of measured quantities.

/// Formats a number of microseconds.
#[must_use]
pub fn duration_label(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{:.1} s", us / 1e6),
        us if us >= 9950.0 => format!("{:.0} ms", us / 1000.0),
        us if us >= 1000.0 && us % 1000.0 == 0.0 => format!("{:.0} ms", us / 1000.0),
        us if us >= 1000.0 => format!("{:.1} ms", us / 1000.0),
        us => format!("{us:.0} µs"),
    }
}

/// Formats a rate, such as "52k/s".
#[must_use]
pub fn rate_label(rate: f64) -> String {
    match rate {
        rate if rate >= 9950.0 => format!("{:.0}k/s", rate / 1000.0),
        rate if rate >= 1000.0 => format!("{:.1}k/s", rate / 1000.0),
        rate => format!("{rate:.0}/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let found = [210.4, 1000.0, 1234.0, 12_300.0, 2.5e6].map(duration_label);
        assert_eq!(found, ["210 µs", "1 ms", "1.2 ms", "12 ms", "2.5 s"]);
    }

    #[test]
    fn rates_are_short() {
        let found = [12.4, 1234.0, 52_300.0].map(rate_label);
        assert_eq!(found, ["12/s", "1.2k/s", "52k/s"]);
    }
}
