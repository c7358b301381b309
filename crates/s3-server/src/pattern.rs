//! Patterns in policies and CORS rules: `*` stands for any characters, `?` for one character.

/// Returns `true` if the whole text matches the pattern.
///
/// The time grows with the sum of both lengths. Only a piece between two `*` that contains a `?` is
/// compared at each position in the text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| strip(first, text)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    // The first match of a piece leaves the most text for the others.
    let rest = parts.try_fold(rest, |rest, part| strip_through(part, rest));
    rest.is_some_and(|rest| ends_with(rest, last))
}

/// Returns the total length of the pieces that are compared at each position in the text.
pub(crate) fn slow_bytes(pattern: &str) -> usize {
    let mut parts = pattern.split('*');
    // The first and the last piece have one position each.
    let _ends = (parts.next(), parts.next_back());
    parts.filter(|part| part.contains('?')).map(str::len).sum()
}

/// Returns the text after `part`, if the text begins with it.
fn strip<'t>(part: &str, text: &'t str) -> Option<&'t str> {
    let mut rest = text.chars();
    let is_prefix = part.chars().all(|expected| rest.next().is_some_and(|it| fits(expected, it)));
    is_prefix.then_some(rest.as_str())
}

/// Returns the text after the first match of `part`.
fn strip_through<'t>(part: &str, text: &'t str) -> Option<&'t str> {
    if !part.contains('?') {
        return text.find(part).map(|at| &text[at + part.len()..]);
    }
    text.char_indices().find_map(|(at, _)| strip(part, &text[at..]))
}

fn ends_with(text: &str, part: &str) -> bool {
    let mut text = text.chars().rev();
    part.chars().rev().all(|expected| text.next().is_some_and(|it| fits(expected, it)))
}

fn fits(expected: char, found: char) -> bool {
    expected == '?' || expected == found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_covers_any_characters_and_question_mark_one() {
        for (pattern, matching, other) in [
            ("", vec![""], vec!["a"]),
            ("*", vec!["", "a", "a/b"], vec![]),
            ("a*", vec!["a", "abc"], vec!["", "ba"]),
            ("*.txt", vec![".txt", "a.txt.txt"], vec!["a.txt2"]),
            ("a?c", vec!["abc", "a\u{e4}c"], vec!["ac", "abbc"]),
            ("*a*b*", vec!["ab", "xaxbx", "aab"], vec!["ba", "a"]),
            ("a*?", vec!["ab", "abc"], vec!["a"]),
            ("a*a", vec!["aa", "aba"], vec!["a", "ab"]),
            ("*?b*?d", vec!["abcd", "aabbcd"], vec!["bcd", "abd", "abcde"]),
            ("**", vec!["", "a"], vec![]),
        ] {
            matching.iter().for_each(|text| assert!(matches(pattern, text), "{pattern} {text}"));
            other.iter().for_each(|text| assert!(!matches(pattern, text), "{pattern} {text}"));
        }
    }

    #[test]
    fn only_parts_between_stars_are_slow() {
        for (pattern, bytes) in
            [("a?", 0), ("a?*b?", 0), ("*", 0), ("*abc*", 0), ("a*b?c*d?*e", 5), ("*?**?*", 2)]
        {
            assert_eq!(slow_bytes(pattern), bytes, "{pattern}");
        }
    }

    #[test]
    fn many_stars_take_bounded_time() {
        let text = "a".repeat(1 << 20);
        assert!(matches(&"*a".repeat(5000), &text));
        let part = "a".repeat(10_000);
        assert!(!matches(&format!("*{part}b*{part}"), &text));
    }
}
