//! The fields in a form, and the parser for the part of the body before the file's content. Pure.

use memchr::memmem;

/// The name of the field with the file. As in S3, later fields are ignored.
const FILE: &str = "file";

/// The placeholder for the file's name in a field value.
const FILE_NAME: &str = "${filename}";

/// The maximum number of fields before the file.
const FIELDS_MAX: usize = 1000;

/// The maximum total length of the values, in bytes, with the file's name filled in.
const VALUES_BYTES_MAX: usize = 64 * 1024;

/// The maximum length of a field's head, in bytes.
const HEAD_BYTES_MAX: usize = 4096;

/// The fields in a form before the file, with names in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FormFields {
    fields: Vec<(String, String)>,
}

/// The result of parsing the beginning of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// The file's content begins at this offset.
    Complete(FormFields, usize),
    /// The rest of the fields is missing.
    Incomplete,
    /// The form has ended, without a file.
    NoFile,
}

/// A parser for the beginning of a body. It continues where it stopped, so that a body in many
/// small pieces costs no more than a body in a single piece.
#[derive(Debug)]
pub(super) struct Parser {
    delimiter: String,
    /// Finds CR LF and the delimiter.
    delimiter_finder: memmem::Finder<'static>,
    fields: FormFields,
    /// The offset after the complete fields.
    at: usize,
    /// The offset up to which the end of the present field was searched.
    searched: usize,
}

