//! The parameters of a query.

use form_urlencoded::parse;

/// The parameters of a query, decoded, in the order of the client.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes a query, without its question mark.
    pub(crate) fn parse(text: &str) -> Self {
        if text.is_empty() {
            return Self::default();
        }
        Self(parse(text.as_bytes()).into_owned().collect())
    }

    /// Returns the names and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns `true` if there is a parameter of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the value of the first parameter of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Like [`Self::get`], but `None` also for an empty value.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }
}
