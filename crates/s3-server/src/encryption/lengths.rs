//! The lengths of encrypted bodies, in bytes. Pure.

/// The length of a segment's content, in bytes; the last segment can be shorter.
pub(crate) const SEGMENT_BYTES: u64 = 64 << 10;

/// The length of the tag that authenticates a segment, in bytes.
pub(crate) const TAG_BYTES: u64 = 16;

/// The length of the random salt at the beginning of a body, in bytes. The key for the body's
/// segments is derived from it.
pub(crate) const SALT_BYTES: u64 = 32;

/// Returns the length of the encrypted body for content with this length.
pub(crate) fn stored_bytes(content_bytes: u64) -> u64 {
    SALT_BYTES + content_bytes + TAG_BYTES * segments(content_bytes)
}

/// Returns the content's length in an encrypted body; `None` if no body has this length.
pub(crate) fn content_bytes(stored_bytes: u64) -> Option<u64> {
    let sealed = stored_bytes.checked_sub(SALT_BYTES)?;
    let segments = sealed.div_ceil(SEGMENT_BYTES + TAG_BYTES);
    let content = sealed.checked_sub(TAG_BYTES * segments.max(1))?;
    (self::stored_bytes(content) == stored_bytes).then_some(content)
}

/// Returns the number of segments for content with this length. Empty content has one segment.
pub(crate) fn segments(content_bytes: u64) -> u64 {
    content_bytes.div_ceil(SEGMENT_BYTES).max(1)
}

/// Returns a segment's offset in the encrypted body.
pub(crate) fn segment_offset(index: u64) -> u64 {
    SALT_BYTES + index * (SEGMENT_BYTES + TAG_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_of_the_content_follows_from_that_of_the_body() {
        let borders = [0, 1, 2, 3, 9].map(|segments| segments * SEGMENT_BYTES);
        for border in borders {
            for content in border.saturating_sub(20)..border + 20 {
                let stored = stored_bytes(content);
                assert_eq!(content_bytes(stored), Some(content));
                let last = segments(content) - 1;
                let last_bytes = content - last * SEGMENT_BYTES;
                assert_eq!(stored, segment_offset(last) + last_bytes + TAG_BYTES);
            }
        }
        assert_eq!(stored_bytes(0), 48);
        assert_eq!(stored_bytes(SEGMENT_BYTES), 32 + 65536 + 16);
        assert_eq!(stored_bytes(SEGMENT_BYTES + 1), 32 + 65536 + 16 + 1 + 16);
    }

    #[test]
    fn no_body_ends_in_a_part_of_a_tag() {
        let full = stored_bytes(SEGMENT_BYTES);
        let invalid = (0..48).chain(full + 1..=full + 16);
        for stored in invalid {
            assert_eq!(content_bytes(stored), None, "{stored}");
        }
        assert_eq!(content_bytes(full + 17), Some(SEGMENT_BYTES + 1));
        assert_eq!(content_bytes(u64::MAX).map(stored_bytes), Some(u64::MAX));
    }
}
