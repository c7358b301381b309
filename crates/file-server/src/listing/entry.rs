//! The content of a listing.

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    /// The length of a file; `None` for a directory.
    pub(crate) bytes: Option<u64>,
    pub(crate) modified_s: u64,
}

/// One page of the listing of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    /// In bytewise order of the names, unless the page is sorted.
    pub(crate) entries: Vec<Entry>,
    /// `true` if this is not the first page.
    pub(crate) is_continued: bool,
    /// The reference to the next page, if there are more names.
    pub(crate) next: Option<String>,
}

impl Listing {
    /// Returns `true` if it has all names of the directory, so that it can be sorted.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_continued && self.next.is_none()
    }
}
