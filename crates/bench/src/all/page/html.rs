//! Escapes text for HTML, and formats elements.

use std::fmt::Write;

/// Escapes a text for the content of an element and for an attribute in quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            character => out.push(character),
        }
    }
    out
}

/// Returns an element with a class and escaped text.
pub(super) fn text(tag: &str, class: &str, text: &str) -> String {
    element(tag, class, &escaped(text))
}

/// Returns an element with a class, whose content is HTML.
pub(super) fn element(tag: &str, class: &str, content: &str) -> String {
    let mut out = format!("<{tag}");
    if !class.is_empty() {
        // Writing to a string cannot fail.
        write!(out, " class=\"{class}\"").ok();
    }
    out + &format!(">{content}</{tag}>\n")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Panics unless all elements of `html` are closed in order, and all attributes are quoted.
    pub(in super::super) fn assert_well_formed(html: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = html.strip_prefix("<!doctype html>").unwrap_or(html);
        while let Some((text, from)) = rest.split_once('<') {
            assert!(!text.contains('>'), "a bare > in {text:?}");
            let (tag, after) = from.split_once('>').expect("a tag ends");
            rest = after;
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "closed in order");
                continue;
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            assert_eq!(tag.matches("=\"").count() * 2, tag.matches('"').count(), "{tag}");
            let name = tag.split([' ', '\n']).next().unwrap();
            if name == "style" {
                // The text of a style sheet may contain `>`.
                rest = rest.split_once("</style>").expect("the style ends").1;
            } else if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert_eq!(open, Vec::<&str>::new(), "all elements are closed");
    }

    #[test]
    fn special_characters_are_escaped() {
        let found = text("p", "note", "a < b & \"c\" > 'd'");
        assert_eq!(found, "<p class=\"note\">a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;</p>\n");
        assert_well_formed(&found);
        assert_eq!(element("b", "", "<i>x</i>"), "<b><i>x</i></b>\n");
    }

    #[test]
    #[should_panic(expected = "closed in order")]
    fn crossed_elements_are_noticed() {
        assert_well_formed("<p><b>x</p></b>");
    }
}
