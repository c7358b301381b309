//! Reads and replaces the file with the keys of a server.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use haul_disk::sync_parent;
use haul_s3_server::{KeyList, SealingKey};
use rustix::fs::Access;

use crate::report::{Exit, Failure, OrFail, Result};
use crate::secrets::file;

/// The maximum length of a key file, which has about 500 bytes for each key.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Reads the key that seals a key file.
pub(crate) fn read_sealing_key(path: &Path) -> Result<SealingKey> {
    let cannot = || format!("cannot read the sealing key in {}", path.display());
    let text = file::read(path, &cannot).map_err(|failure| match path.exists() {
        true => failure,
        false => failure.advise("create both files with \"haul keys init\""),
    })?;
    SealingKey::parse(&text).or_not_start(cannot)
}

/// Reads a key file.
pub(crate) fn read(path: &Path, seal: &SealingKey) -> Result<KeyList> {
    let cannot = || format!("cannot use the keys in {}", path.display());
    let text = file::read_up_to(path, FILE_BYTES_MAX, &cannot)?;
    let advice = "restore an earlier version of the file, for example from a backup, or use the \
                  sealing key with which it was written";
    KeyList::decode(&text, seal).or_not_start(cannot).map_err(|failure| failure.advise(advice))
}

/// Creates an empty key file, and the sealing key if that is missing. Returns `true` if the sealing
/// key was created.
pub(crate) fn create(path: &Path, sealing_key: &Path) -> Result<bool> {
    let cannot = || format!("cannot create {}", path.display());
    if path.exists() {
        let failure = Failure::new(format!("{}: the file exists", cannot()));
        let failure = failure.advise("remove it to begin with no keys, or use another --keys");
        return Err(failure.exit(Exit::NotStarted));
    }
    let (seal, is_new) = match sealing_key.exists() {
        true => (read_sealing_key(sealing_key)?, false),
        false => (SealingKey::generate().or_not_start(cannot)?, true),
    };
    let text = KeyList::default().encode(&seal).or_not_start(cannot)?;
    if is_new {
        let cannot = || format!("cannot create {}", sealing_key.display());
        write_new(sealing_key, &seal.to_text()).or_not_start(cannot)?;
        sync_parent(sealing_key).or_not_start(cannot)?;
    }
    write_new(path, &text).or_not_start(cannot)?;
    sync_parent(path).or_not_start(cannot)?;
    Ok(is_new)
}

/// Changes a key file.
///
/// 1. Locks the file, so that no other process changes it meanwhile.
/// 2. Writes the new content to a file beside it, and syncs that.
/// 3. Renames that file to the key file, and syncs the directory.
///
/// A crash leaves the earlier or the new keys. The owner and the permissions of the file remain.
pub(crate) fn update<T>(
    path: &Path,
    sealing_key: &Path,
    change: impl FnOnce(&mut KeyList) -> Result<T>,
) -> Result<T> {
    update_sealed(path, &read_sealing_key(sealing_key)?, change)
}

/// Like [`update`], with a sealing key that was read before.
pub(super) fn update_sealed<T>(
    path: &Path,
    seal: &SealingKey,
    change: impl FnOnce(&mut KeyList) -> Result<T>,
) -> Result<T> {
    let cannot = || format!("cannot change the keys in {}", path.display());
    // If `path` is a symbolic link, its target is replaced instead of the link.
    let path = fs::canonicalize(path).or_not_start(cannot)?;
    let locked = lock(&path).or_not_start(cannot)?;
    let mut list = read(&path, seal)?;
    let changed = change(&mut list)?;
    let text = list.encode(seal).or_not_start(cannot)?;
    replace(&path, &locked, &text).or_not_start(cannot)?;
    Ok(changed)
}

/// Opens and locks a file, which another process may replace meanwhile: then the new file is
/// locked.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    loop {
        let file = File::open(path)?;
        file.lock()?;
        let (locked, current) = (file.metadata()?, fs::metadata(path)?);
        if (locked.dev(), locked.ino()) == (current.dev(), current.ino()) {
            return Ok(file);
        }
    }
}

/// Returns the reason why this process cannot replace a file; `None` if it can.
pub(super) fn read_only_reason(path: &Path, credentials: Option<&Path>) -> Option<String> {
    let because = |why: String| Some(format!("{why}: change it with \"haul keys\"."));
    let name = path.display();
    if credentials.is_some_and(|dir| path.starts_with(dir)) {
        return because(format!("{name} is a copy that systemd made for the service"));
    }
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) => return because(format!("{name} cannot be opened ({error})")),
    };
    let dir = target.parent().unwrap_or(Path::new("/"));
    if let Err(error) = rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK) {
        return because(format!("The server cannot write to {} ({error})", dir.display()));
    }
    let owner = fs::metadata(&target).map(|file| file.uid());
    let user = rustix::process::geteuid();
    if owner.is_ok_and(|owner| owner != user.as_raw()) && !user.is_root() {
        return because(format!("{name} belongs to another user than the server"));
    }
    None
}

