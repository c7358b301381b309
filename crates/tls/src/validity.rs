//! Reads the validity period of an X.509 certificate \[RFC5280\], section 4.1. Performs no I/O.

/// The tags of the DER elements before and in the validity period.
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The period in which a certificate is valid, in seconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
}

/// Returns the validity period of a certificate; `None` if the certificate is malformed.
pub(crate) fn validity(certificate: &[u8]) -> Option<Validity> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    if let Some((_, rest)) = element(fields, VERSION) {
        fields = rest;
    }
    // The serial number, the signature algorithm and the issuer precede the validity.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        fields = element(fields, tag)?.1;
    }
    let (period, _) = element(fields, SEQUENCE)?;
    let (not_before, rest) = time(period)?;
    let (not_after, _) = time(rest)?;
    Some(Validity { not_before, not_after })
}

/// Splits `bytes` into the content of their first element, which must have this tag, and the rest.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk()?;
    if found != tag {
        return None;
    }
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
            (length, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// Parses a time; returns it in seconds since the Unix epoch, with the bytes behind it.
fn time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (digits, rest, year_digits) = match (element(bytes, UTC_TIME), bytes) {
        (Some((digits, rest)), _) => (digits, rest, 2),
        (None, bytes) => {
            element(bytes, GENERALIZED_TIME).map(|(digits, rest)| (digits, rest, 4))?
        }
    };
    let (year, digits) = digits.split_at_checked(year_digits)?;
    let year = number(year)?;
    // Two digits mean the years 1950 to 2049.
    let year = match year_digits {
        2 if year < 50 => year + 2000,
        2 => year + 1900,
        _ => year,
    };
    let digits = digits.strip_suffix(b"Z").filter(|digits| digits.len() == 10)?;
    let field = |index: usize| number(&digits[2 * index..][..2]);
    let days = days_since_epoch(year, field(0)?, field(1)?);
    let seconds = (days * 24 + field(2)?) * 3600 + field(3)? * 60 + field(4)?;
    Some((seconds, rest))
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns the days from the Unix epoch to a date of the Gregorian calendar.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that a leap day is the last day of its year.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_forms_are_parsed() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", 0),
            (UTC_TIME, "491231235959Z", 2_524_607_999),
            (UTC_TIME, "500101000000Z", -631_152_000),
            (UTC_TIME, "240229120000Z", 1_709_208_000),
            (GENERALIZED_TIME, "20500301000001Z", 2_529_705_601),
        ] {
            let mut bytes = vec![tag, u8::try_from(text.len()).unwrap()];
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(7);
            let (seconds, rest) = time(&bytes).unwrap();
            assert_eq!((seconds, rest), (expected, &[7][..]), "{text}");
        }
    }

    #[test]
    fn malformed_certificates_have_no_validity() {
        for bytes in
            [&b""[..], b"\x30", b"\x30\x05\x30\x80", b"\x30\x84\xff\xff\xff\xff", &[0x30; 40]]
        {
            assert_eq!(validity(bytes), None, "{bytes:?}");
        }
    }
}
