//! What the samples come to, under the names under which it may be claimed. Pure.

use std::collections::BTreeMap;

use crate::log::group::{GROWING, Group, OURS, RAW};

/// The length of the records all ratios are about.
const RECORD_BYTES: usize = 4096;

/// (key, against whom, with how many writers).
const AGAINST: &[(&str, &str, usize)] = &[
    ("log_vs_raw_1w", RAW, 1),
    ("log_vs_growing_file_1w", GROWING, 1),
    ("log_vs_okaywal_16w", "okaywal", 16),
    ("log_vs_walrus_16w", "walrus", 16),
    ("log_vs_raft_engine_16w", "raft-engine", 16),
    ("log_vs_rocksdb_16w", "rocksdb", 16),
    ("log_vs_sqlite_16w", "sqlite", 16),
];

/// Our rate over theirs; what was not measured has no entry.
pub(crate) fn ratios(groups: &[Group]) -> BTreeMap<String, f64> {
    let group =
        |writers| groups.iter().find(|it| it.record_bytes == RECORD_BYTES && it.writers == writers);
    let mut ratios = BTreeMap::new();
    for (key, family, writers) in AGAINST {
        let rates = group(*writers).and_then(|it| Some((it.rate_of(OURS)?, it.rate_of(family)?)));
        if let Some((ours, theirs)) = rates {
            ratios.insert((*key).to_owned(), ours / theirs);
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::group::tests::{cell, group};

    #[test]
    fn ratios_are_ours_over_theirs() {
        let one = group(
            1,
            vec![
                cell(OURS, &[90.0, 95.0, 100.0]),
                cell("raw/dsync", &[100.0, 100.0, 100.0]),
                cell(GROWING, &[19.0, 19.0, 19.0]),
                cell("okaywal", &[1.0, 1.0, 1.0]),
            ],
        );
        let many = group(
            16,
            vec![
                cell(OURS, &[800.0, 800.0]),
                cell("sqlite", &[20.0, 20.0]),
                cell("sqlite/connection-each", &[40.0, 40.0]),
                cell("rocksdb", &[0.0, 0.0]),
            ],
        );
        let expected =
            [("log_vs_growing_file_1w", 5.0), ("log_vs_raw_1w", 0.95), ("log_vs_sqlite_16w", 20.0)];
        let expected = expected.map(|(key, ratio)| (key.to_owned(), ratio));
        assert_eq!(ratios(&[many, one]), BTreeMap::from(expected));
        assert!(ratios(&[]).is_empty());
    }
}
