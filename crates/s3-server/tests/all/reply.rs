//! Responses, as tests see them.

use std::io::Read;

use haul_testing::ClientStream;

/// A response.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The status; 0 if there was no response.
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Reads a response of the declared length, or until the connection is closed. A reset after
    /// the response ends it too: a server resets the connection of a client that still sends.
    pub(crate) fn read(stream: &mut ClientStream) -> Self {
        let mut bytes = Vec::new();
        let mut piece = vec![0; 64 << 10];
        let mut wanted = usize::MAX;
        while bytes.len() < wanted {
            match stream.read(&mut piece) {
                Ok(0) | Err(_) => break,
                Ok(read) => bytes.extend_from_slice(&piece[..read]),
            }
            if wanted == usize::MAX {
                let begun = Self::parse(&bytes);
                let length = begun.header("content-length").and_then(|length| length.parse().ok());
                let head = bytes.len() - begun.body.len();
                wanted = length.map_or(usize::MAX, |length: usize| head + length);
            }
        }
        Self::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Self {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Self::default();
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines
            .map(|line| line.split_once(": ").unwrap_or((line, "")))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        Self { status, headers, body: bytes[end + 4..].to_vec() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the content of the first XML element with this name.
    pub(crate) fn xml(&self, name: &str) -> Option<String> {
        self.all_xml(name).into_iter().next()
    }

    /// Returns the contents of all XML elements with this name.
    pub(crate) fn all_xml(&self, name: &str) -> Vec<String> {
        let text = self.text();
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let after = text.split(&open).skip(1);
        after.map(|rest| rest.split(&close).next().unwrap().to_owned()).collect()
    }

    /// Returns the status and the S3 error code.
    pub(crate) fn error(&self) -> (u16, String) {
        (self.status, self.xml("Code").unwrap_or_default())
    }

    /// Returns `true` if the body has the declared length.
    pub(crate) fn is_whole(&self) -> bool {
        self.header("content-length") == Some(self.body.len().to_string().as_str())
    }
}

/// Fails unless the response is this error.
#[track_caller]
pub(crate) fn assert_refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!(reply.error(), (status, code.to_owned()), "{}", reply.text());
}
