//! Makes path arguments absolute, because reports contain only absolute paths, and parses patterns.

use std::path::{Path, PathBuf};

use haul_duplicates::report::absolute_path;
use haul_duplicates::{Pattern, Syntax};

use crate::report::{Exit, OrFail, Result};

/// Returns the absolute base directory for relative paths: `dir`, or else the current directory.
pub(super) fn base(dir: Option<&Path>) -> Result<PathBuf> {
    absolute(dir.unwrap_or(Path::new(".")))
}

/// Returns `path` as an absolute path. A relative path is resolved against the current directory.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    let here =
        std::env::current_dir().or_fail(|| "cannot find the current directory".to_owned())?;
    Ok(absolute_path(&here, path))
}

/// Parses patterns of file names.
pub(super) fn names(patterns: &[String], syntax: Syntax) -> Result<Vec<Pattern>> {
    patterns
        .iter()
        .map(|text| Pattern::name(text, syntax))
        .collect::<std::result::Result<_, _>>()
        .or_fail(|| "invalid pattern".to_owned())
        .map_err(|failure| failure.exit(Exit::Usage))
}

/// Parses patterns of full paths; relative patterns are resolved against `base`.
pub(super) fn paths(patterns: &[String], base: &Path, syntax: Syntax) -> Result<Vec<Pattern>> {
    let pattern = |text: &String| Pattern::path(text, base, syntax);
    patterns
        .iter()
        .map(pattern)
        .collect::<std::result::Result<_, _>>()
        .or_fail(|| "invalid pattern".to_owned())
        .map_err(|failure| failure.exit(Exit::Usage))
}
