//! Parses the mount options and the journal statistics that ext4 lists in `/proc/fs`. The caller
//! reads the files.

/// An ext4 journal's statistics, from `/proc/fs/jbd2/<device>/info`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JournalInfo {
    /// Transactions committed since mount.
    pub transactions: u64,
    /// Transactions committed on request, such as by a sync, instead of by the periodic commit.
    pub requested: u64,
    /// The maximum number of blocks in a transaction.
    pub blocks_max: u64,
    /// The average commit time in microseconds; `None` before the first commit.
    pub commit_us: Option<u64>,
}

impl JournalInfo {
    pub(super) fn of(info: &str) -> Option<Self> {
        let mut lines = info.lines();
        let first = lines.next()?;
        let numbers: Vec<u64> = first
            .split(|c: char| !c.is_ascii_digit())
            .filter(|word| !word.is_empty())
            .filter_map(|word| word.parse().ok())
            .collect();
        let &[transactions, requested, blocks_max] = numbers.as_slice() else { return None };
        if !first.contains("transactions") {
            return None;
        }
        let commit_us = lines.find_map(|line| {
            line.trim().strip_suffix("us average transaction commit time")?.parse().ok()
        });
        Some(Self { transactions, requested, blocks_max, commit_us })
    }
}

/// Parses `/proc/fs/ext4/<device>/options`, which lists the effective options, defaults included.
pub(super) fn options(text: &str) -> Vec<String> {
    let words = text.lines().map(str::trim).filter(|line| !line.is_empty());
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn journal_statistics_are_parsed() {
        let info = "\
85 transactions (62 requested), each up to 2048 blocks
average: 
  0ms waiting for transaction
  1ms running transaction
  735us average transaction commit time
  12 handles per transaction
";
        let expected =
            JournalInfo { transactions: 85, requested: 62, blocks_max: 2048, commit_us: Some(735) };
        assert_eq!(JournalInfo::of(info), Some(expected));
        let fresh = "0 transactions (0 requested), each up to 1024 blocks\n";
        assert_eq!(JournalInfo::of(fresh).unwrap().commit_us, None);
        for garbage in ["", "\n", "5 transactions", "1 2 3", "a transactions (b requested)"] {
            assert_eq!(JournalInfo::of(garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn options_are_one_per_line() {
        assert_eq!(options("rw\nbarrier\n\ncommit=5\n"), ["rw", "barrier", "commit=5"]);
    }

    proptest! {
        #[test]
        fn parsers_never_panic(text in "[0-9a-z (),\n]*\\PC*") {
            JournalInfo::of(&text);
            options(&text);
        }
    }
}
