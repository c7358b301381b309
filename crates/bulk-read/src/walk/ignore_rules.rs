//! Decides by the rules of `.gitignore`, `.fdignore` and `.ignore` files which entries a walk
//! excludes.
//!
//! The `ignore` crate matches the patterns of one directory; this module selects the ignore files
//! that apply: first the files in the directory of the entry, then the files in each parent
//! directory up to the root of the walk. The first match decides, as in git. Ignore files above the
//! root do not apply.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

/// The names of ignore files. In one directory, rules of a later file override those of an earlier
/// one.
const NAMES: [&CStr; 3] = [c".gitignore", c".fdignore", c".ignore"];

/// The maximum number of bytes read from an ignore file; the rest is ignored.
const BYTES_MAX: usize = 1 << 20;

/// The ignore rules of a directory, linked to those of its parents.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    rules: Gitignore,
    /// The length of the path of the directory, including the trailing slash.
    prefix_bytes: usize,
    parent: Option<Arc<Self>>,
}

impl IgnoreRules {
    /// Reads the ignore files of the directory `dir` at `path` and links their rules to `parent`,
    /// the rules of its parent directory. Returns `parent` if `dir` adds no rules.
    pub(super) fn read(parent: Option<Arc<Self>>, dir: &OwnedFd, path: &[u8]) -> Option<Arc<Self>> {
        let mut builder = GitignoreBuilder::new("");
        let mut is_empty = true;
        for text in NAMES.iter().filter_map(|name| read_rules(dir, name)) {
            for line in String::from_utf8_lossy(&text).lines() {
                // Invalid patterns are skipped, as in git.
                is_empty &= builder.add_line(None, line).is_err();
            }
        }
        if is_empty {
            return parent;
        }
        let slash = usize::from(!path.is_empty() && !path.ends_with(b"/"));
        let Ok(rules) = builder.build() else { return parent };
        Some(Arc::new(Self { rules, prefix_bytes: path.len() + slash, parent }))
    }

    /// `true` if the rules exclude the file or directory at the full path `path`.
    pub(super) fn excludes(&self, path: &[u8], is_dir: bool) -> bool {
        let mut next = Some(self);
        while let Some(dir) = next {
            let relative = path.get(dir.prefix_bytes..).unwrap_or_default();
            match dir.rules.matched(Path::new(std::ffi::OsStr::from_bytes(relative)), is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => next = dir.parent.as_deref(),
            }
        }
        false
    }
}

/// Reads an ignore file; returns `None` if it does not exist or cannot be read.
fn read_rules(dir: &OwnedFd, name: &CStr) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = fs::openat(dir, name, flags, Mode::empty()).ok()?;
    let mut text = vec![0; 16 << 10];
    let mut filled = 0;
    loop {
        match rustix::io::read(&fd, &mut text[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
        if filled == text.len() {
            if filled >= BYTES_MAX {
                break;
            }
            text.resize(filled * 2, 0);
        }
    }
    text.truncate(filled);
    Some(text)
}
