//! Reads documents: a tree of elements, without their namespaces.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::errors::{S3Error, S3ErrorCode, S3Result, refuse};

/// The maximum depth of a document: S3's have at most eight levels.
const DEPTH_MAX: usize = 32;

/// The maximum number of elements in a document: S3's longest one completes an upload with 10,000
/// parts, which have at most 12 elements each.
const ELEMENTS_MAX: usize = 128 << 10;

/// The maximum number of attributes in an element: S3's have at most three.
const ATTRIBUTES_MAX: usize = 16;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Element {
    /// The element's name, without its namespace prefix.
    pub(crate) name: String,
    /// The attributes except namespace declarations, without prefixes.
    attributes: Vec<(String, String)>,
    text: String,
    children: Vec<Element>,
}

impl Element {
    /// Reads a document with this root element.
    ///
    /// # Errors
    /// `MalformedXML` if it is not well-formed, or has another root.
    pub(crate) fn document(xml: &[u8], root: &str) -> S3Result<Self> {
        let found = Self::parse(xml).map_err(|why| malformed(&why))?;
        if found.name == root {
            return Ok(found);
        }
        Err(malformed(&format!("its root is <{}>, not <{root}>", found.name)))
    }

    fn parse(xml: &[u8]) -> Result<Self, String> {
        let xml = xml.strip_prefix(b"\xef\xbb\xbf").unwrap_or(xml);
        let text = str::from_utf8(xml).map_err(|_not_utf8| "it is not UTF-8")?;
        if !text.chars().all(is_char) {
            return Err("it has a character that XML forbids".to_owned());
        }
        let mut reader = Reader::from_str(text);
        reader.config_mut().check_end_names = true;
        let mut open: Vec<Self> = Vec::new();
        let (mut root, mut elements) = (None, 0);
        loop {
            let event = reader.read_event().map_err(|error| error.to_string())?;
            let ended = match event {
                Event::Start(_) | Event::Empty(_) if elements == ELEMENTS_MAX => {
                    return Err(format!("it has more than {ELEMENTS_MAX} elements"));
                }
                Event::Start(tag) => {
                    elements += 1;
                    if root.is_some() || open.len() >= DEPTH_MAX {
                        return Err("it has several roots, or too many levels".to_owned());
                    }
                    open.push(Self::from_tag(&tag)?);
                    continue;
                }
                Event::Empty(tag) => {
                    elements += 1;
                    Some(Self::from_tag(&tag)?)
                }
                Event::End(_) => open.pop(),
                Event::Text(text) => {
                    let text = text.xml10_content().map_err(|error| error.to_string())?;
                    add_text(&mut open, &text)?;
                    None
                }
                Event::CData(text) => {
                    let text = text.xml10_content().map_err(|error| error.to_string())?;
                    add_text(&mut open, &text)?;
                    None
                }
                Event::GeneralRef(reference) => {
                    let char = reference.resolve_char_ref().map_err(|error| error.to_string())?;
                    let name = reference.decode().map_err(|error| error.to_string())?;
                    let text = match char {
                        Some(char) if is_char(char) => char.to_string(),
                        Some(_) => return Err("it refers to a character that XML forbids".into()),
                        None => match quick_xml::escape::resolve_xml_entity(&name) {
                            Some(text) => text.to_owned(),
                            None => return Err(format!("it refers to the unknown entity {name}")),
                        },
                    };
                    add_text(&mut open, &text)?;
                    None
                }
                Event::DocType(_) => return Err("it has a document type".to_owned()),
                Event::Decl(_) | Event::PI(_) | Event::Comment(_) => None,
                Event::Eof => break,
            };
            match (ended, open.last_mut()) {
                (None, _) => {}
                (Some(element), Some(parent)) => parent.children.push(element),
                (Some(element), None) if root.is_none() => root = Some(element),
                (Some(_), None) => return Err("it has several roots".to_owned()),
            }
        }
        if !open.is_empty() {
            return Err("it ends within an element".to_owned());
        }
        root.ok_or_else(|| "it has no element".to_owned())
    }

