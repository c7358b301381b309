//! Formats elements of HTML.

use std::fmt::Write;

pub(super) use haul_cli_common::svg::escaped;

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
mod tests {
    use haul_testing::assert_well_formed;

    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        let found = text("p", "note", "a < b & \"c\" > 'd'");
        assert_eq!(found, "<p class=\"note\">a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;</p>\n");
        assert_well_formed(&found);
        assert_eq!(element("b", "", "<i>x</i>"), "<b><i>x</i></b>\n");
    }
}
