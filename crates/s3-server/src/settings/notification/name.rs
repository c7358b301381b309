//! The names of events, and the patterns that select them.

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventName {
    CreatedByPut,
    CreatedByPost,
    CreatedByCopy,
    CreatedByUpload,
    Removed,
    MarkerCreated,
    TagsPut,
    TagsDeleted,
    AclPut,
    Expired,
    ExpiryMarkerCreated,
}

impl EventName {
    const ALL: [Self; 11] = [
        Self::CreatedByPut,
        Self::CreatedByPost,
        Self::CreatedByCopy,
        Self::CreatedByUpload,
        Self::Removed,
        Self::MarkerCreated,
        Self::TagsPut,
        Self::TagsDeleted,
        Self::AclPut,
        Self::Expired,
        Self::ExpiryMarkerCreated,
    ];

    /// Parses the name in S3's records.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }

    /// Returns the name in S3's records, which is without `s3:`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::CreatedByPut => "ObjectCreated:Put",
            Self::CreatedByPost => "ObjectCreated:Post",
            Self::CreatedByCopy => "ObjectCreated:Copy",
            Self::CreatedByUpload => "ObjectCreated:CompleteMultipartUpload",
            Self::Removed => "ObjectRemoved:Delete",
            Self::MarkerCreated => "ObjectRemoved:DeleteMarkerCreated",
            Self::TagsPut => "ObjectTagging:Put",
            Self::TagsDeleted => "ObjectTagging:Delete",
            Self::AclPut => "ObjectAcl:Put",
            Self::Expired => "LifecycleExpiration:Delete",
            Self::ExpiryMarkerCreated => "LifecycleExpiration:DeleteMarkerCreated",
        }
    }
}

/// A pattern in a configuration, such as `s3:ObjectCreated:*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventPattern(String);

impl EventPattern {
    /// Parses a pattern; `None` if it selects no event of this server.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let pattern = Self(text.to_owned());
        EventName::ALL.into_iter().any(|name| pattern.selects(name)).then_some(pattern)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn selects(&self, name: EventName) -> bool {
        let Some(pattern) = self.0.strip_prefix("s3:") else { return false };
        match pattern.strip_suffix('*') {
            Some(kind) => kind.ends_with(':') && name.as_str().starts_with(kind),
            None => name.as_str() == pattern,
        }
    }
}

/// A set of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EventNames(u16);

impl EventNames {
    /// Adds the events that a pattern selects: none for the events of other servers, such as those
    /// of reads.
    pub(crate) fn add(&mut self, pattern: &str) {
        let pattern = EventPattern(pattern.to_owned());
        let selected = EventName::ALL.into_iter().filter(|name| pattern.selects(*name));
        self.0 |= selected.map(Self::bit).fold(0, |all, bit| all | bit);
    }

    pub(crate) fn contains(self, name: EventName) -> bool {
        self.0 & Self::bit(name) != 0
    }

    fn bit(name: EventName) -> u16 {
        1 << name as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_select_a_kind_or_one_event() {
        let selected = |text: &str| {
            let pattern = EventPattern::parse(text)?;
            Some(EventName::ALL.into_iter().filter(|name| pattern.selects(*name)).count())
        };
        for (text, count) in [
            ("s3:ObjectCreated:*", 4),
            ("s3:ObjectCreated:Put", 1),
            ("s3:ObjectRemoved:*", 2),
            ("s3:ObjectTagging:*", 2),
            ("s3:LifecycleExpiration:*", 2),
            ("s3:ObjectAcl:Put", 1),
        ] {
            assert_eq!(selected(text), Some(count), "{text}");
            let (mut names, pattern) = (EventNames::default(), EventPattern(text.to_owned()));
            ["s3:ObjectAccessed:Get", text].into_iter().for_each(|text| names.add(text));
            for name in EventName::ALL {
                assert_eq!(names.contains(name), pattern.selects(name), "{text} {name:?}");
            }
        }
        let others = ["", "*", "s3:*", "s3:Object*", "ObjectCreated:Put", "s3:ObjectCreated"];
        for text in others.into_iter().chain(["s3:objectcreated:put", "s3:ObjectAccessed:Get"]) {
            assert_eq!(selected(text), None, "{text}");
        }
    }
}
