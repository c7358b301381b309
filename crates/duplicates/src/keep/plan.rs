//! Computes which files of a group to keep and which to drop. No I/O.

use std::cmp::Reverse;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{FileInfo, Priority, Rules, Selection};
use crate::pattern::Pattern;
use crate::replicas::replicas;

/// The files of a group to keep and to drop, by index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// The indexes of the files to keep, symbolic links last. Links that replace dropped files
    /// refer to the first of these files that still has the same content. Not empty unless `drop`
    /// is empty.
    pub keep: Vec<usize>,
    /// The indexes of the files to drop, in this order.
    pub drop: Vec<usize>,
}

/// The key of a replica. Files with equal keys form one replica.
#[derive(PartialEq, Eq, Hash)]
enum Replica {
    Below(usize),
    Inode(u64, u64),
    Single(usize),
}

/// Selects the files to keep and to drop among the files of one group.
#[must_use]
pub fn choose(files: &[FileInfo], rules: &Rules) -> Choice {
    let key = |(index, file): (usize, &FileInfo)| {
        let root = rules.isolate.iter().position(|root| file.path.starts_with(root));
        match root {
            Some(root) => Replica::Below(root),
            None if rules.match_links => Replica::Single(index),
            None => Replica::Inode(file.identity.device, file.identity.inode),
        }
    };
    let mut replicas = replicas(files.iter().enumerate().map(key));
    for priority in rules.priorities.iter().rev() {
        sort(&mut replicas, files, *priority);
    }
    let must_stay = |replica: &Vec<usize>| {
        let must_stay = |file: &FileInfo| {
            file.is_link
                || selects(&rules.keep, &file.path)
                || rules.keep_roots.iter().any(|root| file.path.starts_with(root))
                || !may_drop(&rules.drop, &file.path)
        };
        replica.iter().any(|index| must_stay(&files[*index]))
    };
    let (mut keep, drop): (Vec<_>, Vec<_>) = replicas.into_iter().partition(must_stay);
    // A symbolic link contains no copy of the data, so a replica of symbolic links does not count.
    let is_copy = |replica: &Vec<usize>| replica.iter().any(|index| !files[*index].is_link);
    let copies = keep.iter().filter(|replica| is_copy(replica)).count();
    let missing = rules.keep_count.max(1).saturating_sub(copies).min(drop.len());
    let mut drop = drop.into_iter();
    keep.extend(drop.by_ref().take(missing));
    let mut keep: Vec<_> = keep.into_iter().flatten().collect();
    keep.sort_by_key(|index| files[*index].is_link);
    Choice { keep, drop: drop.flatten().collect() }
}

/// Sorts the replicas by `priority`; the last ones are dropped. The sort is stable, so an earlier
/// sort decides among equal replicas.
fn sort(replicas: &mut [Vec<usize>], files: &[FileInfo], priority: Priority) {
    let latest = |time: fn(&FileInfo) -> i64| {
        move |replica: &Vec<usize>| {
            replica.iter().map(|index| time(&files[*index])).max().unwrap_or(i64::MIN)
        }
    };
    let created = |replica: &Vec<usize>| {
        replica.iter().filter_map(|index| files[*index].created_ns).min().unwrap_or(i64::MIN)
    };
    let depth = |index: &usize| files[*index].path.components().count();
    let modified = latest(|file| file.identity.modified_ns);
    let accessed = latest(|file| file.accessed_ns);
    let changed = latest(|file| file.identity.changed_ns);
    match priority {
        Priority::Top => replicas.reverse(),
        Priority::Bottom => {}
        Priority::Newest => replicas.sort_by_key(created),
        Priority::Oldest => replicas.sort_by_key(|replica| Reverse(created(replica))),
        Priority::MostRecentlyModified => replicas.sort_by_key(modified),
        Priority::LeastRecentlyModified => replicas.sort_by_key(|files| Reverse(modified(files))),
        Priority::MostRecentlyAccessed => replicas.sort_by_key(accessed),
        Priority::LeastRecentlyAccessed => replicas.sort_by_key(|files| Reverse(accessed(files))),
        Priority::MostRecentStatusChange => replicas.sort_by_key(changed),
        Priority::LeastRecentStatusChange => replicas.sort_by_key(|files| Reverse(changed(files))),
        Priority::MostNested => replicas.sort_by_key(|files| files.iter().map(depth).max()),
        Priority::LeastNested => {
            replicas.sort_by_key(|files| Reverse(files.iter().map(depth).min()));
        }
    }
}

fn selects(selection: &Selection, path: &Path) -> bool {
    let any = |patterns: &[Pattern], bytes| patterns.iter().any(|pattern| pattern.matches(bytes));
    path.file_name().is_some_and(|name| any(&selection.names, name.as_bytes()))
        || any(&selection.paths, path.as_os_str().as_bytes())
}

