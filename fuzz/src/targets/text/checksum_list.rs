//! Parses a list of checksums, and the same list after its lines were written in each format.
//!
//! The first byte selects the hash function of lines without a tag; the rest is the list.

use crate::input::Input;
use haul_bulk_read::digest::{Digest, HashKind};
use haul_checksums::{Line, LineFormat, List, write_line};

fn written(lines: &[Line], format: LineFormat) -> Vec<u8> {
    let mut text = Vec::new();
    for Line { kind, sum, name, .. } in lines {
        let (kind, sum) = (kind.expect("it is set"), Digest::from_bytes(sum).expect("a digest"));
        write_line(&mut text, kind, &sum, name, format);
    }
    text
}

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let known = HashKind::ALL.get(usize::from(input.byte())).copied();
    let text = input.take(usize::MAX);
    let list = List::parse(text, known);
    let separators = text.iter().filter(|byte| matches!(byte, b'\n' | 0)).count();
    assert!(list.lines.len() + list.unknown.len() + list.malformed <= separators + 1);
    let mut lines = list.lines;
    for Line { kind, sum, name, other_names } in &mut lines {
        other_names.clear();
        assert!(!name.is_empty() && !name.contains(&0), "{name:?}");
        let kinds = HashKind::ALL;
        *kind = kind.or_else(|| kinds.into_iter().find(|kind| kind.bytes() == sum.len()));
        assert_eq!(kind.map(HashKind::bytes), Some(sum.len()));
    }
    for zero in [false, true] {
        let text = written(&lines, LineFormat { tag: true, zero });
        let expected = List { lines: lines.clone(), ..List::default() };
        assert_eq!(List::parse(&text, None), expected, "{:?}", String::from_utf8_lossy(&text));
        for kind in HashKind::ALL {
            let has_kind = |line: &&Line| line.kind == Some(kind);
            let some: Vec<_> = lines.iter().filter(has_kind).cloned().collect();
            let text = written(&some, LineFormat { tag: false, zero });
            let expected = List { lines: some, ..List::default() };
            assert_eq!(
                List::parse(&text, Some(kind)),
                expected,
                "{:?}",
                String::from_utf8_lossy(&text)
            );
        }
    }
}
