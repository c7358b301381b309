//! Reads the documents of S3: a tree of elements, without namespaces and attributes.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

/// The maximum depth of a document: those of S3 have at most eight levels.
const DEPTH_MAX: usize = 32;

/// An element of a document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    /// The name, without the prefix of its namespace.
    pub(crate) name: String,
    text: String,
    pub(crate) children: Vec<Element>,
}

impl Element {
    /// Parses a document, and returns its root.
    pub(crate) fn parse(xml: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(xml).map_err(|_not_utf8| "the document is not UTF-8")?;
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        // The first element is the document, whose child is the root.
        let mut open = vec![Self::default()];
        loop {
            let event = reader.read_event().map_err(|error| error.to_string())?;
            match event {
                Event::Start(tag) => {
                    if open.len() > DEPTH_MAX {
                        return Err("the document has too many levels".to_owned());
                    }
                    open.push(Self::named(tag.local_name().as_ref()));
                }
                Event::Empty(tag) => {
                    push_child(&mut open, Self::named(tag.local_name().as_ref()));
                }
                Event::End(_) => {
                    let closed = open.pop().filter(|_| !open.is_empty());
                    push_child(&mut open, closed.ok_or("an element ends that did not begin")?);
                }
                Event::Text(text) => push_text(&mut open, &decoded(text.xml10_content())?),
                Event::CData(text) => push_text(&mut open, &decoded(text.xml10_content())?),
                Event::GeneralRef(reference) => {
                    let char = reference.resolve_char_ref().map_err(|error| error.to_string())?;
                    let name = reference.decode().map_err(|error| error.to_string())?;
                    match (char, quick_xml::escape::resolve_xml_entity(&name)) {
                        (Some(char), _) => push_text(&mut open, char.encode_utf8(&mut [0; 4])),
                        (None, Some(text)) => push_text(&mut open, text),
                        (None, None) => return Err(format!("unknown entity {name}")),
                    }
                }
                Event::Eof => break,
                Event::DocType(_) | Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
            }
        }
        let document = open.pop().filter(|_| open.is_empty());
        let root = document.and_then(|mut document| document.children.pop());
        root.ok_or_else(|| "the document is not complete".to_owned())
    }

    fn named(name: &[u8]) -> Self {
        Self { name: String::from_utf8_lossy(name).into_owned(), ..Self::default() }
    }

    /// Returns the child elements with this name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns the text of the element with this path of names, such as `["Owner", "ID"]`; empty
    /// if there is none.
    pub(crate) fn text(&self, path: &[&str]) -> &str {
        let mut element = self;
        for name in path {
            match element.children.iter().find(|child| child.name == *name) {
                Some(child) => element = child,
                None => return "",
            }
        }
        &element.text
    }

    /// Returns the content without indentation, prefixes and namespaces, for comparisons.
    pub(crate) fn canonical(&self) -> String {
        let mut text = format!("<{}>", self.name);
        match self.children.is_empty() {
            true => text += &self.text,
            false => text.extend(self.children.iter().map(Self::canonical)),
        }
        text + "</>"
    }
}

fn decoded<T, E: std::fmt::Display>(text: Result<T, E>) -> Result<T, String> {
    text.map_err(|error| error.to_string())
}

fn push_child(open: &mut [Element], child: Element) {
    if let Some(parent) = open.last_mut() {
        parent.children.push(child);
    }
}

fn push_text(open: &mut [Element], text: &str) {
    if let Some(element) = open.last_mut() {
        element.text += text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_entities_are_read() {
        let xml = b"<?xml version=\"1.0\"?>\n<a xmlns=\"x\">\n <b>1 &lt; 2</b><b/><c><d>&#233;</d></c>\n</a>";
        let root = Element::parse(xml).unwrap();
        assert_eq!((&*root.name, root.all("b").count()), ("a", 2));
        assert_eq!((root.text(&["b"]), root.text(&["c", "d"])), ("1 < 2", "\u{e9}"));
        assert_eq!(root.text(&["x", "y"]), "");
        let same =
            Element::parse(b"<a><b>1 &#60; 2</b><b></b><c>\n<d>\xc3\xa9</d></c></a>").unwrap();
        assert_eq!(root.canonical(), same.canonical());
    }

    #[test]
    fn other_texts_are_errors() {
        for text in ["", "x", "<a>", "<a></b>", "</a>", "<a>&x;</a>", &"<a>".repeat(99)] {
            assert!(Element::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
