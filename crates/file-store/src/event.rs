//! The description of a change in its event.

use std::fmt::{self, Write};
use std::sync::Arc;

/// An event that is queued with a change, once in each queue. The store adds the fields `bucket`,
/// `key`, `bytes`, `etag` and, for a version with an ID, `version`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The queues ([`crate::StoreEvents::create`]).
    pub queues: Vec<Arc<str>>,
    /// The caller's description of the change.
    pub fields: EventFields,
}

/// The names and values in an event, encoded as they are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFields(Vec<u8>);

impl EventFields {
    /// Creates fields without names, and makes room for some.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Adds a name and the text of its value.
    pub fn add(&mut self, name: &str, value: impl fmt::Display) {
        self.add_text(name);
        self.add_text(value);
    }

    /// Appends a text and, before it, its length.
    fn add_text(&mut self, text: impl fmt::Display) {
        let begin = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        // Writing to memory does not fail.
        write!(Appended(&mut self.0), "{text}").unwrap_or_default();
        // Lengths of 4 GiB do not occur: keys and names are short.
        let bytes = u32::try_from(self.0.len() - begin - 4).unwrap_or_default();
        self.0[begin..begin + 4].copy_from_slice(&bytes.to_le_bytes());
    }

    /// Returns a copy of these fields with room for `bytes` more bytes.
    pub(crate) fn clone_with_room(&self, bytes: usize) -> Self {
        let mut fields = Vec::with_capacity(self.0.len() + bytes);
        fields.extend_from_slice(&self.0);
        Self(fields)
    }

    /// Returns the value that was first added with a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Returns the names and values in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut left = self.0.as_slice();
        std::iter::from_fn(move || Some((take_text(&mut left)?, take_text(&mut left)?)))
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Decodes fields; `None` if the bytes are malformed.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut left = bytes;
        while !left.is_empty() {
            take_text(&mut left)?;
            take_text(&mut left)?;
        }
        Some(Self(bytes.to_vec()))
    }
}

/// Appends text to bytes.
struct Appended<'a>(&'a mut Vec<u8>);

impl Write for Appended<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Removes a text, which its length precedes, from the beginning of `bytes`.
fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (text, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_as_they_were_added_and_malformed_ones_are_refused() {
        let mut fields = EventFields::with_capacity(8);
        fields.add("key", "a\u{e4}");
        fields.add("bytes", 7);
        fields.add("", "");
        let bytes = fields.as_bytes().to_vec();
        let decoded = EventFields::from_bytes(&bytes).unwrap();
        let expected = [("key", "a\u{e4}"), ("bytes", "7"), ("", "")];
        assert_eq!(decoded.iter().collect::<Vec<_>>(), expected);
        assert_eq!((decoded.get("bytes"), decoded.get("other")), (Some("7"), None));
        assert_eq!(fields.clone_with_room(100), fields);
        // Cuts between fields leave fields; all others are malformed.
        let whole = |at: usize| [0, 14, 28, 36].contains(&at);
        for at in 0..=bytes.len() {
            assert_eq!(EventFields::from_bytes(&bytes[..at]).is_some(), whole(at), "{at}");
        }
        for (at, byte) in [(0, 200), (3, 255), (12, b'\xff')] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            assert_eq!(EventFields::from_bytes(&changed), None, "{at}");
        }
    }
}
