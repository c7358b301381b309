//! Removes names of users and secrets from the description of a mount. The module does no I/O.

use haul_disk::Storage;

/// Parts of the names of mount options whose values are removed.
const PRIVATE: [&str; 6] = ["cred", "key", "pass", "secret", "token", "user"];

/// Replaces names of users and secrets in the source and the options of the mount.
pub(super) fn without_names(storage: &mut Storage) {
    let Some(mount) = &mut storage.mount else { return };
    if let Some((_user, host)) = mount.source.rsplit_once('@') {
        mount.source = format!("...@{host}");
    }
    for option in &mut mount.options {
        if let Some((name, _value)) = option.split_once('=')
            && PRIVATE.iter().any(|part| name.contains(part))
        {
            *option = format!("{name}=...");
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_disk::{FileSystem, Mount, Queue};

    use super::*;

    #[test]
    fn users_and_passwords_are_replaced() {
        let options = ["rw", "username=me", "password=x=y", "uid=7", "secretfile=/a"];
        let mut storage = Storage {
            path: "/mnt".into(),
            file_system: FileSystem::Fuse,
            mount: Some(Mount {
                point: "/mnt".to_owned(),
                file_system: "fuse.sshfs".to_owned(),
                source: "me:word@host:/dir".to_owned(),
                options: options.map(str::to_owned).to_vec(),
            }),
            device: None,
            queue: Queue::default(),
            journal: None,
            copy_on_write: None,
            direct_io: None,
        };
        without_names(&mut storage);
        let mount = storage.mount.unwrap();
        assert_eq!(mount.source, "...@host:/dir");
        let expected = ["rw", "username=...", "password=...", "uid=7", "secretfile=..."];
        assert_eq!(mount.options, expected);
    }
}
