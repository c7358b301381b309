//! Writes documents.

use std::fmt::{self, Display, Write};

/// The namespace of S3 documents.
pub(crate) const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// A document that is being written.
#[derive(Debug, Default)]
pub(crate) struct Xml {
    text: String,
}

impl Xml {
    /// Returns an S3 document whose root element has the content that `write` writes.
    pub(crate) fn document(root: &'static str, write: impl FnOnce(&mut Self)) -> String {
        Self::with_namespace(root, NAMESPACE, write)
    }

    /// Returns a document with this namespace.
    pub(crate) fn with_namespace(
        root: &'static str,
        namespace: &'static str,
        write: impl FnOnce(&mut Self),
    ) -> String {
        let mut xml = Self::declared();
        xml.open(&format!("{root} xmlns=\"{namespace}\""));
        write(&mut xml);
        xml.close(root);
        xml.text
    }

    /// Returns a document without a namespace.
    pub(crate) fn plain(root: &'static str, write: impl FnOnce(&mut Self)) -> String {
        let mut xml = Self::declared();
        xml.group(root, write);
        xml.text
    }

    /// Returns an HTML document whose elements XML has, too.
    pub(crate) fn html(write: impl FnOnce(&mut Self)) -> String {
        let mut xml = Self { text: "<!DOCTYPE html>".to_owned() };
        xml.group("html", write);
        xml.text
    }

    fn declared() -> Self {
        Self { text: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>".to_owned() }
    }

    /// Writes an element with child elements.
    pub(crate) fn group(&mut self, name: &'static str, write: impl FnOnce(&mut Self)) {
        self.open(name);
        write(self);
        self.close(name);
    }

    /// Writes an element with child elements, and with the unescaped text `attributes`.
    pub(crate) fn group_with(
        &mut self,
        name: &'static str,
        attributes: &str,
        write: impl FnOnce(&mut Self),
    ) {
        self.open(&format!("{name} {attributes}"));
        write(self);
        self.close(name);
    }

    /// Writes an element with a text.
    pub(crate) fn element(&mut self, name: &str, value: impl Display) {
        self.open(name);
        let mut text = Escaped { text: &mut self.text, with_quotes: true };
        write!(text, "{value}").expect("a String accepts all text");
        self.close(name);
    }

    /// Writes an error message. Its quotation marks are not escaped, because clients search the
    /// message for the text that S3 sends.
    pub(crate) fn message(&mut self, message: &str) {
        self.open("Message");
        let mut text = Escaped { text: &mut self.text, with_quotes: false };
        text.write_str(message).expect("a String accepts all text");
        self.close("Message");
    }

    /// Writes an element if it has a value.
    pub(crate) fn optional(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.element(name, value);
        }
    }

    fn open(&mut self, tag: &str) {
        self.text.push('<');
        self.text += tag;
        self.text.push('>');
    }

    fn close(&mut self, name: &str) {
        self.text += "</";
        self.text += name;
        self.text.push('>');
    }
}

/// Escapes text.
///
/// Parsers convert a bare carriage return to a line feed, which would change a key. XML 1.0 cannot
/// represent most of the other control characters at all; they are escaped as in S3, and clients
/// that need such keys request `encoding-type=url`.
struct Escaped<'a> {
    text: &'a mut String,
    /// `true` if quotation marks and apostrophes are escaped, too; XML does not require this in
    /// text.
    with_quotes: bool,
}

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        let needs_escape = |byte: u8| {
            matches!(byte, b'&' | b'<' | b'>')
                || self.with_quotes && matches!(byte, b'"' | b'\'')
                || byte < b' ' && byte != b'\t' && byte != b'\n'
        };
        while let Some(at) = rest.bytes().position(needs_escape) {
            self.text.push_str(&rest[..at]);
            match rest.as_bytes()[at] {
                b'&' => self.text.push_str("&amp;"),
                b'<' => self.text.push_str("&lt;"),
                b'>' => self.text.push_str("&gt;"),
                b'"' => self.text.push_str("&quot;"),
                b'\'' => self.text.push_str("&apos;"),
                byte => write!(self.text, "&#{byte};")?,
            }
            rest = &rest[at + 1..];
        }
        self.text.push_str(rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_has_its_elements_in_order() {
        let xml = Xml::document("Root", |xml| {
            xml.element("A", 1);
            xml.group("B", |xml| xml.optional("C", Some("x")));
            xml.optional("D", None::<&str>);
            xml.message("\"d\" < 'e'");
            xml.group_with("E", "f=\"g\"", |xml| xml.element("H", ""));
        });
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
            <Root xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><A>1</A><B><C>x</C></B>\
            <Message>\"d\" &lt; 'e'</Message><E f=\"g\"><H></H></E></Root>";
        assert_eq!(xml, expected);
    }

    #[test]
    fn markup_and_control_characters_are_escaped() {
        let xml =
            Xml::plain("A", |xml| xml.element("B", "a\rb & <c> \"d\" 'e'\t\n\u{1}\u{1f}\u{e4}"));
        let expected =
            "<A><B>a&#13;b &amp; &lt;c&gt; &quot;d&quot; &apos;e&apos;\t\n&#1;&#31;\u{e4}</B></A>";
        assert!(xml.ends_with(expected), "{xml}");
    }
}
