//! Selects the content codings that a client accepts. Performs no I/O.

/// A content coding. The order is the preference of the server, by typical size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Coding {
    Brotli,
    Zstd,
    Gzip,
}

impl Coding {
    pub(crate) const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// Returns the name in `Content-Encoding`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the suffix of the names of encoded files.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }
}

/// The codings that a client accepts, in the order of its preference. Small, because it is part of
/// cache keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct AcceptedCodings([Option<Coding>; 3]);

impl AcceptedCodings {
    pub(crate) fn iter(self) -> impl Iterator<Item = Coding> {
        self.0.into_iter().flatten()
    }
}

/// The quality values of a request, in thousandths.
#[derive(Default)]
struct Qualities {
    codings: [Option<u16>; 3],
    identity: Option<u16>,
    wildcard: Option<u16>,
}

/// Parses all values of `Accept-Encoding`. A coding is accepted if its quality is at least that of
/// `identity`, because the unencoded file always exists.
pub(crate) fn accepted_codings<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> AcceptedCodings {
    let mut qualities = Qualities::default();
    let items = values.into_iter().flat_map(|value| value.split(|byte| *byte == b','));
    for item in items {
        let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let Some(quality) = parts.try_fold(1000, quality) else { continue };
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match Coding::ALL.into_iter().find(|coding| is(coding.name())) {
            Some(coding) => qualities.codings[coding as usize] = Some(quality),
            None if is("x-gzip") => qualities.codings[Coding::Gzip as usize] = Some(quality),
            None if is("identity") => qualities.identity = Some(quality),
            None if is("*") => qualities.wildcard = Some(quality),
            None => {}
        }
    }
    let quality =
        |coding: Coding| qualities.codings[coding as usize].or(qualities.wildcard).unwrap_or(0);
    // Without a quality of its own, `identity` ranks below every coding that is named.
    let quality_min = qualities.identity.unwrap_or(0).max(1);
    let mut list = Coding::ALL.map(|coding| Some(coding).filter(|&it| quality(it) >= quality_min));
    list.sort_by_key(|coding| coding.map_or((true, 0), |it| (false, 1000 - quality(it))));
    AcceptedCodings(list)
}

/// Returns the quality after another parameter; `None` if the parameter is malformed.
fn quality(before: u16, parameter: &[u8]) -> Option<u16> {
    let Some(value) = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q="))
    else {
        return Some(before);
    };
    let (whole, fraction) = match value {
        [whole @ (b'0' | b'1')] => (*whole, &b""[..]),
        [whole @ (b'0' | b'1'), b'.', fraction @ ..] if fraction.len() <= 3 => (*whole, fraction),
        _ => return None,
    };
    let mut thousandths = u16::from(whole - b'0') * 1000;
    for (digit, unit) in fraction.iter().zip([100, 10, 1]) {
        thousandths += u16::from(digit.is_ascii_digit().then(|| digit - b'0')?) * unit;
    }
    Some(thousandths).filter(|&quality| quality <= 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_are_in_the_order_of_the_client_then_of_the_server() {
        for (value, expected) in [
            ("", ""),
            ("identity", ""),
            ("gzip", "gzip"),
            ("x-gzip", "gzip"),
            ("GZIP, Br", "br gzip"),
            ("gzip, deflate, br, zstd", "br zstd gzip"),
            ("gzip;q=1.0, br;q=0.5", "gzip br"),
            ("br;q=0.5, zstd;q=0.501, gzip;q=0.5", "zstd br gzip"),
            ("br;q=0, gzip", "gzip"),
            ("br;q=0.000", ""),
            ("*", "br zstd gzip"),
            ("*;q=0.1, gzip", "gzip br zstd"),
            ("*;q=0, gzip", "gzip"),
            ("br;q=0, *", "zstd gzip"),
            ("identity;q=0.5, gzip;q=0.4, br;q=0.6", "br"),
            ("identity, gzip;q=0.9", ""),
            ("identity;q=0, gzip", "gzip"),
            ("gzip ; q=0.2 , br ; q=0.1", "gzip br"),
            ("gzip;level=9;q=0.5, br", "br gzip"),
            ("deflate, compress", ""),
            ("gzipp, brr", ""),
        ] {
            let names: Vec<_> =
                accepted_codings([value.as_bytes()]).iter().map(Coding::name).collect();
            assert_eq!(names.join(" "), expected, "{value}");
        }
        let lines = [&b"gzip;q=0.5"[..], b"zstd"];
        assert_eq!(
            accepted_codings(lines),
            accepted_codings([&b"gzip;q=0.5, zstd"[..]]),
            "several lines"
        );
        assert_eq!(accepted_codings([]), AcceptedCodings::default());
    }

    #[test]
    fn coding_with_a_malformed_quality_is_ignored() {
        for value in [
            "gzip;q=1.5",
            "gzip;q=2",
            "gzip;q=",
            "gzip;q=0.1234",
            "gzip;q=.5",
            "gzip;q=-1",
            "gzip;q=1.001",
            "gzip;q=0.x",
        ] {
            assert_eq!(accepted_codings([value.as_bytes()]), AcceptedCodings::default(), "{value}");
        }
    }
}
