//! Reads and writes the documents of S3. Pure.

pub(crate) mod reader;
pub(crate) mod tagging;
pub(crate) mod writer;

use crate::errors::S3Result;
use crate::xml::reader::Element;
use crate::xml::writer::Xml;

/// A document of S3 that clients send and receive.
pub(crate) trait Document: Sized {
    /// The name of its root element.
    const ROOT: &'static str;

    /// Reads the document from its root element.
    ///
    /// # Errors
    /// `MalformedXML` if it has another schema, or the error of S3 for an invalid value.
    fn read(root: &Element) -> S3Result<Self>;

    /// Writes the content of the root element.
    fn write(&self, xml: &mut Xml);

    /// Reads the document from its text.
    ///
    /// # Errors
    /// Those of [`Self::read`], and `MalformedXML`.
    fn parse(text: &[u8]) -> S3Result<Self> {
        Self::read(&Element::document(text, Self::ROOT)?)
    }

    /// Returns the text of the document.
    fn text(&self) -> String {
        Xml::document(Self::ROOT, |xml| self.write(xml))
    }
}
