//! The files of the tree, and small helpers to look at their text.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A text file of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Its path below the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The name without folders.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The crate's folder name: `disk` for `crates/disk/src/lib.rs`.
    pub(crate) fn crate_folder(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// What is compiled into the crate, as against its tests.
    pub(crate) fn is_production(&self) -> bool {
        self.is_rust() && self.path.contains("/src/")
    }

    /// The text before a trailing `#[cfg(test)] mod tests`.
    pub(crate) fn production(&self) -> &str {
        let tests = self.text.rfind("\n#[cfg(test)]\n").filter(|at| {
            let module = |line: &&str| line.starts_with("mod tests") || line.starts_with("#[");
            let mut after = self.text[*at..].lines().skip(1).take_while(module);
            after.any(|line| line.starts_with("mod tests"))
        });
        &self.text[..tests.map_or(self.text.len(), |at| at + 1)]
    }

    /// The lines of code before the tests, numbered from 1, without comments and strings.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, String)> {
        self.production().lines().enumerate().map(|(index, line)| (index + 1, bare(line)))
    }
}

/// A line without its comment and the insides of its strings.
fn bare(line: &str) -> String {
    let mut bare = String::new();
    let (mut in_string, mut last) = (false, ' ');
    for c in line.chars() {
        if c == '"' && last != '\\' && last != '\'' {
            in_string = !in_string;
        } else if !in_string {
            if (last, c) == ('/', '/') {
                bare.pop();
                break;
            }
            bare.push(c);
        }
        last = c;
    }
    bare
}

/// Whether `word` stands in `line` with no letter, digit or underscore beside it.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(part_of_word) && !line[at + word.len()..].starts_with(part_of_word)
    })
}

/// The root of the work tree.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Every text file that is tracked, or would be if all were added.
pub(crate) fn files() -> &'static [Source] {
    static FILES: OnceLock<Vec<Source>> = OnceLock::new();
    FILES.get_or_init(|| {
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let output = Command::new("git").arg("-C").arg(root()).args(list).output();
        let output = output.expect("git lists the files of the tree");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut paths: Vec<_> = output.stdout.split(|byte| *byte == 0).collect();
        paths.sort_unstable();
        paths.dedup();
        let read = |path: &[u8]| {
            let path = str::from_utf8(path).expect("file names are plain");
            // A file that is deleted and not yet committed as such has no text.
            let text = std::fs::read_to_string(PathBuf::from(root()).join(path)).ok()?;
            Some(Source::new(path, &text))
        };
        paths.into_iter().filter(|path| !path.is_empty()).filter_map(read).collect()
    })
}

/// Fails with all complaints at once.
pub(crate) fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn the_tree_has_files_and_this_is_one_of_them() {
    assert!(files().iter().any(|file| file.path == "crates/tidy/tests/all/tree.rs"));
}

#[test]
fn comments_and_tests_are_not_production_code() {
    let file = Source::new(
        "crates/x/src/a.rs",
        "use a; // b\nlet c = \"d://e\";\n\n#[cfg(test)]\n#[expect(f)]\nmod tests {\n}\n",
    );
    let code: Vec<_> = file.code().collect();
    let expected = [(1, "use a; "), (2, "let c = ;"), (3, "")];
    assert_eq!(code, expected.map(|(number, line)| (number, line.to_owned())));
    assert!(has_word("an unsafe {", "unsafe") && !has_word("unsafe_code", "unsafe"));
}
