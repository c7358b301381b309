//! Locates the digest cache that `haul dups` and `haul sum` share.

use std::path::PathBuf;

use haul_bulk_read::digest::HashKind;

use crate::report::{Failure, Result};

/// Returns the path of the digest cache. `option` is the value of `--cache`: `None` without the
/// option, `Some(None)` for the default file of the hash function.
pub(crate) fn cache_path(
    option: Option<&Option<PathBuf>>,
    hash: HashKind,
) -> Result<Option<PathBuf>> {
    let Some(path) = option else { return Ok(None) };
    if let Some(path) = path {
        return Ok(Some(path.clone()));
    }
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let dir = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let dir = dir.ok_or_else(|| {
        Failure::new("no directory for the digest cache: XDG_CACHE_HOME and HOME are unset")
            .advise("name a file with --cache=DIGESTS")
    })?;
    let name = format!("digests-{}", format!("{hash:?}").to_lowercase());
    Ok(Some(dir.join("haul").join(name)))
}
