//! Reads the files of the source tree, and searches their text.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A text file of the tree.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The path relative to the root of the repository, with `/` as separator.
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

    /// Returns the file name.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns the crate's folder name: `disk` for `crates/disk/src/lib.rs`.
    pub(crate) fn crate_folder(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// `true` if the file is compiled into the crate, not only into its tests.
    pub(crate) fn is_production(&self) -> bool {
        self.is_rust() && self.path.contains("/src/")
    }

    /// Returns the text before a trailing `#[cfg(test)] mod tests`.
    pub(crate) fn production(&self) -> &str {
        let tests = self.text.rfind("\n#[cfg(test)]\n").filter(|at| {
            let is_module = |line: &str| line.contains("mod tests") && !line.starts_with(' ');
            let head = |line: &&str| line.starts_with("#[") || is_module(line);
            self.text[*at..].lines().skip(1).take_while(head).any(is_module)
        });
        &self.text[..tests.map_or(self.text.len(), |at| at + 1)]
    }

    /// Returns the lines of code before the tests, numbered from 1, without comments and strings.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, String)> {
        self.production().lines().enumerate().map(|(index, line)| (index + 1, strip(line)))
    }
}

/// Removes the comment and the content of strings from a line.
fn strip(line: &str) -> String {
    let mut code = String::new();
    let (mut in_string, mut last) = (false, ' ');
    for c in line.chars() {
        if c == '"' && last != '\\' && last != '\'' {
            in_string = !in_string;
        } else if !in_string {
            if (last, c) == ('/', '/') {
                code.pop();
                break;
            }
            code.push(c);
        }
        last = c;
    }
    code
}

/// `true` if `line` contains `word` with no letter, digit or underscore beside it.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let is_word_char = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(is_word_char) && !line[at + word.len()..].starts_with(is_word_char)
    })
}

/// Returns the root of the work tree.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns every text file that git tracks, and every untracked text file that git does not ignore.
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
            let path = str::from_utf8(path).expect("file names are UTF-8");
            // A file that was deleted but is still in git's index has no text.
            let text = std::fs::read_to_string(PathBuf::from(root()).join(path)).ok()?;
            Some(Source::new(path, &text))
        };
        paths.into_iter().filter(|path| !path.is_empty()).filter_map(read).collect()
    })
}

/// Fails the test if there are violations. The message lists all of them.
pub(crate) fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn tree_contains_this_file() {
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
