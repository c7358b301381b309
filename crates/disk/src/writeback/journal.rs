//! What ext4 and its journal say of themselves below `/proc/fs`. Pure.

/// What `/proc/fs/jbd2/<device>/info` tells of a journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JournalInfo {
    /// How many transactions were committed since it was mounted.
    pub transactions: u64,
    /// How many of these somebody asked for, as a sync does.
    pub requested: u64,
    /// How many blocks a transaction takes at most.
    pub blocks_max: u64,
    /// How long a commit takes on average; `None` where there was none yet.
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

/// The options of an ext4, from `/proc/fs/ext4/<device>/options`: those too that nobody named.
pub(super) fn options(text: &str) -> Vec<String> {
    let words = text.lines().map(str::trim).filter(|line| !line.is_empty());
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_journal_tells_of_its_transactions() {
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
    fn options_stand_a_line_each() {
        assert_eq!(options("rw\nbarrier\n\ncommit=5\n"), ["rw", "barrier", "commit=5"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "[0-9a-z (),\n]*\\PC*") {
            JournalInfo::of(&text);
            options(&text);
        }
    }
}
