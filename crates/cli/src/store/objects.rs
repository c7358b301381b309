//! Lists the objects of a bucket, page by page.

use haul_file_store::{ListEntry, ListRequest, ObjectInfo};
use haul_store_pool::Pool;

use crate::report::{OrFail, Result};

const PAGE_LINES: usize = 1000;

/// Calls `each` with each line of the listing, in key order. With a `delimiter`, all keys that
/// share a prefix up to the delimiter are one line.
pub(super) fn list(
    store: &Pool,
    bucket: &str,
    prefix: &str,
    delimiter: Option<&str>,
    mut each: impl FnMut(ListEntry) -> Result,
) -> Result {
    let mut after: Option<String> = None;
    loop {
        let request = ListRequest { prefix, delimiter, after: after.as_deref(), limit: PAGE_LINES };
        let page = store.list(bucket, &request).or_fail(|| format!("cannot list {bucket}"))?;
        let last = page.entries.last().map(|line| line.name().to_owned());
        page.entries.into_iter().try_for_each(&mut each)?;
        match last {
            Some(last) if page.more => after = Some(last),
            _ => return Ok(()),
        }
    }
}

/// Returns the objects of `bucket` whose keys begin with `prefix`.
pub(super) fn all(store: &Pool, bucket: &str, prefix: &str) -> Result<Vec<ObjectInfo>> {
    let mut objects = Vec::new();
    list(store, bucket, prefix, None, |line| {
        if let ListEntry::Object(info) = line {
            objects.push(info);
        }
        Ok(())
    })?;
    Ok(objects)
}
