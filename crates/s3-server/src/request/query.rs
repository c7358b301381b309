//! Query parameters.

use form_urlencoded::parse;

/// The query parameters, decoded, in the client's order.
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

    /// Returns the parameters' names and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns `true` if there is no parameter.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if there is a parameter with this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns the value of the first parameter with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    /// Returns the value like [`Self::get`]; `None` also for an empty value.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }
}
