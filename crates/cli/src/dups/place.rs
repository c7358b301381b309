//! Paths as reports have them: from the root on.

use std::path::{Component, Path, PathBuf};

use haul_duplicates::{Pattern, Syntax};

use crate::report::{Exit, OrFail, Result};

/// The directory relative paths begin at.
pub(super) fn base(dir: Option<&Path>) -> Result<PathBuf> {
    absolute(dir.unwrap_or(Path::new(".")))
}

/// `path` from the root on.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    let here =
        std::env::current_dir().or_fail(|| "cannot find the current directory".to_owned())?;
    Ok(below(&here, path))
}

/// `path`, which begins at `base`. Only what leads up is looked up on the disk: what is behind a
/// link is not what stands before it.
pub(super) fn below(base: &Path, path: &Path) -> PathBuf {
    let joined = base.join(path);
    if joined.components().any(|part| part == Component::ParentDir) {
        return joined.canonicalize().unwrap_or(joined);
    }
    joined.components().collect()
}

/// Patterns of names.
pub(super) fn names(patterns: &[String], syntax: Syntax) -> Result<Vec<Pattern>> {
    patterns
        .iter()
        .map(|text| Pattern::name(text, syntax))
        .collect::<std::result::Result<_, _>>()
        .or_fail(|| "the command line is wrong".to_owned())
        .map_err(|failure| failure.exit(Exit::Usage))
}

/// Patterns of paths.
pub(super) fn paths(patterns: &[String], base: &Path, syntax: Syntax) -> Result<Vec<Pattern>> {
    let pattern = |text: &String| Pattern::path(text, base, syntax);
    patterns
        .iter()
        .map(pattern)
        .collect::<std::result::Result<_, _>>()
        .or_fail(|| "the command line is wrong".to_owned())
        .map_err(|failure| failure.exit(Exit::Usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_base() {
        for (path, expected) in
            [("a/b", "/x/a/b"), (".", "/x"), ("./a/./b", "/x/a/b"), ("/a//b/", "/a/b"), ("", "/x")]
        {
            assert_eq!(below(Path::new("/x"), Path::new(path)), Path::new(expected));
        }
        assert_eq!(below(Path::new("/usr"), Path::new("../")), Path::new("/"));
    }
}