impl FormFields {
    /// Returns a field's value. `name` must be in lower case.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the names and values of all fields.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Adds a field. As in S3, several fields with the same name become one, with a list of values.
    fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = name.to_ascii_lowercase();
        if let Some((_, values)) = self.fields.iter_mut().find(|(found, _)| *found == name) {
            values.push(',');
            values.push_str(value);
            return Ok(());
        }
        if self.fields.len() == FIELDS_MAX {
            return Err(format!("it has more than {FIELDS_MAX} fields"));
        }
        self.fields.push((name, value.to_owned()));
        Ok(())
    }

    /// Replaces `${filename}` in all fields. Some browsers send a file's whole path, so only its
    /// last component is used.
    fn name_file(&mut self, name: Option<&str>) -> Result<(), String> {
        let name = name.and_then(|name| name.rsplit(['/', '\\']).next()).unwrap_or_default();
        let bytes =
            |(_, value): (&str, &str)| value.len() + value.matches(FILE_NAME).count() * name.len();
        // Many short fields may repeat a long name.
        if self.iter().map(bytes).sum::<usize>() > VALUES_BYTES_MAX {
            return Err(format!("its fields have more than {VALUES_BYTES_MAX} bytes"));
        }
        for (_, value) in self.fields.iter_mut().filter(|(_, value)| value.contains(FILE_NAME)) {
            *value = value.replace(FILE_NAME, name);
        }
        Ok(())
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for FormFields {
    fn from(fields: [(&str, &str); N]) -> Self {
        let mut all = Self::default();
        fields.into_iter().for_each(|(name, value)| all.add(name, value).unwrap());
        all
    }
}

/// Returns the delimiter between a form's fields: `--` and the boundary in the content type.
pub(super) fn delimiter(content_type: &str) -> Option<String> {
    let parameters = content_type.split(';').skip(1);
    let mut parameters = parameters.filter_map(|one| one.trim().split_once('='));
    let (_, boundary) = parameters.find(|(name, _)| name.eq_ignore_ascii_case("boundary"))?;
    let boundary = boundary.trim_matches('"');
    // RFC 2046, 5.1.1: a boundary has 1 to 70 characters.
    (1..=70).contains(&boundary.len()).then(|| format!("--{boundary}"))
}

impl Parser {
    pub(super) fn new(delimiter: String) -> Self {
        let delimiter_finder = memmem::Finder::new(&format!("\r\n{delimiter}")).into_owned();
        Self { delimiter, delimiter_finder, fields: FormFields::default(), at: 0, searched: 0 }
    }

    pub(super) fn delimiter(&self) -> &str {
        &self.delimiter
    }

    /// Parses the beginning of a body, up to the file's content. `body` begins with the bytes from
    /// the earlier calls.
    ///
    /// # Errors
    /// The reason why no more bytes can complete the fields.
    pub(super) fn parse(&mut self, body: &[u8]) -> Result<Parsed, String> {
        // A body may begin with an empty line.
        if self.at == 0 {
            match body {
                [] | [b'\r'] => return Ok(Parsed::Incomplete),
                [b'\r', b'\n', ..] => self.at = 2,
                _ => {}
            }
        }
        loop {
            let head_at = match self.after_delimiter(&body[self.at..])? {
                Delimiter::Field(bytes) => self.at + bytes,
                Delimiter::Incomplete => return Ok(Parsed::Incomplete),
                Delimiter::Last => return Ok(Parsed::NoFile),
            };
            let Some(head_bytes) = end_of_head(&body[head_at..]) else {
                let is_long = body.len() - head_at > HEAD_BYTES_MAX;
                let too_long = || "the head of a field is too long".to_owned();
                return if is_long { Err(too_long()) } else { Ok(Parsed::Incomplete) };
            };
            let head = str::from_utf8(&body[head_at..head_at + head_bytes]);
            let (name, file_name) = head.ok().and_then(disposition).ok_or_else(|| {
                "a field has no Content-Disposition with a name, or it is not UTF-8".to_owned()
            })?;
            let content = head_at + head_bytes + 4;
            if name.eq_ignore_ascii_case(FILE) {
                let mut fields = std::mem::take(&mut self.fields);
                fields.name_file(file_name)?;
                return Ok(Parsed::Complete(fields, content));
            }
            let from = self.searched.max(content);
            let Some(found) = self.delimiter_finder.find(&body[from..]) else {
                self.searched = content
                    .max(body.len().saturating_sub(self.delimiter_finder.needle().len() - 1));
                return Ok(Parsed::Incomplete);
            };
            let end = from + found;
            let value = str::from_utf8(&body[content..end]);
            let value = value.map_err(|error| format!("the field {name} is not UTF-8: {error}"))?;
            self.fields.add(name, value)?;
            self.at = end + 2;
        }
    }

    /// Parses the delimiter at the beginning of these bytes.
    fn after_delimiter(&self, rest: &[u8]) -> Result<Delimiter, String> {
        const LINE_END: &[u8] = b"\r\n";
        let Some(after) = rest.strip_prefix(self.delimiter.as_bytes()) else {
            return match self.delimiter.as_bytes().starts_with(rest) {
                true => Ok(Delimiter::Incomplete),
                false => Err("a delimiter is expected".to_owned()),
            };
        };
        if after.starts_with(b"--") {
            return Ok(Delimiter::Last);
        }
        // A gateway may have added blanks (RFC 2046, 5.1.1).
        let blanks = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        match &after[blanks..] {
            line_end if line_end.starts_with(LINE_END) => {
                Ok(Delimiter::Field(self.delimiter.len() + blanks + LINE_END.len()))
            }
            line_end if LINE_END.starts_with(line_end) || after == b"-" => {
                Ok(Delimiter::Incomplete)
            }
            _ => Err("a line end is expected after a delimiter".to_owned()),
        }
    }
}

/// A delimiter between fields.
enum Delimiter {
    /// A field's head begins after this number of bytes.
    Field(usize),
    Incomplete,
    /// The delimiter at the end of a form.
    Last,
}

/// Returns the length of the head at the beginning of `bytes`, if it is complete.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    const END: &[u8] = b"\r\n\r\n";
    memmem::find(&bytes[..bytes.len().min(HEAD_BYTES_MAX + END.len())], END)
}

