//! The head of a response that a handler writes by itself.

use haul_http1::{Date, HeadWriter, InvalidHead};

use crate::access_log::RequestIdentity;

/// The beginning of every head, which changes once a second.
pub(crate) struct HeadDate {
    pub(crate) date: Date,
    /// The status line of a response with status 200, and its date.
    ok: Vec<u8>,
}

impl HeadDate {
    pub(crate) fn new(date: Date) -> Self {
        let mut ok = b"HTTP/1.1 200 OK\r\ndate: ".to_vec();
        ok.extend_from_slice(date.as_bytes());
        ok.extend_from_slice(b"\r\n");
        Self { date, ok }
    }
}

/// The beginning of the head of a response, which the connection determines.
pub struct ResponseHead<'a> {
    out: &'a mut Vec<u8>,
    date: &'a HeadDate,
    connection: Option<&'static str>,
    pub(crate) status: u16,
    pub(crate) identity: Option<RequestIdentity>,
}

impl<'a> ResponseHead<'a> {
    /// Creates a head that is written to the end of `out`, with this value of the field Connection.
    pub(crate) fn new(
        out: &'a mut Vec<u8>,
        date: &'a HeadDate,
        connection: Option<&'static str>,
    ) -> Self {
        Self { out, date, connection, status: 0, identity: None }
    }

    /// Sets the identity of the request in the access log.
    pub fn identify(&mut self, identity: RequestIdentity) {
        self.identity = Some(identity);
    }

    /// Returns the status of the head; 0 before it was begun.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Starts the head with its status, the date and the state of the connection.
    pub fn begin(&mut self, status: u16) -> HeadWriter<'_> {
        self.status = status;
        let mut head = match status {
            200 => HeadWriter::with_prefix(self.out, &self.date.ok),
            _ => {
                let mut head = HeadWriter::response(self.out, status);
                head.date("date", &self.date.date);
                head
            }
        };
        if let Some(connection) = self.connection {
            head.field("connection", connection.as_bytes());
        }
        head
    }

    /// Writes a whole head: its beginning, `fields`, and `prepared`, the end of a head that was
    /// written before.
    ///
    /// # Errors
    /// If a field is invalid.
    pub fn write_prepared<'f>(
        &mut self,
        status: u16,
        fields: impl IntoIterator<Item = (&'f str, &'f [u8])>,
        prepared: &PreparedHead,
    ) -> Result<(), InvalidHead> {
        let mut head = self.begin(status);
        for (name, value) in fields {
            head.field(name, value);
        }
        head.end()?;
        // Without the empty line, which `prepared` has.
        self.out.truncate(self.out.len() - b"\r\n".len());
        self.out.extend_from_slice(&prepared.0);
        Ok(())
    }
}

/// Fields of a head, written once for many responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedHead(Box<[u8]>);

/// No fields.
impl Default for PreparedHead {
    fn default() -> Self {
        Self(b"\r\n".as_slice().into())
    }
}

impl PreparedHead {
    /// Writes the fields that `write` adds.
    ///
    /// # Errors
    /// If a field is invalid.
    pub fn new(write: impl FnOnce(&mut HeadWriter<'_>)) -> Result<Self, InvalidHead> {
        let mut out = Vec::with_capacity(256);
        let mut head = HeadWriter::with_prefix(&mut out, &[]);
        write(&mut head);
        head.end()?;
        Ok(Self(out.into()))
    }

    /// Returns the length of the fields.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "it has at least an empty line")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the fields, with the empty line at their end.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
