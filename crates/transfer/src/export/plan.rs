//! Plans the paths of exported objects. Performs no I/O.

use std::collections::BTreeSet;

use haul_file_store::ObjectInfo;

/// An object to export.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlannedFile {
    pub(crate) key: String,
    /// The length of the prefix that is removed from the key, in bytes; the rest of the key is the
    /// path.
    cut_bytes: usize,
    pub(crate) bytes: u64,
}

impl PlannedFile {
    /// Returns the path below the target directory.
    pub(crate) fn path(&self) -> &str {
        &self.key[self.cut_bytes..]
    }
}

/// The files and directories that an export creates.
#[derive(Debug, Default)]
pub struct ExportPlan {
    /// The directories to create; a parent precedes its subdirectories.
    pub(crate) directories: BTreeSet<String>,
    pub(crate) files: Vec<PlannedFile>,
    /// The total length of the files, in bytes.
    pub bytes: u64,
    /// The keys that cannot be paths, each with the reason.
    pub refused: Vec<(String, &'static str)>,
}

impl ExportPlan {
    /// Plans the paths of `objects`, whose keys begin with `prefix`. The path is the key without
    /// the part of the prefix up to its last slash, so that file names stay complete: with the
    /// prefix `a/b`, the path of the key `a/bc` is `bc`, not `c`.
    #[must_use]
    pub fn new(objects: Vec<ObjectInfo>, prefix: &str) -> Self {
        let cut_bytes = cut_bytes(prefix);
        let mut plan = Self::default();
        for ObjectInfo { key, bytes, .. } in objects {
            match safe(&key[cut_bytes..]) {
                Ok(()) => plan.files.push(PlannedFile { key, cut_bytes, bytes }),
                Err(reason) => plan.refused.push((key, reason)),
            }
        }
        for file in &plan.files {
            let path = file.path();
            for parent in path.match_indices('/').rev().map(|(slash, _)| &path[..slash]) {
                // If the directory is already in the set, its parents are, too. This ends the loop
                // at once for most files, which are in the directory of the preceding file.
                if !plan.directories.insert(parent.to_owned()) {
                    break;
                }
            }
        }
        let is_directory = |file: &mut PlannedFile| plan.directories.contains(file.path());
        for file in plan.files.extract_if(.., is_directory) {
            plan.refused.push((file.key, "another key requires a directory of this name"));
        }
        plan.bytes = plan.files.iter().map(|file| file.bytes).sum();
        plan
    }

    /// Returns the number of files to write.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files.len() as u64
    }
}

/// Returns the length of the part of a prefix that is removed from the keys: up to its last slash.
pub(crate) fn cut_bytes(prefix: &str) -> usize {
    prefix.rfind('/').map_or(0, |slash| slash + 1)
}

/// Checks that `path` is relative and contains no NUL and no `.`, `..` or empty component.
fn safe(path: &str) -> Result<(), &'static str> {
    if path.contains('\0') {
        return Err("contains a NUL byte");
    }
    for name in path.split('/') {
        match name {
            "" => return Err("contains an empty path component"),
            "." | ".." => return Err("contains \".\" or \"..\""),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use haul_file_store::VersionId;

    use super::*;

    fn of(keys: &[&str], prefix: &str) -> ExportPlan {
        let etag = "d41d8cd98f00b204e9800998ecf8427e".parse().unwrap();
        let (bytes, modified, version_id) = (10, UNIX_EPOCH, VersionId::Null);
        let object =
            |key: &&str| ObjectInfo { key: (*key).into(), bytes, modified, etag, version_id };
        ExportPlan::new(keys.iter().map(object).collect(), prefix)
    }

    fn paths(plan: &ExportPlan) -> Vec<&str> {
        plan.files.iter().map(PlannedFile::path).collect()
    }

    #[test]
    fn prefix_is_removed_up_to_its_last_slash() {
        let keys = ["a/b", "a/bc/d"];
        assert_eq!(paths(&of(&keys, "")), ["a/b", "a/bc/d"]);
        assert_eq!(paths(&of(&keys, "a")), ["a/b", "a/bc/d"]);
        assert_eq!(paths(&of(&keys, "a/")), ["b", "bc/d"]);
        assert_eq!(paths(&of(&keys, "a/b")), ["b", "bc/d"]);
    }

    #[test]
    fn directories_are_created_before_their_content() {
        let plan = of(&["a/b/c/d", "a/b/e", "f", "g/h"], "");
        assert_eq!(plan.directories.iter().collect::<Vec<_>>(), ["a", "a/b", "a/b/c", "g"]);
        assert_eq!(plan.bytes, 40);
    }

    #[test]
    fn unsafe_paths_are_refused() {
        let bad = ["", "/etc/passwd", "../x", "a/../x", "a/..", ".", "./x", "a//b", "a/", "a\0b"];
        let plan = of(&bad, "");
        assert!(plan.files.is_empty() && plan.directories.is_empty(), "{plan:?}");
        assert_eq!(plan.refused.len(), bad.len());
        assert_eq!(of(&["..x", "...", "a/.hidden", "a b", " "], "").refused, []);
        assert_eq!(of(&["x/../../y"], "x/").refused.len(), 1, "after a prefix, too");
    }

    #[test]
    fn key_that_is_also_a_directory_is_refused() {
        // The key "a!" sorts between "a" and "a/b".
        let plan = of(&["a", "a!", "a/b", "a/b/c", "d"], "");
        assert_eq!(paths(&plan), ["a!", "a/b/c", "d"]);
        let refused: Vec<_> = plan.refused.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(refused, ["a", "a/b"]);
        assert_eq!(plan.bytes, 30);
    }
}
