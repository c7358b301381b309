//! A condition's value, and its comparison with the request's value.

use std::net::IpAddr;

use time::format_description::well_known::Iso8601;
use time::{Date, OffsetDateTime};

use crate::pattern;

/// An order between two numbers or times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Text,
    TextIgnoringCase,
    Pattern,
    /// The value is split at colons, and each part is a pattern.
    Arn,
    Number(Order),
    Time(Order),
    Flag,
    Network,
    /// `true` if the request has no value.
    Absent,
}

/// A value in a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operand {
    Text(String),
    TextIgnoringCase(String),
    Pattern(String),
    Arn(String),
    Number(Order, i64),
    /// A time, in seconds since 1970.
    Time(Order, i64),
    Flag(bool),
    /// An address and the number of leading bits that are compared.
    Network(IpAddr, u32),
    Absent(bool),
}

impl Operand {
    /// Parses a value for a comparison; `None` if it is malformed.
    pub(super) fn parse(comparison: Comparison, text: &str) -> Option<Self> {
        Some(match comparison {
            Comparison::Text => Self::Text(text.to_owned()),
            Comparison::TextIgnoringCase => Self::TextIgnoringCase(text.to_lowercase()),
            Comparison::Pattern => Self::Pattern(text.to_owned()),
            Comparison::Arn => Self::Arn(text.to_owned()),
            Comparison::Number(order) => Self::Number(order, text.parse().ok()?),
            Comparison::Time(order) => Self::Time(order, seconds(text)?),
            Comparison::Flag => Self::Flag(flag(text)?),
            Comparison::Network => {
                let (address, bits) = network(text)?;
                Self::Network(address, bits)
            }
            Comparison::Absent => Self::Absent(flag(text)?),
        })
    }

    /// Compares with the request's value, if it has one. A malformed value never matches.
    pub(super) fn matches(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return *self == Self::Absent(true) };
        match self {
            Self::Text(text) => text == value,
            Self::TextIgnoringCase(text) => *text == value.to_lowercase(),
            Self::Pattern(pattern) => pattern::matches(pattern, value),
            Self::Arn(pattern) => matches_arn(pattern, value),
            Self::Number(order, right) => {
                value.parse().is_ok_and(|left: i64| order.holds(left, *right))
            }
            Self::Time(order, right) => {
                seconds(value).is_some_and(|left| order.holds(left, *right))
            }
            Self::Flag(expected) => flag(value) == Some(*expected),
            Self::Network(network, bits) => {
                value.parse().is_ok_and(|address| contains(*network, *bits, address))
            }
            Self::Absent(absent) => !absent,
        }
    }

    /// Returns the total length of the pieces of a pattern that are slow to compare.
    pub(super) fn slow_pattern_bytes(&self) -> usize {
        match self {
            Self::Pattern(pattern) | Self::Arn(pattern) => pattern::slow_bytes(pattern),
            _ => 0,
        }
    }
}

impl Order {
    fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

/// Compares an ARN part by part: a `*` does not match a colon between two parts.
fn matches_arn(pattern: &str, arn: &str) -> bool {
    const PARTS: usize = 6;
    let [patterns, parts] = [pattern, arn].map(|text| text.splitn(PARTS, ':').collect::<Vec<_>>());
    let mut pairs = patterns.iter().zip(&parts);
    patterns.len() == parts.len() && pairs.all(|(pattern, part)| pattern::matches(pattern, part))
}

/// Parses a time, a date (midnight in UTC), or a number of seconds since 1970.
fn seconds(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let time = OffsetDateTime::parse(text, &Iso8601::DEFAULT).ok();
    let midnight = || Some(Date::parse(text, &Iso8601::DATE).ok()?.midnight().assume_utc());
    time.or_else(midnight).map(OffsetDateTime::unix_timestamp)
}

fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Parses an address, or a network such as `192.0.2.0/24`. A network of IPv4 addresses in IPv6
/// (`::ffff:192.0.2.0/120`) becomes that of the IPv4 addresses.
fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let address: IpAddr = address.parse().ok()?;
    let bits_max: u32 = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(bits_max), |bits| bits.parse().ok())?;
    if bits > bits_max {
        return None;
    }
    match address.to_canonical() {
        // One that is larger than all IPv4 addresses would need a comparison of its own.
        mapped @ IpAddr::V4(_) if address.is_ipv6() => Some((mapped, bits.checked_sub(96)?)),
        _ => Some((address, bits)),
    }
}

