//! Compares the interface of each published library with the listing in its `api.txt`.
//!
//! The listing has each public item with its signature, as Rust without bodies and comments. So each
//! change of an interface appears in the diff of its commit. With `HAUL_UPDATE_API=1`, the test
//! writes the listings instead.
//!
//! The listing is made from the source text by the crate `syn`, because the JSON output of rustdoc,
//! on which `cargo public-api` and `cargo semver-checks` rely, needs an unstable option of the
//! compiler. It does not expand macros.

mod imports;
mod modules;
mod strip;
mod surface;

use crate::tree::{Source, assert_none, files, root};

/// Returns the folders of the libraries whose manifest does not say that they are unpublished.
fn libraries(files: &[Source]) -> Vec<&str> {
    let has = |path: String| files.iter().find(|file| file.path == path);
    let folders = files.iter().filter(|file| file.path.ends_with("/src/lib.rs"));
    let is_published = |folder: &&str| {
        let manifest = has(format!("crates/{folder}/Cargo.toml"));
        manifest.is_some_and(|file| !file.text.contains("\npublish = false\n"))
    };
    folders.filter_map(Source::crate_folder).filter(is_published).collect()
}

/// Returns the listing of a library.
fn listing(files: &[Source], folder: &str) -> String {
    let module = modules::read(files, &format!("crates/{folder}/src"));
    surface::listing(&module)
}

/// Returns the lines of `old` that are not in `new`, and those of `new` that are not in `old`, in
/// their order.
fn diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    // The length of the longest common subsequence of the lines from each place on.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            common[a][b] = if old[a] == new[b] {
                common[a + 1][b + 1] + 1
            } else {
                common[a + 1][b].max(common[a][b + 1])
            };
        }
    }
    let (mut text, mut a, mut b) = (String::new(), 0, 0);
    while a < old.len() || b < new.len() {
        if a < old.len() && b < new.len() && old[a] == new[b] {
            (a, b) = (a + 1, b + 1);
        } else if b == new.len() || a < old.len() && common[a + 1][b] >= common[a][b + 1] {
            text += &format!("-{}\n", old[a]);
            a += 1;
        } else {
            text += &format!("+{}\n", new[b]);
            b += 1;
        }
    }
    text
}

#[test]
fn interfaces_are_those_of_their_listings() {
    let libraries = libraries(files());
    assert!(libraries.len() > 20, "{libraries:?}");
    let mut changed = Vec::new();
    for folder in libraries {
        let listing = listing(files(), folder);
        assert!(listing.lines().count() > 2, "{folder}: {listing}");
        let path = root().join(format!("crates/{folder}/api.txt"));
        if std::env::var_os("HAUL_UPDATE_API").is_some() {
            std::fs::write(&path, &listing).unwrap();
        }
        let listed = std::fs::read_to_string(&path).unwrap_or_default();
        if listed != listing {
            let diff = diff(&listed, &listing);
            changed.push(format!("{folder}: its interface differs from its api.txt:\n{diff}"));
        }
    }
    if !changed.is_empty() {
        changed.push("HAUL_UPDATE_API=1 cargo test -p haul-tidy api:: writes them".to_owned());
    }
    assert_none(&changed);
}

#[test]
fn diff_has_the_lines_that_differ() {
    assert_eq!(diff("a\nb\nc\n", "a\nc\nd\n"), "-b\n+d\n");
    assert_eq!(diff("a\n", "a\n"), "");
    assert_eq!(diff("", "a\n"), "+a\n");
}
