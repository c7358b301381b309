//! Patterns for names and paths: globs as fclones has them, or regular expressions. Pure.

mod glob;

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use regex::bytes::{Regex, RegexBuilder};

use crate::error::{Error, Result};

/// How patterns are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Syntax {
    /// Regular expressions instead of globs.
    pub regex: bool,
    /// Upper and lower case are the same.
    pub ignore_case: bool,
}

/// One pattern. It matches all of a name or path, never a part.
///
/// A regular expression with look-around or references back is tried in many ways; after a million
/// steps back it matches nothing. All others take time that grows with the name alone.
#[derive(Debug, Clone)]
pub struct Pattern {
    kind: Kind,
    /// Whatever is added to what matches, up to a slash, matches too.
    is_open: bool,
}

#[derive(Debug, Clone)]
enum Kind {
    Plain {
        is: Regex,
        is_not: Vec<Regex>,
    },
    /// With what no automaton can do: look-around, references back.
    Looking(Box<fancy_regex::Regex>),
}

/// Why a pattern is none.
type Why = Box<dyn std::error::Error + Send + Sync>;

impl Pattern {
    /// A pattern for the last part of a path.
    ///
    /// # Errors
    /// When it cannot be read as `syntax` has it.
    pub fn name(text: &str, syntax: Syntax) -> Result<Self> {
        Self::build(text, b"", syntax)
    }

    /// A pattern for whole paths; one that is relative begins at `base`.
    ///
    /// # Errors
    /// When it cannot be read as `syntax` has it.
    pub fn path(text: &str, base: &Path, syntax: Syntax) -> Result<Self> {
        let text = if syntax.regex { text.strip_prefix('^').unwrap_or(text) } else { text };
        let anywhere = if syntax.regex { ".*" } else { "**" };
        if text.starts_with('/') || text.starts_with(anywhere) {
            return Self::build(text, b"", syntax);
        }
        let base = base.as_os_str().as_bytes();
        let slash: &[u8] = if base.ends_with(b"/") { b"" } else { b"/" };
        Self::build(text.strip_prefix("./").unwrap_or(text), &[base, slash].concat(), syntax)
    }

    fn build(text: &str, before: &[u8], syntax: Syntax) -> Result<Self> {
        let kind = if syntax.regex {
            expression(text, before, syntax)
        } else {
            glob(text, before, syntax)
        };
        let kind = kind.map_err(|source| Error::Pattern { pattern: text.to_owned(), source })?;
        let is_open = kind.is_plain() && ends_open(text, syntax);
        Ok(Self { kind, is_open })
    }

    /// Whether all of `bytes` is as the pattern says.
    #[must_use]
    pub fn matches(&self, bytes: &[u8]) -> bool {
        match &self.kind {
            Kind::Plain { is, is_not } => {
                is.is_match(bytes) && !is_not.iter().any(|one| one.is_match(bytes))
            }
            Kind::Looking(regex) => regex.is_match(&*as_text(bytes)).unwrap_or(false),
        }
    }

    /// Whether everything directly in the directory `path` is as the pattern says, as far as that is
    /// certain.
    #[must_use]
    pub fn matches_all_in(&self, path: &[u8]) -> bool {
        self.is_open && self.matches(&[path, b"/"].concat())
    }
}

impl Kind {
    /// Whether one expression says it all.
    fn is_plain(&self) -> bool {
        matches!(self, Self::Plain { is_not, .. } if is_not.is_empty())
    }
}

/// Whether the pattern ends with what stands for anything, in all cases.
fn ends_open(text: &str, syntax: Syntax) -> bool {
    let (end, has_cases) = if syntax.regex { (".*", text.contains('|')) } else { ("*", false) };
    let text = text.strip_suffix('$').filter(|_| syntax.regex).unwrap_or(text);
    !has_cases && text.strip_suffix(end).is_some_and(|before| !before.ends_with('\\'))
}

fn glob(text: &str, before: &[u8], syntax: Syntax) -> Result<Kind, Why> {
    let glob::Said { is, is_not } = glob::read(text)?;
    let build = |expression: &String| plain(expression, before, syntax);
    let is_not = is_not.iter().map(build).collect::<Result<_, _>>()?;
    Ok(Kind::Plain { is: build(&is)?, is_not })
}