/// Returns the field's name and the file's name in a field's head.
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
    use super::*;

    const BODY: &str = "--x\r\nContent-Disposition: form-data; name=\"Key\"\r\n\r\na/${filename}\r\n\
        --x\r\nContent-Disposition: form-data; name=\"acl\"; filename=\"acl\"\r\n\
        Content-Type: text/plain\r\n\r\n\r\n\
        --x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"C:\\d\\f.txt\"\r\n\r\n";

    fn parse(body: &[u8]) -> Result<Parsed, String> {
        Parser::new("--x".to_owned()).parse(body)
    }

    #[test]
    fn fields_before_the_file_are_parsed_at_any_length() {
        let expected = FormFields::from([("key", "a/f.txt"), ("acl", "")]);
        for end in 0..BODY.len() {
            assert_eq!(parse(&BODY.as_bytes()[..end]), Ok(Parsed::Incomplete), "{end}");
        }
        for prefix in ["", "\r\n"] {
            let body = format!("{prefix}{BODY}content\r\n--x--\r\n");
            let parsed = Ok(Parsed::Complete(expected.clone(), prefix.len() + BODY.len()));
            assert_eq!(parse(body.as_bytes()), parsed);
            for step in 1..20 {
                let mut parser = Parser::new("--x".to_owned());
                let ends = (0..prefix.len() + BODY.len()).step_by(step);
                for end in ends {
                    let part = parser.parse(&body.as_bytes()[..end]);
                    assert_eq!(part, Ok(Parsed::Incomplete), "{step} {end}");
                }
                assert_eq!(parser.parse(body.as_bytes()), parsed, "{step}");
            }
        }
    }

    /// Returns the parsed fields of a form with these fields and a file, which may have a name.
    fn fields(fields: &[(&str, &str)], file_name: &str) -> FormFields {
        let field = |(name, value): &(&str, &str)| {
            format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let fields: String = fields.iter().map(field).collect();
        let file =
            format!("--x \t\r\nContent-Disposition: form-data; name=file{file_name}\r\n\r\n");
        match parse(format!("{fields}{file}content").as_bytes()) {
            Ok(Parsed::Complete(fields, _)) => fields,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn name_of_the_file_is_its_last_part_in_all_fields() {
        let all = [("key", "user/${filename}"), ("x-amz-meta-a", "${filename}, ${filename}")];
        for (file_name, expected) in [
            ("; filename=\"f.txt\"", "f.txt"),
            ("; filename=\"C:\\Program Files\\directory1\\file.txt\"", "file.txt"),
            ("; filename=\"a/b\"", "b"),
            ("; filename=\"\"", ""),
            ("", ""),
        ] {
            let found = fields(&all, file_name);
            assert_eq!(found.get("key"), Some(&*format!("user/{expected}")));
            let twice = format!("{expected}, {expected}");
            assert_eq!(found.get("x-amz-meta-a"), Some(&*twice));
        }
    }

    #[test]
    fn repetitions_of_a_long_name_are_refused() {
        let name = "n".repeat(1000);
        let mut fields = FormFields::from([("key", &*FILE_NAME.repeat(64))]);
        assert_eq!(fields.clone().name_file(Some(&name)), Ok(()));
        fields.add("x-amz-meta-a", FILE_NAME).unwrap();
        assert!(fields.name_file(Some(&name)).is_err());
    }

    #[test]
    fn repeated_fields_are_joined() {
        let repeated = [("x-amz-meta-tag", "Ninja"), ("X-Amz-Meta-Tag", "Stallman"), ("key", "k")];
        let expected = [("x-amz-meta-tag", "Ninja,Stallman"), ("key", "k")];
        assert_eq!(fields(&repeated, ""), FormFields::from(expected));
    }

    #[test]
    fn form_without_a_file_is_recognized_at_any_length() {
        let field = "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk\r\n";
        let form = format!("{field}--x--");
        for end in 0..form.len() {
            assert_eq!(parse(&form.as_bytes()[..end]), Ok(Parsed::Incomplete), "{end}");
        }
        assert_eq!(parse(form.as_bytes()), Ok(Parsed::NoFile));
        assert_eq!(parse(format!("{form}\r\n").as_bytes()), Ok(Parsed::NoFile));
    }

    #[test]
    fn malformed_forms_are_refused() {
        let field = "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk\r\n";
        let many: String = (0..=FIELDS_MAX).map(|n| field.replace("key", &n.to_string())).collect();
        for (body, expected) in [
            ("--y\r\n".to_owned(), "delimiter"),
            ("--xy\r\n".to_owned(), "line end"),
            (format!("{many}--x"), "more than 1000 fields"),
            (field.replace("name", "nome"), "no Content-Disposition"),
            (field.replace("form-data", "attachment"), "no Content-Disposition"),
            (format!("--x\r\n{}", "a".repeat(HEAD_BYTES_MAX + 1)), "too long"),
        ] {
            assert!(parse(body.as_bytes()).unwrap_err().contains(expected), "{body}");
        }
    }

    #[test]
    fn boundary_is_found_in_the_content_type() {
        for (content_type, expected) in [
            ("multipart/form-data; boundary=x", Some("--x")),
            ("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"", Some("--a b")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
        ] {
            assert_eq!(delimiter(content_type).as_deref(), expected);
        }
    }
}
