//! Reads the records that `haul patch` gets from a stream, and encodes them again.

use haul_sorted_write::records::Record;

/// The length of a file whose records are checked.
const FILE_BYTES: u64 = 1 << 20;

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    let mut stream = data;
    let mut encoded = Vec::new();
    for number in 1.. {
        let Ok(Some(record)) = Record::read(&mut stream, number) else { break };
        assert_eq!(record.number, number);
        let end = record.offset.checked_add(record.bytes);
        let lies_within = end.is_some_and(|end| end <= FILE_BYTES);
        assert_eq!(record.check(FILE_BYTES, false).is_ok(), lies_within);
        if record.check(FILE_BYTES, true).is_err() {
            break;
        }
        let mut bytes = Vec::new();
        let mut parts = record.parts(&mut stream);
        let is_complete = loop {
            match parts.next_part() {
                Ok(Some((offset, part))) => {
                    assert_eq!(offset, record.offset + bytes.len() as u64);
                    bytes.extend_from_slice(part);
                }
                Ok(None) => break true,
                Err(_truncated) => break false,
            }
        };
        if !is_complete {
            break;
        }
        assert_eq!(bytes.len() as u64, record.bytes);
        encoded.extend_from_slice(&record.offset.to_le_bytes());
        encoded.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
        encoded.extend_from_slice(&bytes);
    }
    assert!(data.starts_with(&encoded));
}
