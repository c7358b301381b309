//! Matches names and paths against globs (with the syntax of fclones) or regular expressions.

mod filter;
mod glob;

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use regex::bytes::{Regex, RegexBuilder};

use crate::error::{Error, Result};
pub use filter::Filter;

/// The syntax of patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Syntax {
    /// `true` for regular expressions, `false` for globs.
    pub regex: bool,
    /// `true` to ignore case.
    pub ignore_case: bool,
}

/// A pattern that matches a whole name or path.
///
/// A regular expression with look-around or backreferences is matched by backtracking; after a
/// million steps it counts as not matching. All other patterns take time linear in the length of
/// the name.
#[derive(Debug, Clone)]
pub struct Pattern {
    kind: Kind,
    /// `true` if a matching name still matches after any text without a slash is appended to it.
    is_prefix: bool,
}

#[derive(Debug, Clone)]
enum Kind {
    Automaton {
        positive: Regex,
        negative: Vec<Regex>,
    },
    /// A regular expression of the user, which matches text as [`as_text`] returns it: its `.`
    /// matches each byte of a name that is not UTF-8.
    Text(Regex),
    /// A pattern with look-around or backreferences, which only a backtracking engine can match.
    Backtracking(Box<fancy_regex::Regex>),
}

/// The syntax error of a pattern.
type SyntaxError = Box<dyn std::error::Error + Send + Sync>;

impl Pattern {
    /// Creates a pattern for file names.
    ///
    /// # Errors
    /// Fails on a syntax error.
    pub fn name(text: &str, syntax: Syntax) -> Result<Self> {
        Self::build(text, b"", syntax)
    }

    /// Creates a pattern for full paths; a relative pattern is resolved against `base`.
    ///
    /// # Errors
    /// Fails on a syntax error.
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
        let is_prefix = kind.is_single() && ends_with_wildcard(text, syntax);
        Ok(Self { kind, is_prefix })
    }

    /// `true` if the pattern matches all of `bytes`.
    #[must_use]
    pub fn matches(&self, bytes: &[u8]) -> bool {
        match &self.kind {
            Kind::Automaton { positive, negative } => {
                positive.is_match(bytes) && !negative.iter().any(|regex| regex.is_match(bytes))
            }
            Kind::Text(regex) => regex.is_match(as_text(bytes).as_bytes()),
            Kind::Backtracking(regex) => regex.is_match(&*as_text(bytes)).unwrap_or(false),
        }
    }

    /// `true` only if the pattern matches every entry of the directory `path`.
    #[must_use]
    pub fn matches_all_in(&self, path: &[u8]) -> bool {
        self.is_prefix && self.matches(&[path, b"/"].concat())
    }
}

impl Kind {
    /// `true` if the pattern consists of one expression, without expressions that exclude names.
    fn is_single(&self) -> bool {
        match self {
            Self::Automaton { negative, .. } => negative.is_empty(),
            Self::Text(_) => true,
            Self::Backtracking(_) => false,
        }
    }
}

/// `true` if the text of the pattern ends with a wildcard. `false` for every regular expression
/// with `|`, because the end of the text is only the end of one alternative.
fn ends_with_wildcard(text: &str, syntax: Syntax) -> bool {
    let (end, has_alternatives) =
        if syntax.regex { (".*", text.contains('|')) } else { ("*", false) };
    let text = text.strip_suffix('$').filter(|_| syntax.regex).unwrap_or(text);
    !has_alternatives && text.strip_suffix(end).is_some_and(|before| !before.ends_with('\\'))
}

fn glob(text: &str, before: &[u8], syntax: Syntax) -> Result<Kind, SyntaxError> {
    let glob::GlobRegexes { positive, negative } = glob::translate(text)?;
    let before: String = before.utf8_chunks().map(literal).collect();
    let build = |expression: &String| plain(expression, &before, syntax);
    let negative = negative.iter().map(build).collect::<Result<_, _>>()?;
    Ok(Kind::Automaton { positive: build(&positive)?, negative })
}

fn expression(text: &str, before: &[u8], syntax: Syntax) -> Result<Kind, SyntaxError> {
    let before = regex::escape(&as_text(before));
    if let Ok(regex) = plain(text, &before, syntax) {
        return Ok(Kind::Text(regex));
    }
    let regex = fancy_regex::RegexBuilder::new(&format!("^{before}(?:{text})$"))
        .case_insensitive(syntax.ignore_case)
        .dot_matches_new_line(true)
        .build()?;
    Ok(Kind::Backtracking(Box::new(regex)))
}

fn plain(expression: &str, before: &str, syntax: Syntax) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&format!("^{before}(?:{expression})$"))
        .case_insensitive(syntax.ignore_case)
        .dot_matches_new_line(true)
        .build()
}

/// Returns an expression that matches a chunk of a path literally.
fn literal(chunk: std::str::Utf8Chunk<'_>) -> String {
    let invalid = chunk.invalid().iter().map(|byte| format!("(?-u:\\x{byte:02x})"));
    regex::escape(chunk.valid()) + &invalid.collect::<String>()
}

/// Converts a path to text for regular expressions, whose `.` matches only text. Each byte of
/// invalid UTF-8 becomes a private-use character.
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
    fn globs_match_as_in_fclones() {
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
    fn relative_patterns_are_resolved_against_the_base() {
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
    fn regexes_match_whole_names_and_errors_are_reported() {
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
    fn pattern_covers_a_directory_only_with_a_trailing_wildcard() {
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
            for name in [&b"/a/any"[..], b"/a/x\x95", b"/a/\xff\n"] {
                assert!(!expected || pattern.matches(name), "{text} and {name:?}");
            }
        }
    }

    #[test]
    fn nested_negation_is_rejected() {
        for glob in ["{!(a),b}", "@(a|!(b))", "!(a!(b))"] {
            let error = Pattern::name(glob, GLOB).unwrap_err();
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert!(source.contains("within other brackets"), "{glob}: {source}");
        }
        assert!(Pattern::name("!(a", GLOB).is_err());
    }

    #[test]
    fn look_around_is_supported() {
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
        let base = Path::new(std::ffi::OsStr::from_bytes(b"/base \xff (x)"));
        let below = Pattern::path("(?!x).*", base, syntax).unwrap();
        assert!(below.matches(b"/base \xff (x)/y"));
        assert!(!below.matches(b"/base \xff (x)/x") && !below.matches(b"/base \xfe (x)/y"));
        let any = Syntax { ignore_case: true, ..syntax };
        assert!(!Pattern::name("(?!tmp).*", any).unwrap().matches(b"TMP"));
        assert!(Pattern::name("(?<!a", syntax).is_err());
    }
}
