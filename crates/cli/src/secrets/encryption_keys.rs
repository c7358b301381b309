//! Reads and extends the file with the keys with which the server encrypts objects.

use std::fs;
use std::path::Path;

use haul_disk::sync_parent;
use haul_s3_server::{EncryptionKey, EncryptionKeys};

use crate::report::{Exit, OrFail, Result};
use crate::secrets::file;
use crate::secrets::key_file::{lock, replace, write_new};

/// The first line of a new file.
const TITLE: &str = "# Encryption keys of haul serve. The last one without a name encrypts new \
                     objects. Keep a copy: without its key, an object cannot be read.\n";

/// Reads the keys.
pub(crate) fn load(path: &Path) -> Result<EncryptionKeys> {
    let cannot = || format!("cannot use the encryption keys in {}", path.display());
    let text = file::read(path, &cannot)?;
    EncryptionKeys::parse(&text).or_not_start(cannot)
}

/// Adds a new key at the end of the file, which is created if it does not exist. Returns the key,
/// and `true` if the file was created. A crash leaves the earlier or the new file.
pub(crate) fn add(path: &Path, name: Option<&str>) -> Result<(EncryptionKey, bool)> {
    let cannot = || format!("cannot add a key to {}", path.display());
    let key = EncryptionKey::generate().or_not_start(cannot)?;
    let key = match name {
        Some(name) => {
            key.with_name(name).or_fail(cannot).map_err(|failure| failure.exit(Exit::Usage))?
        }
        None => key,
    };
    if !path.exists() {
        write_new(path, &format!("{TITLE}{}", key.to_text())).or_not_start(cannot)?;
        sync_parent(path).or_not_start(cannot)?;
        return Ok((key, true));
    }
    // If `path` is a symbolic link, its target is replaced instead of the link.
    let path = fs::canonicalize(path).or_not_start(cannot)?;
    let locked = lock(&path).or_not_start(cannot)?;
    let mut text = file::read(&path, &cannot)?;
    EncryptionKeys::parse(&text).or_not_start(cannot)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&key.to_text());
    replace(&path, &locked, &text).or_not_start(cannot)?;
    Ok((key, false))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn ids(path: &Path) -> Vec<String> {
        load(path).unwrap().keys().map(|key| key.id().to_owned()).collect()
    }

    #[test]
    fn keys_are_added_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        assert!(load(&path).is_err());
        let (first, is_new) = add(&path, None).unwrap();
        assert!(is_new);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let (second, is_new) = add(&path, Some("tax")).unwrap();
        assert!(!is_new);
        assert_eq!(ids(&path), [first.id(), second.id()]);
        assert_eq!(load(&path).unwrap().keys().last().unwrap().name(), Some("tax"));
        let refused = add(&path, Some("a b")).unwrap_err().text().unwrap();
        assert!(refused.contains("\"a b\" is no name of a key: use"), "{refused}");
    }

    #[test]
    fn file_without_keys_is_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        fs::write(&path, "notes\n").unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let refused = add(&path, None).unwrap_err().text().unwrap();
        assert!(refused.contains("line 1 is not a key"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "notes\n");
    }
}