/// Replaces a file, whose lock the caller holds.
pub(super) fn replace(path: &Path, locked: &File, text: &str) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    // A process that was killed has left it.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let write = || {
        let file = write_new(&unfinished, text)?;
        let (old, new) = (locked.metadata()?, file.metadata()?);
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
        }
        file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    if let Err(error) = write() {
        // The earlier error is reported.
        fs::remove_file(&unfinished).ok();
        return Err(error);
    }
    sync_parent(path)
}

/// Creates a file that only its owner can read, and syncs its content.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<File> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use tempfile::TempDir;

    use super::*;

    fn files() -> (TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (keys, sealing) = (dir.path().join("keys"), dir.path().join("sealing"));
        assert!(create(&keys, &sealing).unwrap());
        (dir, keys, sealing)
    }

    fn users(keys: &Path, sealing: &Path) -> Vec<String> {
        let list = read(keys, &read_sealing_key(sealing).unwrap()).unwrap();
        list.keys().iter().map(|key| key.user.clone()).collect()
    }

    fn add(keys: &Path, sealing: &Path, user: &str) -> Result {
        let add = |list: &mut KeyList| {
            list.create(user, SystemTime::now()).map(drop).or_fail(String::new)
        };
        update(keys, sealing, add)
    }

    #[test]
    fn file_is_created_and_changed_for_its_owner_only() {
        let (dir, keys, sealing) = files();
        assert!(create(&keys, &sealing).unwrap_err().text().unwrap().contains("the file exists"));
        add(&keys, &sealing, "alice").unwrap();
        for path in [&keys, &sealing] {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
        }
        fs::set_permissions(&keys, fs::Permissions::from_mode(0o640)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("keys", &link).unwrap();
        add(&link, &sealing, "bob").unwrap();
        assert_eq!(fs::metadata(&keys).unwrap().mode() & 0o777, 0o640);
        assert!(link.is_symlink());
        assert_eq!(users(&keys, &sealing), ["alice", "bob"]);
        // A second key file with the same sealing key.
        assert!(!create(&dir.path().join("more"), &sealing).unwrap());
    }

    #[test]
    fn failed_change_leaves_the_file_as_it_was() {
        let (dir, keys, sealing) = files();
        add(&keys, &sealing, "alice").unwrap();
        let before = fs::read(&keys).unwrap();
        assert!(add(&keys, &sealing, "not a user").is_err());
        // What a killed process left does not prevent the next change.
        fs::write(dir.path().join("keys.new"), "cut").unwrap();
        assert_eq!(fs::read(&keys).unwrap(), before);
        add(&keys, &sealing, "bob").unwrap();
        assert_eq!(users(&keys, &sealing), ["alice", "bob"]);
        assert!(!dir.path().join("keys.new").exists());
    }

    #[test]
    fn file_that_the_server_cannot_replace_is_read_only() {
        let (dir, keys, _sealing) = files();
        assert_eq!(read_only_reason(&keys, None), None);
        let reason = |path: &Path, dir| read_only_reason(path, dir).unwrap();
        assert!(reason(&keys, Some(dir.path())).contains("a copy that systemd made"));
        assert!(reason(&dir.path().join("gone"), None).contains("cannot be opened"));
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let (_dir, keys, sealing) = files();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (keys, sealing) = (&keys, &sealing);
                scope.spawn(move || {
                    (0..5).for_each(|n| add(keys, sealing, &format!("u{thread}-{n}")).unwrap());
                });
            }
        });
        let mut found = users(&keys, &sealing);
        found.sort();
        let all = (0..4).flat_map(|thread| (0..5).map(move |n| format!("u{thread}-{n}")));
        assert_eq!(found, all.collect::<Vec<_>>());
    }

    #[test]
    fn wrong_and_readable_sealing_keys_are_refused() {
        let (_dir, keys, sealing) = files();
        let (_other_dir, _, other) = files();
        let text = |result: Result<KeyList>| result.unwrap_err().text().unwrap();
        let seal = read_sealing_key(&other).unwrap();
        assert!(text(read(&keys, &seal)).contains("another sealing key"));
        fs::set_permissions(&sealing, fs::Permissions::from_mode(0o644)).unwrap();
        let refused = read_sealing_key(&sealing).unwrap_err().text().unwrap();
        assert!(refused.contains("accessible to other users"), "{refused}");
    }
}