fn contains(network: IpAddr, bits: u32, address: IpAddr) -> bool {
    let top = |value: u128, width: u32| value.checked_shr(width - bits).unwrap_or(0);
    match (network, address.to_canonical()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let [a, b] = [a, b].map(|address| u128::from(address.to_bits()));
            top(a, 32) == top(b, 32)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => top(a.to_bits(), 128) == top(b.to_bits(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(comparison: Comparison, operand: &str, value: Option<&str>) -> bool {
        Operand::parse(comparison, operand).unwrap().matches(value)
    }

    #[test]
    fn values_are_compared_as_their_kind() {
        use Comparison as C;
        for (comparison, operand, matching, other) in [
            (C::Text, "a", "a", "A"),
            (C::TextIgnoringCase, "aB", "Ab", "b"),
            (C::Pattern, "a*", "ab", "b"),
            (C::Arn, "arn:aws:s3:::a*", "arn:aws:s3:::ab", "arn:aws:s3:::b"),
            (C::Arn, "arn:*:s3:*:*:a", "arn:aws:s3:::a", "arn:aws:s3:::b"),
            (C::Arn, "arn:aws:s3:::*", "arn:aws:s3:::a:b", "arn:aws:s3:x"),
            (C::Number(Order::LessOrEqual), "10", "10", "11"),
            (C::Number(Order::Less), "10", "9", "x"),
            (C::Number(Order::Greater), "-1", "0", "-1"),
            (C::Number(Order::Equal), "1", "1", ""),
            (C::Time(Order::GreaterOrEqual), "2026-11-26T00:00:00Z", "1795651200", "1795651199"),
            (C::Time(Order::Less), "1795651200", "2026-11-25T23:59:59Z", "2026-11-26T00:00:00Z"),
            (C::Time(Order::Less), "2026-11-26", "1795651199", "2026-11-26T00:00:00Z"),
            (C::Flag, "TRUE", "true", "false"),
            (C::Network, "192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            (C::Network, "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            (C::Network, "0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            (C::Network, "::ffff:192.0.2.0/120", "192.0.2.255", "192.0.3.0"),
            (C::Network, "::ffff:192.0.2.0/120", "::ffff:192.0.2.7", "::ffff:192.0.3.0"),
            (C::Network, "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2"),
            (C::Network, "::ffff:0.0.0.0/96", "203.0.113.9", "2001:db8::1"),
            (C::Network, "2001:db8::/32", "2001:db8:1::1", "2001:db9::1"),
            (C::Network, "::/0", "2001:db8::1", "not an address"),
        ] {
            assert!(compare(comparison, operand, Some(matching)), "{operand} {matching}");
            assert!(!compare(comparison, operand, Some(other)), "{operand} {other}");
            assert!(!compare(comparison, operand, None), "{operand}");
        }
    }

    #[test]
    fn absence_is_a_condition() {
        assert!(compare(Comparison::Absent, "true", None));
        assert!(!compare(Comparison::Absent, "true", Some("x")));
        assert!(compare(Comparison::Absent, "false", Some("x")));
        assert!(!compare(Comparison::Absent, "false", None));
    }

    #[test]
    fn malformed_values_are_refused() {
        for (comparison, text) in [
            (Comparison::Number(Order::Equal), "1.5"),
            (Comparison::Time(Order::Equal), "yesterday"),
            (Comparison::Time(Order::Equal), "2026-13-01"),
            (Comparison::Time(Order::Equal), "2026-11-26T"),
            (Comparison::Flag, "yes"),
            (Comparison::Network, "192.0.2.0/33"),
            (Comparison::Network, "::/129"),
            (Comparison::Network, "::ffff:192.0.2.0/95"),
            (Comparison::Network, "example.org"),
            (Comparison::Absent, ""),
        ] {
            assert_eq!(Operand::parse(comparison, text), None, "{text}");
        }
    }
}
