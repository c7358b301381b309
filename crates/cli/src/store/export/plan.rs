//! Which path each key becomes, and which keys cannot become one. Pure.

use std::collections::BTreeSet;

use haul_file_store::ObjectInfo;

/// One object to write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) key: String,
    /// How much of the key is cut off; what follows is the path.
    cut_bytes: usize,
    pub(crate) bytes: u64,
}

impl Planned {
    /// Its path below the directory to write into.
    pub(crate) fn path(&self) -> &str {
        &self.key[self.cut_bytes..]
    }
}

/// Everything to write.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Directories to make, each after the one it is in.
    pub(crate) directories: BTreeSet<String>,
    pub(crate) files: Vec<Planned>,
    /// The bytes of all files together.
    pub(crate) bytes: u64,
    /// Keys that cannot become paths, and why.
    pub(crate) refused: Vec<(String, &'static str)>,
}

/// The paths of `objects`, all of which begin with `prefix`: their keys from behind the last slash
/// of it, so that a prefix that ends within a name keeps the names whole.
pub(crate) fn plan(objects: Vec<ObjectInfo>, prefix: &str) -> Plan {
    let cut_bytes = prefix.rfind('/').map_or(0, |slash| slash + 1);
    let mut plan = Plan::default();
    for ObjectInfo { key, bytes, .. } in objects {
        match safe(&key[cut_bytes..]) {
            Ok(()) => plan.files.push(Planned { key, cut_bytes, bytes }),
            Err(why) => plan.refused.push((key, why)),
        }
    }
    for file in &plan.files {
        let path = file.path();
        for parent in path.match_indices('/').rev().map(|(slash, _)| &path[..slash]) {
            // Most files share the directory of the one before.
            if !plan.directories.insert(parent.to_owned()) {
                break;
            }
        }
    }
    let is_both = |file: &mut Planned| plan.directories.contains(file.path());
    for file in plan.files.extract_if(.., is_both) {
        plan.refused.push((file.key, "other keys need a directory of this name"));
    }
    plan.bytes = plan.files.iter().map(|file| file.bytes).sum();
    plan
}

/// Refuses everything but a relative path that goes straight down.
fn safe(path: &str) -> Result<(), &'static str> {
    if path.contains('\0') {
        return Err("no file name can contain a NUL byte");
    }
    for name in path.split('/') {
        match name {
            "" => return Err("it has an empty name before, between or after its slashes"),
            "." | ".." => return Err("\".\" and \"..\" are no names of files"),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn of(keys: &[&str], prefix: &str) -> Plan {
        let etag = "d41d8cd98f00b204e9800998ecf8427e".parse().unwrap();
        let object =
            |key: &&str| ObjectInfo { key: (*key).into(), bytes: 10, modified: UNIX_EPOCH, etag };
        plan(keys.iter().map(object).collect(), prefix)
    }

    fn paths(plan: &Plan) -> Vec<&str> {
        plan.files.iter().map(Planned::path).collect()
    }

    #[test]
    fn the_prefix_is_cut_off_behind_its_last_slash() {
        let keys = ["a/b", "a/bc/d"];
        assert_eq!(paths(&of(&keys, "")), ["a/b", "a/bc/d"]);
        assert_eq!(paths(&of(&keys, "a")), ["a/b", "a/bc/d"]);
        assert_eq!(paths(&of(&keys, "a/")), ["b", "bc/d"]);
        assert_eq!(paths(&of(&keys, "a/b")), ["b", "bc/d"]);
    }

    #[test]
    fn every_directory_is_made_before_what_is_in_it() {
        let plan = of(&["a/b/c/d", "a/b/e", "f", "g/h"], "");
        assert_eq!(plan.directories.iter().collect::<Vec<_>>(), ["a", "a/b", "a/b/c", "g"]);
        assert_eq!(plan.bytes, 40);
    }

    #[test]
    fn keys_that_are_no_safe_path_are_refused() {
        let bad = ["", "/etc/passwd", "../x", "a/../x", "a/..", ".", "./x", "a//b", "a/", "a\0b"];
        let plan = of(&bad, "");
        assert!(plan.files.is_empty() && plan.directories.is_empty(), "{plan:?}");
        assert_eq!(plan.refused.len(), bad.len());
        assert_eq!(of(&["..x", "...", "a/.hidden", "a b", " "], "").refused, []);
        assert_eq!(of(&["x/../../y"], "x/").refused.len(), 1, "behind a prefix too");
    }

    #[test]
    fn a_key_that_is_also_a_directory_is_refused() {
        // "a!" sorts between "a" and "a/b".
        let plan = of(&["a", "a!", "a/b", "a/b/c", "d"], "");
        assert_eq!(paths(&plan), ["a!", "a/b/c", "d"]);
        let refused: Vec<_> = plan.refused.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(refused, ["a", "a/b"]);
        assert_eq!(plan.bytes, 30);
    }
}
