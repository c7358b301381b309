//! The header fields in a request head.

use std::borrow::Cow;

/// The header with the algorithm of the checksum that an SDK sends.
pub(crate) const SDK_ALGORITHM: &str = "x-amz-sdk-checksum-algorithm";

/// A request's header fields, with names in lower case. One buffer contains all names, and one all
/// values: the server looks up about a hundred names, most of which a request lacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields {
    names: String,
    values: Vec<u8>,
    ends: Vec<Ends>,
}

/// The ends of a field's name and value in the buffers. They begin at the ends of the previous
/// field.
#[derive(Debug, Clone, Copy)]
struct Ends {
    name: usize,
    value: usize,
}

impl Fields {
    /// Creates an empty list with space for `count` fields with `bytes` bytes.
    pub(crate) fn with_capacity(count: usize, bytes: usize) -> Self {
        let (names, values) = (String::with_capacity(bytes / 2), Vec::with_capacity(bytes));
        Self { names, values, ends: Vec::with_capacity(count) }
    }

    /// Adds a field. A name that is not UTF-8 becomes empty.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) {
        let begin = self.names.len();
        self.names.push_str(str::from_utf8(name).unwrap_or_default());
        self.names[begin..].make_ascii_lowercase();
        self.values.extend_from_slice(value);
        self.ends.push(Ends { name: self.names.len(), value: self.values.len() });
    }

    /// Replaces all fields with this name by one.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.retain(|found| found != name);
        self.push(name.as_bytes(), value.as_bytes());
    }

    /// Removes the fields whose names `keeps` does not accept.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&str) -> bool) {
        if self.iter().all(|(name, _)| keeps(name)) {
            return;
        }
        let mut kept = Self::with_capacity(self.ends.len(), self.values.len());
        for (name, value) in self.iter().filter(|(name, _)| keeps(name)) {
            kept.push(name.as_bytes(), value);
        }
        *self = kept;
    }

    /// Returns all fields in order, with names in lower case.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut begin = Ends { name: 0, value: 0 };
        self.ends.iter().map(move |ends| {
            let Ends { name, value } = std::mem::replace(&mut begin, *ends);
            (&self.names[name..ends.name], &self.values[value..ends.value])
        })
    }

    /// Returns the values of all fields with this name, which is in lower case.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Returns the value of the first field with this name.
    pub(crate) fn first(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Returns `true` if there is a field with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    /// Returns the value of the first field with this name, if it is UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        str::from_utf8(self.first(name)?).ok()
    }

    /// Returns the value like [`Self::text`]; `None` also for an empty value, which S3 ignores in
    /// most fields.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|value| !value.is_empty())
    }

    /// Returns the values of all fields with this name, separated by commas (RFC 9110, 5.3). Bytes
    /// that are not UTF-8 are replaced.
    pub(crate) fn joined(&self, name: &str) -> Option<Cow<'_, str>> {
        let mut values = self.iter().filter(|(found, _)| *found == name).map(|(_, value)| value);
        let first = String::from_utf8_lossy(values.next()?);
        Some(
            values.fold(first, |all, value| {
                format!("{all},{}", String::from_utf8_lossy(value)).into()
            }),
        )
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Fields {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(fields: I) -> Self {
        let mut all = Self::default();
        fields.into_iter().for_each(|(name, value)| all.push(name.as_bytes(), value.as_bytes()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_names_in_lower_case() {
        let mut fields: Fields =
            [("Host", "a"), ("X-Amz-Meta-A", "1"), ("x-amz-meta-a", "2"), ("Empty", "")]
                .into_iter()
                .collect();
        assert_eq!(fields.text("host"), Some("a"));
        assert_eq!(fields.joined("x-amz-meta-a").as_deref(), Some("1,2"));
        assert_eq!(fields.all("x-amz-meta-a").count(), 2);
        assert_eq!((fields.text("empty"), fields.given("empty")), (Some(""), None));
        assert!(!fields.has("absent") && fields.joined("absent").is_none());
        fields.set("x-amz-meta-a", "3");
        fields.retain(|name| name != "host");
        let all: Vec<_> = fields.iter().collect();
        assert_eq!(all, [("empty", &b""[..]), ("x-amz-meta-a", b"3")]);
    }

    #[test]
    fn values_that_are_not_text_have_no_text() {
        let mut fields = Fields::default();
        fields.push(b"a", b"\xff");
        fields.push(b"a", b"b");
        assert_eq!(fields.text("a"), None);
        assert_eq!(fields.joined("a").as_deref(), Some("\u{fffd},b"));
    }
}