    fn from_tag(tag: &BytesStart<'_>) -> Result<Self, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut element = Self { name: text(tag.local_name().as_ref()), ..Self::default() };
        for (number, attribute) in tag.attributes().enumerate() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            if number == ATTRIBUTES_MAX {
                return Err(format!("an element has more than {ATTRIBUTES_MAX} attributes"));
            }
            let name = attribute.key;
            if name.as_namespace_binding().is_some() {
                continue;
            }
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| error.to_string())?.into_owned();
            element.attributes.push((text(name.local_name().as_ref()), value));
        }
        Ok(element)
    }

    /// Fails with `MalformedXML` if the element has child elements with other names, or text
    /// between them.
    pub(crate) fn only(&self, names: &[&str]) -> S3Result<&Self> {
        if let Some(unknown) = self.children.iter().find(|child| !names.contains(&&*child.name)) {
            return Err(malformed(&format!("<{}> cannot have <{}>", self.name, unknown.name)));
        }
        if !self.text.trim().is_empty() {
            return Err(malformed(&format!("<{}> cannot have text", self.name)));
        }
        Ok(self)
    }

    /// Returns the child elements with this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns the child element with this name.
    ///
    /// # Errors
    /// `MalformedXML` if there are several.
    pub(crate) fn child(&self, name: &str) -> S3Result<Option<&Self>> {
        let mut found = self.children.iter().filter(|child| child.name == name);
        let first = found.next();
        if found.next().is_some() {
            return Err(malformed(&format!("<{}> has several <{name}>", self.name)));
        }
        Ok(first)
    }

    /// Returns the child element with this name. Fails if it is missing.
    pub(crate) fn required(&self, name: &str) -> S3Result<&Self> {
        let missing = || malformed(&format!("<{}> has no <{name}>", self.name));
        self.child(name)?.ok_or_else(missing)
    }

    /// Returns this element's text, unchanged. Fails if it has child elements.
    pub(crate) fn text(&self) -> S3Result<&str> {
        match self.children.first() {
            None => Ok(&self.text),
            Some(child) => Err(malformed(&format!("<{}> cannot have <{}>", self.name, child.name))),
        }
    }

    /// Returns this element's text without surrounding white space, for example a word or a number.
    pub(crate) fn word(&self) -> S3Result<&str> {
        self.text().map(str::trim)
    }

    /// Returns the text in the child element with this name.
    pub(crate) fn text_of(&self, name: &str) -> S3Result<Option<String>> {
        self.child(name)?.map(|child| child.text().map(str::to_owned)).transpose()
    }

    /// Returns the word in the child element with this name.
    pub(crate) fn word_of(&self, name: &str) -> S3Result<Option<&str>> {
        self.child(name)?.map(Self::word).transpose()
    }

    /// Returns the number in the child element with this name.
    pub(crate) fn number_of<T: std::str::FromStr>(&self, name: &str) -> S3Result<Option<T>> {
        let Some(word) = self.word_of(name)? else { return Ok(None) };
        let invalid = |_why| malformed(&format!("<{name}> is no number in its range: {word:?}"));
        word.parse().map(Some).map_err(invalid)
    }

    /// Returns the Boolean in the child element with this name.
    pub(crate) fn flag_of(&self, name: &str) -> S3Result<Option<bool>> {
        match self.word_of(name)? {
            None => Ok(None),
            Some(word) if word.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(word) if word.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(word) => Err(malformed(&format!("<{name}> is neither true nor false: {word:?}"))),
        }
    }

    /// Returns an attribute's value.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// Returns the error for a document that is not well-formed, or has another schema.
pub(crate) fn malformed(why: &str) -> S3Error {
    let message = format!(
        "The XML you provided was not well-formed or did not validate against our published \
         schema: {why}"
    );
    refuse(S3ErrorCode::MalformedXML, message)
}

fn add_text(open: &mut [Element], text: &str) -> Result<(), String> {
    match open.last_mut() {
        Some(element) => element.text += text,
        None if text.trim().is_empty() => {}
        None => return Err("it has text outside of its root".to_owned()),
    }
    Ok(())
}

