//! The fields of a form, and the parser of the part of the body before the content of the file.
//! Pure.

use hyper::header::{CONTENT_TYPE, HeaderMap};
use memchr::memmem;

/// The name of the field with the file. The fields after it are ignored, as in S3.
const FILE: &str = "file";

/// Stands for the name of the file in the key.
const FILE_NAME: &str = "${filename}";

/// The maximum length of the head of a field.
const HEAD_BYTES_MAX: usize = 4096;

/// The fields of a form before its file, with names in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    fields: Vec<(String, String)>,
}

/// The result of parsing the beginning of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// The content of the file begins after so many bytes.
    Complete(Fields, usize),
    /// The rest of the fields is missing.
    Incomplete,
}

impl Fields {
    /// Returns the value of a field with this name in lower case.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the names and values of all fields.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = name.to_ascii_lowercase();
        if self.get(&name).is_some() {
            return Err(format!("the field {name} is repeated"));
        }
        self.fields.push((name, value.to_owned()));
        Ok(())
    }

    /// Replaces `${filename}` in the key. Some browsers send the whole path of a file: its last
    /// part counts.
    fn name_file(&mut self, name: Option<&str>) {
        let name = name.and_then(|name| name.rsplit(['/', '\\']).next()).unwrap_or_default();
        for (field, value) in &mut self.fields {
            if field == "key" {
                *value = value.replace(FILE_NAME, name);
            }
        }
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Fields {
    fn from(fields: [(&str, &str); N]) -> Self {
        let mut all = Self::default();
        fields.into_iter().for_each(|(name, value)| all.add(name, value).unwrap());
        all
    }
}

/// Returns `true` if the body of a request is a form with files.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    const FORM: &[u8] = b"multipart/form-data";
    let content_type = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
    let kind = content_type.and_then(|value| value.get(..FORM.len()));
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(FORM))
}

/// Returns the delimiter between the fields of a form: `--` and the boundary of its content type.
pub(super) fn delimiter(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let mut parameters = value.split(';').skip(1).filter_map(|one| one.trim().split_once('='));
    let (_, boundary) = parameters.find(|(name, _)| name.eq_ignore_ascii_case("boundary"))?;
    let boundary = boundary.trim_matches('"');
    // RFC 2046, 5.1.1.
    (1..=70).contains(&boundary.len()).then(|| format!("--{boundary}"))
}

/// Parses the beginning of a body up to the content of the file.
///
/// # Errors
/// The reason why no more bytes can complete the fields.
pub(super) fn parse(body: &[u8], delimiter: &str) -> Result<Parsed, String> {
    let next = format!("\r\n{delimiter}");
    let next = memmem::Finder::new(&next);
    let mut fields = Fields::default();
    // A body may begin with an empty line.
    let mut at = if body.starts_with(b"\r\n") { 2 } else { 0 };
    loop {
        let rest = &body[at..];
        let begins = [delimiter.as_bytes(), b"\r\n"].concat();
        if !rest.starts_with(&begins) {
            return match begins.starts_with(rest) {
                true => Ok(Parsed::Incomplete),
                false if rest.starts_with(delimiter.as_bytes()) && rest.ends_with(b"--\r\n") => {
                    Err("it has no field with the name file".to_owned())
                }
                false => Err("a delimiter is expected".to_owned()),
            };
        }
        let rest = &rest[begins.len()..];
        let Some(head_bytes) = memmem::find(rest, b"\r\n\r\n") else {
            let is_long = rest.len() > HEAD_BYTES_MAX;
            let too_long = || "the head of a field is too long".to_owned();
            return if is_long { Err(too_long()) } else { Ok(Parsed::Incomplete) };
        };
        let head = str::from_utf8(&rest[..head_bytes]);
        let (name, file_name) = head.ok().and_then(disposition).ok_or_else(|| {
            "a field has no Content-Disposition with a name, or it is not UTF-8".to_owned()
        })?;
        let content = at + begins.len() + head_bytes + 4;
        if name.eq_ignore_ascii_case(FILE) {
            fields.name_file(file_name);
            return Ok(Parsed::Complete(fields, content));
        }
        let Some(bytes) = next.find(&body[content..]) else { return Ok(Parsed::Incomplete) };
        let value = str::from_utf8(&body[content..content + bytes]);
        let value = value.map_err(|error| format!("the field {name} is not UTF-8: {error}"))?;
        fields.add(name, value)?;
        at = content + bytes + 2;
    }
}

/// Returns the names of the field and of the file in the head of a field.
fn disposition(head: &str) -> Option<(&str, Option<&str>)> {
    let is_disposition =
        |(name, _): &(&str, &str)| name.trim().eq_ignore_ascii_case("content-disposition");
    let (_, value) =
        head.split("\r\n").filter_map(|line| line.split_once(':')).find(is_disposition)?;
    let (kind, mut rest) = value.split_once(';')?;
    let (mut name, mut file_name) = (None, None);
    while let Some((parameter, after)) = rest.split_once('=') {
        // Browsers send `"` as %22, and a backslash as it is.
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_at(after.find(';').unwrap_or(after.len())),
        };
        match parameter.trim_matches([';', ' ', '\t']) {
            "name" => name = Some(value),
            "filename" => file_name = Some(value),
            _ => {}
        }
        rest = after;
    }
    (kind.trim().eq_ignore_ascii_case("form-data")).then_some((name?, file_name))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const BODY: &str = "--x\r\nContent-Disposition: form-data; name=\"Key\"\r\n\r\na/${filename}\r\n\
        --x\r\nContent-Disposition: form-data; name=\"acl\"; filename=\"acl\"\r\n\
        Content-Type: text/plain\r\n\r\n\r\n\
        --x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"C:\\d\\f.txt\"\r\n\r\n";

    #[test]
    fn fields_before_the_file_are_parsed_at_any_length() {
        let expected = Fields::from([("key", "a/f.txt"), ("acl", "")]);
        for end in 0..BODY.len() {
            assert_eq!(parse(&BODY.as_bytes()[..end], "--x"), Ok(Parsed::Incomplete), "{end}");
        }
        for prefix in ["", "\r\n"] {
            let body = format!("{prefix}{BODY}content\r\n--x--\r\n");
            let parsed = Parsed::Complete(expected.clone(), prefix.len() + BODY.len());
            assert_eq!(parse(body.as_bytes(), "--x"), Ok(parsed));
        }
    }

    #[test]
    fn malformed_forms_are_refused() {
        let field = "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk\r\n";
        for (body, expected) in [
            ("--y\r\n".to_owned(), "delimiter"),
            (format!("{field}--x--\r\n"), "no field with the name file"),
            (format!("{field}{field}{field}"), "the field key is repeated"),
            (field.replace("name", "nome"), "no Content-Disposition"),
            (field.replace("form-data", "attachment"), "no Content-Disposition"),
            (format!("--x\r\n{}", "a".repeat(HEAD_BYTES_MAX + 1)), "too long"),
        ] {
            assert!(parse(body.as_bytes(), "--x").unwrap_err().contains(expected), "{body}");
        }
    }

    #[test]
    fn boundary_is_found_in_the_content_type() {
        for (value, expected) in [
            ("multipart/form-data; boundary=x", Some("--x")),
            ("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"", Some("--a b")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
        ] {
            let value = HeaderValue::from_str(value).unwrap();
            let headers: HeaderMap = [(CONTENT_TYPE, value)].into_iter().collect();
            assert!(is_form(&headers));
            assert_eq!(delimiter(&headers).as_deref(), expected);
        }
    }
}
