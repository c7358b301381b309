//! Reads and writes S3 documents. Pure.

pub(crate) mod reader;
pub(crate) mod tagging;
pub(crate) mod writer;

use crate::errors::S3Result;
use crate::xml::reader::Element;
use crate::xml::writer::Xml;

/// An S3 document that clients send and receive.
pub(crate) trait Document: Sized {
    /// The name of the root element.
    const ROOT: &'static str;

    /// Reads the document from its root element.
    ///
    /// # Errors
    /// `MalformedXML` if it has another schema, or the S3 error for an invalid value.
    fn read(root: &Element) -> S3Result<Self>;

    /// Writes the root element's content.
    fn write(&self, xml: &mut Xml);

    /// Reads the document from its text.
    ///
    /// # Errors
    /// Fails like [`Self::read`], and with `MalformedXML`.
    fn parse(text: &[u8]) -> S3Result<Self> {
        Self::read(&Element::document(text, Self::ROOT)?)
    }

    /// Returns the document's text.
    fn text(&self) -> String {
        Xml::document(Self::ROOT, |xml| self.write(xml))
    }
}
