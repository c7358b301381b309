//! Finds duplicate members of JSON objects; `serde_json` returns only the last one.

use std::collections::HashSet;

use serde_json::Deserializer;

/// Returns the name of a duplicate member in an object, in a valid JSON text.
pub(super) fn repeated_member(json: &str) -> Option<String> {
    // The names in each open object; an empty set for an open array.
    let mut open: Vec<HashSet<String>> = Vec::new();
    let mut rest = json;
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        let found = &rest[at..];
        rest = &found[1..];
        match found.as_bytes().first() {
            Some(b'{' | b'[') => open.push(HashSet::new()),
            Some(b'}' | b']') => drop(open.pop()),
            _ => {
                let mut strings = Deserializer::from_str(found).into_iter::<String>();
                let text = strings.next()?.ok()?;
                rest = &found[strings.byte_offset()..];
                // Only a name has a colon after it.
                if rest.trim_start().starts_with(':') && !open.last_mut()?.insert(text.clone()) {
                    return Some(text);
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_members_are_found_in_the_same_object_only() {
        for (json, expected) in [
            (r#"{"a": 1, "a": 2}"#, Some("a")),
            (r#"{"a": {"b": [], "c": "}", "b": {}}}"#, Some("b")),
            (r#"[{"a": 1}, {"x": "{", "a\"\\": "a", "\u0061\"\\" : 2}]"#, Some("a\"\\")),
            (r#"{"a": [{"b": 1}, {"b": 1}], "b": {"a": {"a": {}}}, "c": "a"}"#, None),
            (r#"{"a": "b", "b": "a", "c": ["a", "a", "a:", "\":\""], "A": ":"}"#, None),
            (r#""a""#, None),
            ("1", None),
        ] {
            assert!(serde_json::from_str::<serde_json::Value>(json).is_ok(), "{json}");
            assert_eq!(repeated_member(json).as_deref(), expected, "{json}");
        }
    }
}
