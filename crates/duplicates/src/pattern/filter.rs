//! Selects files and directories by patterns.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Pattern;

/// Patterns that include or exclude files and directories.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Patterns of file names: a file is included only if one of them matches. Without patterns,
    /// files of any name are included.
    pub names: Vec<Pattern>,
    /// Patterns of file paths: a file is included only if one of them matches. Without patterns,
    /// files at any path are included.
    pub paths: Vec<Pattern>,
    /// Patterns of paths: a file or directory is excluded if one of them matches.
    pub excluded: Vec<Pattern>,
}

impl Filter {
    /// `true` if there are no patterns, so that everything is included.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.paths.is_empty() && self.excluded.is_empty()
    }

    /// `true` if the patterns include the file.
    #[must_use]
    pub fn includes_file(&self, path: &Path) -> bool {
        let any = |patterns: &[Pattern], bytes| patterns.iter().any(|one| one.matches(bytes));
        let whole = path.as_os_str().as_bytes();
        let name = path.file_name().unwrap_or_default().as_bytes();
        (self.names.is_empty() || any(&self.names, name))
            && (self.paths.is_empty() || any(&self.paths, whole))
            && !any(&self.excluded, whole)
    }

    /// `true` if the directory has to be searched: no pattern excludes it or all of its entries.
    #[must_use]
    pub fn includes_dir(&self, path: &Path) -> bool {
        let whole = path.as_os_str().as_bytes();
        !self.excluded.iter().any(|one| one.matches(whole) || one.matches_all_in(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Syntax;

    #[test]
    fn names_and_paths_include_and_exclusions_take_precedence() {
        let base = Path::new("/base");
        let name = |text| Pattern::name(text, Syntax::default()).unwrap();
        let path = |text| Pattern::path(text, base, Syntax::default()).unwrap();
        let filter = Filter {
            names: vec![name("*.jpg")],
            paths: vec![path("a/**")],
            excluded: vec![path("a/tmp/**")],
        };
        for (file, is_included) in [
            ("/base/a/x.jpg", true),
            ("/base/a/x.png", false),
            ("/base/b/x.jpg", false),
            ("/base/a/tmp/x.jpg", false),
        ] {
            assert_eq!(filter.includes_file(Path::new(file)), is_included, "{file}");
        }
        assert!(filter.includes_dir(Path::new("/base/a")));
        assert!(!filter.includes_dir(Path::new("/base/a/tmp")));
        assert!(Filter::default().is_empty() && !filter.is_empty());
    }
}