/// Returns `true` for a character that XML 1.0 permits.
fn is_char(char: char) -> bool {
    char >= ' ' && !matches!(char, '\u{fffe}' | '\u{ffff}') || matches!(char, '\t' | '\n' | '\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(xml: &str) -> S3Result<Element> {
        Element::document(xml.as_bytes(), "R")
    }

    #[test]
    fn text_is_that_of_all_its_parts() {
        for (xml, text) in [
            ("<R><K>a</K></R>", "a"),
            ("<R><K>x<![CDATA[A]]>y</K></R>", "xAy"),
            ("<R><K><![CDATA[<a> & ]]></K></R>", "<a> & "),
            ("<R><K>a<!-- b -->c</K></R>", "ac"),
            ("<R><K>a<?b?>c</K></R>", "ac"),
            ("<R><K>&lt;&amp;&gt;&quot;&apos;&#228;&#xe4;&#13;</K></R>", "<&>\"'\u{e4}\u{e4}\r"),
            ("<R><K> a b </K></R>", " a b "),
            ("<R><K/></R>", ""),
            ("\u{feff}<?xml version=\"1.0\"?>\n<R>\n<K>a</K>\n</R>\n", "a"),
            ("<s:R xmlns:s=\"http://x/\"><s:K>a</s:K></s:R>", "a"),
            ("<R xmlns=\"http://x/\"><K a=\"b\">a\r\nb</K></R>", "a\nb"),
        ] {
            let found = parse(xml).unwrap().text_of("K").unwrap();
            assert_eq!(found.as_deref(), Some(text), "{xml}");
        }
    }

    #[test]
    fn malformed_documents_are_refused() {
        let deep = format!("{}{}", "<R>".repeat(40), "</R>".repeat(40));
        let many = format!("<R>{}</R>", "<K/>".repeat(ELEMENTS_MAX));
        let attributes: String =
            (0..=ATTRIBUTES_MAX).map(|number| format!(" a{number}=''")).collect();
        let wide = format!("<R{attributes}/>");
        for xml in [
            "",
            "a",
            "<R>",
            "<R></K>",
            "<R></R><R></R>",
            "<R/><R/>",
            "<R/>a",
            "<K/>",
            "<R>&unknown;</R>",
            "<R>&#0;</R>",
            "<R>&#1;</R>",
            "<R>\u{1}</R>",
            "<!DOCTYPE R [<!ENTITY a \"b\">]><R>&a;</R>",
            "<R a=\"b\" a=\"c\"/>",
            "<R a=b/>",
            &deep,
            &many,
            &wide,
        ] {
            let error = parse(xml).unwrap_err();
            assert_eq!(error.code().as_str(), "MalformedXML", "{xml:.80}");
        }
        assert!(parse(&many.replacen("<K/>", "", 1)).is_ok());
        assert!(Element::document(b"<R>\xff</R>", "R").is_err());
    }

    #[test]
    fn values_are_those_of_their_types() {
        let found = parse(
            "<R><Word>\n Enabled \n</Word><Number> 7 </Number><Flag>True</Flag><Two/><Two/>\
             <Group xsi:type=\"User\" xmlns:xsi=\"http://x/\"><In>a</In></Group></R>",
        )
        .unwrap();
        assert_eq!(found.word_of("Word").unwrap(), Some("Enabled"));
        assert_eq!(found.number_of::<u8>("Number").unwrap(), Some(7));
        assert_eq!(found.flag_of("Flag").unwrap(), Some(true));
        assert_eq!(found.required("Group").unwrap().attribute("type"), Some("User"));
        assert_eq!(found.text_of("Absent").unwrap(), None);
        assert!(found.required("Absent").is_err());
        assert!(found.child("Two").is_err() && found.all("Two").count() == 2);
        assert!(found.number_of::<u8>("Word").is_err() && found.flag_of("Word").is_err());
        assert!(found.text_of("Group").is_err());
        assert!(found.only(&["Word", "Number", "Flag", "Two", "Group"]).is_ok());
        assert!(found.only(&["Word"]).is_err());
        assert!(found.required("Word").unwrap().only(&[]).is_err());
    }
}
