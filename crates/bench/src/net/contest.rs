//! What rows of servers that take turns have in common.

use crate::error::{Error, Result, chain};

/// A failure of ours ends the bench, and that it was told to stop; a rival's is a word in its rows.
pub(crate) fn told<T>(
    result: Result<T>,
    is_ours: bool,
    not: &mut Option<String>,
) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Cancelled) => Err(Error::Cancelled),
        Err(error) if is_ours => Err(error),
        Err(error) => {
            *not = Some(chain(&error));
            Ok(None)
        }
    }
}

/// Who is measured in each round: all of them, and behind the first one itself once more. What lies
/// between these two is noise.
pub(crate) fn first_again(who: impl IntoIterator<Item = usize>) -> Vec<(usize, bool)> {
    let mut who: Vec<_> = who.into_iter().map(|which| (which, false)).collect();
    if let Some((first, _)) = who.first().copied() {
        who.insert(1, (first, true));
    }
    who
}

/// A number of bytes as part of the name of a ratio: `64`, `4k`, `1m`.
pub(crate) fn short(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Fails unless each ratio the page names below that heading is there; `…` stands for anything.
    pub(crate) fn check_documented(heading: &str, ratios: &BTreeMap<String, f64>) {
        let page = include_str!("../../../../docs/network-bench.md");
        let section = page.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
        let (_, table) = section.split_once("\n| ratio |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let names: Vec<_> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
        assert!(names.len() >= 10, "{names:?}");
        for name in names {
            assert!(ratios.keys().any(|key| is_meant(key, name)), "{name} is no ratio: {ratios:?}");
        }
    }

    fn is_meant(key: &str, name: &str) -> bool {
        let Some((begin, rest)) = name.split_once('…') else { return key == name };
        let Some(behind) = key.strip_prefix(begin) else { return false };
        let ends = behind.char_indices().map(|(at, _)| at).chain([behind.len()]);
        ends.into_iter().any(|at| is_meant(&behind[at..], rest))
    }

    #[test]
    fn what_is_left_out_of_a_name_may_be_anything() {
        for (name, expected) in [
            ("a_1_vs_b", true),
            ("a_…", true),
            ("…_vs_b", true),
            ("…_1_…_b", true),
            ("a_1_vs", false),
            ("…_2_…", false),
        ] {
            assert_eq!(is_meant("a_1_vs_b", name), expected, "{name}");
        }
    }

    #[test]
    fn a_rivals_failure_is_told_and_ours_ends_all() {
        let failed = || Err::<(), _>(Error::Missing("no".to_owned()));
        let mut not = None;
        assert!(matches!(told(Ok(1), false, &mut not), Ok(Some(1))) && not.is_none());
        assert!(told(failed(), true, &mut not).is_err() && not.is_none());
        let cancelled = told(Err::<(), _>(Error::Cancelled), false, &mut not);
        assert!(matches!(cancelled, Err(Error::Cancelled)) && not.is_none());
        assert!(matches!(told(failed(), false, &mut not), Ok(None)));
        assert_eq!(not.as_deref(), Some("no"));
    }

    #[test]
    fn the_first_is_measured_twice_and_nobody_is_nobody() {
        assert_eq!(first_again([4, 2]), [(4, false), (4, true), (2, false)]);
        assert_eq!(first_again([]), []);
    }

    #[test]
    fn lengths_have_short_names() {
        for (bytes, expected) in
            [(0, "0"), (64, "64"), (1000, "1000"), (16 << 10, "16k"), (3 << 20, "3m")]
        {
            assert_eq!(short(bytes), expected);
        }
    }
}
