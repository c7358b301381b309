//! Reads the files of the source tree, and searches their text.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// A text file of the tree.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path relative to the root of the repository, with `/` as separator.
    pub(crate) path: String,
    pub(crate) text: String,
    code: OnceLock<String>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), code: OnceLock::new() }
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
        let below = self.path.split_once("/src/").map(|(_, below)| below);
        let is_test = |below: &str| below.ends_with("tests.rs") || below.contains("tests/");
        self.is_rust() && below.is_some_and(|below| !is_test(below))
    }

    /// Returns the text before a trailing `#[cfg(test)] mod tests`.
    pub(crate) fn production(&self) -> &str {
        let tests = self.text.rfind("\n#[cfg(test)]\n").filter(|at| {
            let mut lines = self.text[*at..].lines().skip(1).skip_while(|it| it.starts_with("#["));
            lines.next().is_some_and(|it| !it.starts_with(' ') && it.contains("mod tests"))
        });
        &self.text[..tests.map_or(self.text.len(), |at| at + 1)]
    }

    /// Returns the code before the tests, with all line breaks, without comments and without the
    /// content of strings.
    pub(crate) fn code(&self) -> &str {
        self.code.get_or_init(|| strip(self.production()))
    }
}

fn strip(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '\'', '#']) {
        let (plain, token) = rest.split_at(at);
        code.push_str(plain);
        let length = literal_or_comment(token, plain.ends_with('r'));
        let (skipped, after) = token.split_at(length.unwrap_or(1));
        match length {
            None => code.push_str(skipped),
            Some(_) => {
                code.extend(skipped.chars().filter(|c| *c == '\n'));
                code.push_str(if token.starts_with('/') { "" } else { "\"\"" });
            }
        }
        rest = after;
    }
    code + rest
}

/// Returns the length of the comment or literal with which a text begins.
fn literal_or_comment(text: &str, is_raw: bool) -> Option<usize> {
    let until = |end: &str, from: usize| {
        text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
    };
    let hashes = text.len() - text.trim_start_matches('#').len();
    match text.as_bytes() {
        [b'/', b'/', ..] => text.find('\n').or(Some(text.len())),
        [b'/', b'*', ..] => Some(until("*/", 2)),
        [b'"' | b'#', ..] if is_raw && text[hashes..].starts_with('"') => {
            Some(until(&format!("\"{}", &text[..hashes]), hashes + 1))
        }
        [b'"', ..] => {
            let mut is_escaped = false;
            let end = text[1..].find(|c| {
                let is_end = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                is_end
            });
            Some(end.map_or(text.len(), |end| end + 2))
        }
        [b'\'', b'\\', ..] => Some(until("'", 3)),
        // A lifetime has no second quote.
        [b'\'', ..] => {
            let (at, _) = text.char_indices().nth(2)?;
            text[at..].starts_with('\'').then_some(at + 1)
        }
        _ => None,
    }
}

pub(crate) fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// `true` if `text` contains `word` with no letter, digit or underscore beside it.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_word_char) && !text[at + word.len()..].starts_with(is_word_char)
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
        let list = String::from_utf8(output.stdout).expect("file names are UTF-8");
        let mut paths: Vec<_> = list.split_terminator('\0').collect();
        paths.sort_unstable();
        paths.dedup();
        // A file that was deleted but is still in git's index has no text.
        let read = |path: &str| std::fs::read_to_string(root().join(path)).ok();
        paths.into_iter().filter_map(|path| Some(Source::new(path, &read(path)?))).collect()
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
fn comments_strings_and_tests_are_not_code() {
    for (text, code) in [
        ("use a; // b\nlet c = \"d://e\";", "use a; \nlet c = \"\";"),
        ("a /* b\n */ c", "a \n c"),
        ("r#\"a\"b\n\"# c; \"\\\"d\" e", "r\n\"\" c; \"\" e"),
        ("f::<'a>('\"', '\\'', '//', b'x')", "f::<'a>(\"\", \"\", '"),
        ("a\n#[cfg(test)]\n#[expect(f)]\nmod tests {\n}\n", "a\n"),
    ] {
        assert_eq!(Source::new("crates/x/src/a.rs", text).code(), code);
    }
    assert!(has_word("an unsafe {", "unsafe") && !has_word("unsafe_code", "unsafe"));
}
