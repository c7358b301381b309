//! Patterns of policies and CORS rules: `*` stands for any characters, `?` for one character.

/// Returns `true` if the whole text matches the pattern. The number of steps is at most the product
/// of both lengths.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // The pattern after the last `*`, and the text that this `*` does not cover.
    let mut retry = None;
    loop {
        let uncovered = text.clone();
        match (pattern.next(), text.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                text = uncovered;
                retry = Some((pattern.clone(), text.clone()));
                continue;
            }
            (Some('?'), Some(_)) => continue,
            (Some(expected), Some(found)) if expected == found => continue,
            _ => {}
        }
        // The last `*` covers one more character.
        let Some((after, uncovered)) = &mut retry else { return false };
        if uncovered.next().is_none() {
            return false;
        }
        (pattern, text) = (after.clone(), uncovered.clone());
    }
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
        ] {
            matching.iter().for_each(|text| assert!(matches(pattern, text), "{pattern} {text}"));
            other.iter().for_each(|text| assert!(!matches(pattern, text), "{pattern} {text}"));
        }
    }

    #[test]
    fn many_stars_take_bounded_time() {
        assert!(!matches(&"*a".repeat(5000), &"a".repeat(4000)));
    }
}
