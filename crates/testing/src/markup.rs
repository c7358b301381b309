//! Checks documents of HTML and SVG.

/// Panics unless all elements of `html` are closed in order, and all attributes are quoted.
pub fn assert_well_formed(html: &str) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_elements_are_accepted() {
        assert_well_formed("<!doctype html><p class=\"a b\">x &lt; y<br/></p>");
        assert_well_formed("<svg><style>a > b {}</style></svg>");
    }

    #[test]
    #[should_panic(expected = "closed in order")]
    fn crossed_elements_are_noticed() {
        assert_well_formed("<p><b>x</p></b>");
    }
}