fn expression(text: &str, before: &[u8], syntax: Syntax) -> Result<Kind, Why> {
    if let Ok(is) = plain(text, before, syntax) {
        return Ok(Kind::Plain { is, is_not: Vec::new() });
    }
    let before = regex::escape(&as_text(before));
    let regex = fancy_regex::RegexBuilder::new(&format!("^{before}(?:{text})$"))
        .case_insensitive(syntax.ignore_case)
        .dot_matches_new_line(true)
        .build()?;
    Ok(Kind::Looking(Box::new(regex)))
}

fn plain(expression: &str, before: &[u8], syntax: Syntax) -> Result<Regex, regex::Error> {
    let before: String = before.utf8_chunks().map(literal).collect();
    RegexBuilder::new(&format!("^{before}(?:{expression})$"))
        .case_insensitive(syntax.ignore_case)
        .dot_matches_new_line(true)
        .build()
}

/// A piece of a path as an expression for itself alone.
fn literal(chunk: std::str::Utf8Chunk<'_>) -> String {
    let invalid = chunk.invalid().iter().map(|byte| format!("(?-u:\\x{byte:02x})"));
    regex::escape(chunk.valid()) + &invalid.collect::<String>()
}

/// The text of a path; of bytes that are none, each is one of the last private characters.
fn as_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let private = |byte: &u8| char::from_u32(0x0010_ff00 + u32::from(*byte)).unwrap_or_default();
    let text = |chunk: std::str::Utf8Chunk<'_>| {
        chunk.valid().chars().chain(chunk.invalid().iter().map(private)).collect::<String>()
    };
    Cow::Owned(bytes.utf8_chunks().map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOB: Syntax = Syntax { regex: false, ignore_case: false };

    #[test]
    fn globs_mean_what_they_mean_to_fclones() {
        for (glob, yes, no) in [
            ("*.jpg", &["a.jpg", ".jpg"][..], &["a.jpeg", "a/b.jpg", "a.jpg.txt"][..]),
            ("?.txt", &["a.txt", "ä.txt"], &["ab.txt", "/.txt"]),
            ("a**b", &["ab", "a/x/b"], &["ac"]),
            ("**/a", &["a", "x/a", "x/y/a"], &["xa", "a/x"]),
            ("a/**", &["a/", "a/b/c"], &["a", "ab"]),
            ("*.{jpg,png}", &["a.jpg", "b.png"], &["c.gif", "a.{jpg,png}"]),
            ("*.+(jpg|png)", &["a.jpg", "b.pngjpg"], &["c.", "c.gif"]),
            ("a@(b|c)?(d)", &["ab", "acd"], &["a", "abdd"]),
            ("[a-c]x[!0-9]", &["axz", "cx_"], &["dxz", "ax1"]),
            ("[]x]", &["]", "x"], &["a"]),
            ("a[b", &["a[b"], &["ab"]),
            ("a\\*b", &["a*b"], &["axb"]),
            ("!(a|b)", &["c", "ab", ""], &["a", "b", "c/d"]),
            ("!(*.jpg)", &["a.png", "jpg"], &["a.jpg", ".jpg"]),
            ("!(*.jpg|*.png).bak", &["a.bak", "jpg.bak"], &["a.jpg.bak", "a.jpg", "a"]),
            ("!(a)*", &["b", "ba"], &["a", "ab"]),
            ("**/!(a|b?(c))/*.!(o)", &["x/d.c", "y/x/b/z/d.c"], &["bc/d.c", "x/d.o", "a/b.c"]),
            ("!(!)x!", &["ax!", "x!"], &["!x!"]),
            ("\\!(a)", &["!(a)"], &["b"]),
            ("a!", &["a!"], &["a"]),
            ("a.b+c^$|(d)", &["a.b+c^$|(d)"], &["aXb+c"]),
        ] {
            let pattern = Pattern::name(glob, GLOB).unwrap();
            for name in yes {
                assert!(pattern.matches(name.as_bytes()), "{glob} {name}");
            }
            for name in no {
                assert!(!pattern.matches(name.as_bytes()), "{glob} {name}");
            }
        }
        let any = Pattern::name("a*", GLOB).unwrap();
        assert!(any.matches(b"a\xff\n") && !any.matches(b"\xff"));
    }

    #[test]
    fn relative_paths_begin_at_the_base() {
        let base = Path::new("/the (base)");
        for (glob, path, is_match) in [
            ("a/*", "/the (base)/a/b", true),
            ("./a/*", "/the (base)/a/b", true),
            ("a/*", "/a/b", false),
            ("/a/*", "/a/b", true),
            ("**/b", "/x/y/b", true),
        ] {
            let pattern = Pattern::path(glob, base, GLOB).unwrap();
            assert_eq!(pattern.matches(path.as_bytes()), is_match, "{glob} {path}");
        }
    }

    #[test]
    fn expressions_match_the_whole_and_mistakes_are_told() {
        let syntax = Syntax { regex: true, ignore_case: true };
        let pattern = Pattern::name("^a.*z$", syntax).unwrap();
        assert!(pattern.matches(b"Abz") && !pattern.matches(b"abzc"));
        let either = Pattern::name("a|bc", syntax).unwrap();
        assert!(either.matches(b"bc") && !either.matches(b"ac"));
        let below = Pattern::path("x/.*", Path::new("/base"), syntax).unwrap();
        assert!(below.matches(b"/base/x/y") && !below.matches(b"/x/y"));
        let error = Pattern::name("(", syntax).unwrap_err().to_string();
        assert!(error.contains('('), "{error}");
    }

    #[test]
    fn all_in_a_directory_matches_only_where_the_end_is_open() {
        let regex = Syntax { regex: true, ignore_case: false };
        for (text, syntax, expected) in [
            ("/a/**", GLOB, true),
            ("/a/*", GLOB, true),
            ("/*/*", GLOB, true),
            ("**", GLOB, true),
            ("/a", GLOB, false),
            ("/a/", GLOB, false),
            ("/a/*(x)", GLOB, false),
            ("/a/!(x)", GLOB, false),
            ("/!(b)/**", GLOB, false),
            ("/a/x*", GLOB, false),
            ("/a{/*,}", GLOB, false),
            ("/a/.*", regex, true),
            ("^/a.*$", regex, true),
            ("/a/|/b/.*", regex, false),
            ("/a/[^x]*", regex, false),
            ("/a/\\.*", regex, false),
            ("/(?!b).*", regex, false),
        ] {
            let pattern = Pattern::path(text, Path::new("/"), syntax).unwrap();
            assert_eq!(pattern.matches_all_in(b"/a"), expected, "{text}");
            assert!(!expected || pattern.matches(b"/a/any"), "{text}");
        }
    }

    #[test]
    fn negations_that_would_mean_something_else_are_told() {
        for glob in ["{!(a),b}", "@(a|!(b))", "!(a!(b))"] {
            let error = Pattern::name(glob, GLOB).unwrap_err();
            let why = std::error::Error::source(&error).unwrap().to_string();
            assert!(why.contains("within other brackets"), "{glob}: {why}");
        }
        assert!(Pattern::name("!(a", GLOB).is_err());
    }

    #[test]
    fn expressions_may_look_around() {
        let syntax = Syntax { regex: true, ignore_case: false };
        for (text, yes, no) in [
            (
                "(?!tmp).*",
                &[&b"a"[..], b"a tmp", b"\xff\n", "ä".as_bytes()][..],
                &[&b"tmp1"[..]][..],
            ),
            (".*(?<!\\.bak)", &[b"a.txt", b"\xffbak"], &[b"a.bak", b"\xff.bak"]),
            ("(.)\\1.", &[b"aab", "ääb".as_bytes(), b"\xff\xffb"], &[b"abb", b"\xff\xfeb"]),
            ("a(?=b)b|c", &[b"ab", b"c"], &[b"a", b"abc"]),
        ] {
            let pattern = Pattern::name(text, syntax).unwrap();
            for name in yes {
                assert!(pattern.matches(name), "{text} {name:?}");
            }
            for name in no {
                assert!(!pattern.matches(name), "{text} {name:?}");
            }
        }
        let base = Path::new(std::ffi::OsStr::from_bytes(b"/odd \xff (base)"));
        let below = Pattern::path("(?!x).*", base, syntax).unwrap();
        assert!(below.matches(b"/odd \xff (base)/y"));
        assert!(!below.matches(b"/odd \xff (base)/x") && !below.matches(b"/odd \xfe (base)/y"));
        let any = Syntax { ignore_case: true, ..syntax };
        assert!(!Pattern::name("(?!tmp).*", any).unwrap().matches(b"TMP"));
        assert!(Pattern::name("(?<!a", syntax).is_err());
    }
}