fn may_drop(selection: &Selection, path: &Path) -> bool {
    let is_empty = selection.names.is_empty() && selection.paths.is_empty();
    is_empty || selects(selection, path)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::keep::Permissions;
    use crate::pattern::Syntax;
    use crate::report::Identity;

    fn file(path: &str, inode: u64, time: i64) -> FileInfo {
        let identity =
            Identity { device: 1, inode, bytes: 3, modified_ns: time, changed_ns: -time };
        let created_ns = Some(time);
        let permissions = Permissions::default();
        let path = path.into();
        FileInfo { path, identity, created_ns, accessed_ns: time, permissions, is_link: false }
    }

    fn files() -> Vec<FileInfo> {
        vec![file("/a/1", 1, 30), file("/b/x/2", 2, 10), file("/a/x/y/3", 3, 20)]
    }

    fn dropped(rules: &Rules) -> Vec<usize> {
        let choice = choose(&files(), rules);
        let mut all = [&choice.keep[..], &choice.drop].concat();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2], "each file occurs once");
        choice.drop
    }

    #[test]
    fn priorities_determine_the_files_to_drop() {
        for (priority, drop) in [
            (Priority::Top, [1, 0]),
            (Priority::Bottom, [1, 2]),
            (Priority::Newest, [2, 0]),
            (Priority::Oldest, [2, 1]),
            (Priority::MostRecentlyModified, [2, 0]),
            (Priority::LeastRecentlyModified, [2, 1]),
            (Priority::MostRecentlyAccessed, [2, 0]),
            (Priority::LeastRecentlyAccessed, [2, 1]),
            (Priority::MostRecentStatusChange, [2, 1]),
            (Priority::LeastRecentStatusChange, [2, 0]),
            (Priority::MostNested, [1, 2]),
            (Priority::LeastNested, [1, 0]),
        ] {
            let rules = Rules { priorities: vec![priority], ..Rules::default() };
            assert_eq!(dropped(&rules), drop, "{priority:?}");
        }
    }

    #[test]
    fn first_priority_takes_precedence() {
        let mut files = files();
        files[1].identity.modified_ns = 30;
        let priorities = vec![Priority::MostRecentlyModified, Priority::MostNested];
        let choice = choose(&files, &Rules { priorities, ..Rules::default() });
        assert_eq!((choice.keep, choice.drop), (vec![2], vec![0, 1]));
    }

    #[test]
    fn patterns_and_roots_select_files_to_keep() {
        let name = |text| vec![Pattern::name(text, Syntax::default()).unwrap()];
        let path = |text| vec![Pattern::path(text, Path::new("/"), Syntax::default()).unwrap()];
        let keep = Selection { names: name("3"), paths: vec![] };
        assert_eq!(dropped(&Rules { keep, ..Rules::default() }), [0, 1]);
        let keep = Selection { names: vec![], paths: path("b/**") };
        assert_eq!(dropped(&Rules { keep, ..Rules::default() }), [0, 2]);
        let drop = Selection { names: vec![], paths: path("/b/**") };
        assert_eq!(dropped(&Rules { drop, ..Rules::default() }), [1]);
        let keep_roots = vec![PathBuf::from("/a")];
        assert_eq!(dropped(&Rules { keep_roots, ..Rules::default() }), [1]);
        let keep_roots = vec![PathBuf::from("/")];
        assert_eq!(dropped(&Rules { keep_roots, ..Rules::default() }), [0; 0]);
        assert_eq!(dropped(&Rules { keep_count: 2, ..Rules::default() }), [2]);
        assert_eq!(dropped(&Rules { keep_count: 9, ..Rules::default() }), [0; 0]);
        assert_eq!(dropped(&Rules { keep_count: 0, ..Rules::default() }), [1, 2]);
    }

    #[test]
    fn hard_links_and_isolated_roots_form_one_replica() {
        let mut files = files();
        files[2].identity.inode = 1;
        let drop = |rules: &Rules| choose(&files, rules).drop;
        assert_eq!(drop(&Rules::default()), [1]);
        assert_eq!(drop(&Rules { match_links: true, ..Rules::default() }), [1, 2]);
        let isolate = vec![PathBuf::from("/b"), PathBuf::from("/a")];
        let priorities = vec![Priority::Top];
        assert_eq!(drop(&Rules { isolate, priorities, ..Rules::default() }), [0, 2]);
    }

    #[test]
    fn symbolic_link_is_never_the_kept_copy() {
        let mut files = files();
        files[0].is_link = true;
        let choice = choose(&files, &Rules::default());
        assert_eq!((choice.keep, choice.drop), (vec![1, 0], vec![2]));
        files[1].is_link = true;
        let choice = choose(&files, &Rules::default());
        assert_eq!((choice.keep[0], choice.drop), (2, vec![]));
    }

    proptest! {
        #[test]
        fn a_regular_file_is_always_kept(
            links in prop::collection::vec((any::<bool>(), 0_u64..4, 0_usize..3), 1..8),
            keep_count in 0_usize..4,
            match_links: bool,
            isolated in 0_usize..3,
        ) {
            let roots = ["/a", "/b", "/c"];
            let files: Vec<_> = links.iter().enumerate().map(|(index, (is_link, inode, root))| {
                let path = format!("{}/{index}", roots[*root]);
                FileInfo { is_link: *is_link, ..file(&path, *inode, 0) }
            }).collect();
            let isolate = roots[..isolated].iter().map(PathBuf::from).collect();
            let rules = Rules { keep_count, match_links, isolate, ..Rules::default() };
            let choice = choose(&files, &rules);
            prop_assert_eq!(choice.keep.len() + choice.drop.len(), files.len());
            if !choice.drop.is_empty() {
                prop_assert!(!files[choice.keep[0]].is_link);
            }
            prop_assert!(choice.drop.iter().all(|index| !files[*index].is_link));
        }
    }
}
