//! Which encoded form of a file a client likes best. Pure.

/// A way to encode a file, in the order in which we like them when the client does not care:
/// by how short they usually are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Coding {
    Brotli,
    Zstd,
    Gzip,
}

impl Coding {
    pub(crate) const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// As it stands in `Content-Encoding`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// What the name of such a file ends with.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }
}

/// The codings a client takes, best first. Small, since it is part of the key of caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Accepted([Option<Coding>; 3]);

impl Accepted {
    pub(crate) fn iter(self) -> impl Iterator<Item = Coding> {
        self.0.into_iter().flatten()
    }
}

/// Qualities in thousandths, as far as they were told.
#[derive(Default)]
struct Told {
    codings: [Option<u16>; 3],
    identity: Option<u16>,
    others: Option<u16>,
}

/// Reads all values of `Accept-Encoding`. A file as it is, is always there: a coding must be liked
/// as well as that at least.
pub(crate) fn accepted<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Accepted {
    let mut told = Told::default();
    let items = values.into_iter().flat_map(|value| value.split(|byte| *byte == b','));
    for item in items {
        let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let name = parts.next().unwrap_or_default();
        let Some(quality) = parts.try_fold(1000, quality) else { continue };
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match Coding::ALL.into_iter().find(|coding| is(coding.name())) {
            Some(coding) => told.codings[coding as usize] = Some(quality),
            None if is("x-gzip") => told.codings[Coding::Gzip as usize] = Some(quality),
            None if is("identity") => told.identity = Some(quality),
            None if is("*") => told.others = Some(quality),
            None => {}
        }
    }
    let quality = |coding: Coding| told.codings[coding as usize].or(told.others).unwrap_or(0);
    // Told by nobody, it is as good as anything, but what was named is better.
    let least = told.identity.unwrap_or(0).max(1);
    let mut list = Coding::ALL.map(|coding| Some(coding).filter(|&it| quality(it) >= least));
    list.sort_by_key(|coding| coding.map_or((true, 0), |it| (false, 1000 - quality(it))));
    Accepted(list)
}

/// The quality after one more parameter; `None` when it makes no sense.
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
    fn the_order_is_the_clients_and_then_ours() {
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
            let names: Vec<_> = accepted([value.as_bytes()]).iter().map(Coding::name).collect();
            assert_eq!(names.join(" "), expected, "{value}");
        }
        let lines = [&b"gzip;q=0.5"[..], b"zstd"];
        assert_eq!(accepted(lines), accepted([&b"gzip;q=0.5, zstd"[..]]), "several lines");
        assert_eq!(accepted([]), Accepted::default());
    }

    #[test]
    fn qualities_that_make_no_sense_are_passed_over_with_their_coding() {
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
            assert_eq!(accepted([value.as_bytes()]), Accepted::default(), "{value}");
        }
    }
}
