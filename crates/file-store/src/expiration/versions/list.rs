//! Searches for keys with expired versions, page by page in a version listing.

use crate::error::Result;
use crate::expiration::page::{PAGE_KEYS, Search};
use crate::inner::Inner;
use crate::lifecycle::rules::millis;
use crate::lifecycle::tags::ObjectTags;
use crate::object::{ListVersionsRequest, VersionId, VersionInfo, VersionListEntry};
use crate::versions::read::version_page;

/// A search's position and state.
#[derive(Debug, Default)]
pub(crate) struct VersionScan {
    /// The last listed version.
    after: Option<(String, VersionId)>,
    key: Option<KeyState>,
    is_complete: bool,
}

/// The key whose versions are being listed, and the state of this listing.
#[derive(Debug)]
struct KeyState {
    key: String,
    /// The time at which the last listed version was stored.
    stored_ms: u64,
    /// The number of listed versions.
    versions: u64,
    is_marker: bool,
    /// `true` if the key has an expired version, and was returned.
    is_found: bool,
}

impl VersionScan {
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Adds a version. Returns a key that has an expired version.
    fn add(&mut self, search: &Search<'_>, version: &VersionInfo) -> Option<String> {
        let VersionInfo { info, is_latest, is_delete_marker } = version;
        let stored_ms = millis(info.modified);
        if *is_latest || self.key.as_ref().is_none_or(|state| state.key != info.key) {
            let before = self.end_of_key(search);
            self.key = Some(KeyState {
                key: info.key.clone(),
                stored_ms,
                versions: 1,
                is_marker: *is_delete_marker,
                is_found: false,
            });
            return before;
        }
        let state = self.key.as_mut()?;
        let noncurrent = (state.stored_ms, state.versions - 1);
        let lifecycle = search.lifecycle;
        let tags = if *is_delete_marker { ObjectTags::none() } else { ObjectTags::Unknown };
        let (bytes, now_ms) = (info.bytes, search.now_ms);
        let rule = lifecycle.expires_noncurrent(&info.key, bytes, noncurrent, tags, now_ms);
        state.stored_ms = stored_ms;
        state.versions += 1;
        let is_new = rule.is_some() && !state.is_found;
        state.is_found |= is_new;
        is_new.then(|| info.key.clone())
    }

    /// Returns the last key if it only has an expired delete marker.
    fn end_of_key(&mut self, search: &Search<'_>) -> Option<String> {
        let state = self.key.take().filter(|state| state.is_marker && state.versions == 1)?;
        search.lifecycle.expires_marker(&state.key, state.stored_ms, search.now_ms)?;
        Some(state.key)
    }
}

/// Lists one page of versions, and returns the keys that may have expired ones, in order.
pub(crate) fn keys_with_expired_versions(
    inner: &Inner,
    search: &Search<'_>,
    scan: &mut VersionScan,
) -> Result<Vec<String>> {
    let limit = usize::try_from(PAGE_KEYS).unwrap_or(usize::MAX);
    let (after, after_version) = match &scan.after {
        Some((key, version)) => (Some(key.as_str()), Some(*version)),
        None => (None, None),
    };
    let prefix = search.prefix;
    let request = ListVersionsRequest { prefix, delimiter: None, after, after_version, limit };
    let page = version_page(inner, search.bucket, &request)?;
    let mut keys = Vec::new();
    for entry in page.entries {
        let VersionListEntry::Version(version) = entry else { continue };
        keys.extend(scan.add(search, &version));
        scan.after = Some((version.info.key, version.info.version_id));
    }
    if !page.more {
        keys.extend(scan.end_of_key(search));
        scan.is_complete = true;
    }
    Ok(keys)
}
