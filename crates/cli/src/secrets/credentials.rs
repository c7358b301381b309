//! Reads the access key and the secret key of the server from a file or from the environment.

use std::path::Path;

use haul_s3_server::Credentials;

use crate::report::{Exit, Failure, Result};
use crate::secrets::file;

/// The names of the environment variables with a key pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variables {
    access: &'static str,
    secret: &'static str,
}

impl Variables {
    /// The keys of a Haul server.
    pub(crate) const HAUL: Self = Self { access: "HAUL_ACCESS_KEY", secret: "HAUL_SECRET_KEY" };
    /// The keys that clients of AWS use.
    pub(crate) const AWS: Self =
        Self { access: "AWS_ACCESS_KEY_ID", secret: "AWS_SECRET_ACCESS_KEY" };
}

const ACCESS: &str = Variables::HAUL.access;
const SECRET: &str = Variables::HAUL.secret;

/// Loads the keys of a Haul server from `file`, or from the environment if `file` is `None`.
/// Returns `None` if neither environment variable is set.
pub(crate) fn load(file: Option<&Path>) -> Result<Option<Credentials>> {
    load_from(file, Variables::HAUL)
}

/// Loads keys as [`load`], from these environment variables.
pub(crate) fn load_from(file: Option<&Path>, names: Variables) -> Result<Option<Credentials>> {
    let loaded = match file {
        Some(file) => from_file(file).map(Some),
        None => from_pair(names, variable(names.access)?, variable(names.secret)?),
    };
    loaded.map_err(|failure| failure.exit(Exit::NotStarted))
}

/// Returns the value of an environment variable. An empty variable counts as unset, as in many
/// programs.
fn variable(name: &str) -> Result<Option<String>> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(Failure::new(format!("cannot use {name}")).because(error)),
    }
}

fn from_pair(
    names: Variables,
    access: Option<String>,
    secret: Option<String>,
) -> Result<Option<Credentials>> {
    let half = |set: &str, unset: &str| {
        Err(Failure::new(format!("{set} is set but {unset} is not"))
            .advise("set both, or neither for requests without signatures"))
    };
    match (access, secret) {
        (Some(access_key), Some(secret_key)) => Ok(Some(Credentials { access_key, secret_key })),
        (Some(_), None) => half(names.access, names.secret),
        (None, Some(_)) => half(names.secret, names.access),
        (None, None) => Ok(None),
    }
}

fn from_file(path: &Path) -> Result<Credentials> {
    let cannot = || format!("cannot read the credentials in {}", path.display());
    let text = file::read(path, &cannot)?;
    parse(&text).map_err(|reason| Failure::new(format!("{}: {reason}", cannot())).advise(HOW))
}

const HOW: &str = "write a file of two lines: the access key, then the secret key";

/// Parses two lines with the two keys, or two lines of the form `name = value`. The first line
/// distinguishes the forms, because access keys contain no `=`.
fn parse(text: &str) -> std::result::Result<Credentials, String> {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let [first, second] = lines[..] else {
        return Err(format!("expected two lines, found {}", lines.len()));
    };
    if !first.contains('=') {
        return Ok(Credentials { access_key: first.to_owned(), secret_key: second.to_owned() });
    }
    let (mut access, mut secret) = (None, None);
    for line in [first, second] {
        let Some((name, value)) = line.split_once('=') else {
            return Err("only one of its lines is \"name = value\"".to_owned());
        };
        let value = Some(value.trim().to_owned());
        match name.trim() {
            "access_key" | ACCESS | "aws_access_key_id" => access = value,
            "secret_key" | SECRET | "aws_secret_access_key" => secret = value,
            other => return Err(format!("\"{other}\" is neither access_key nor secret_key")),
        }
    }
    match (access, secret) {
        (Some(access_key), Some(secret_key)) => Ok(Credentials { access_key, secret_key }),
        _ => Err("it has the same key twice".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn both_forms_of_the_file_are_read() {
        for text in [
            "me\nse=cret\n",
            "# keys\n\n  me \n\tse=cret",
            "access_key = me\nsecret_key = se=cret\n",
            "HAUL_SECRET_KEY=se=cret\r\nHAUL_ACCESS_KEY=me\r\n",
        ] {
            let credentials = parse(text).unwrap();
            assert_eq!(credentials.access_key, "me", "{text:?}");
            assert_eq!(credentials.secret_key, "se=cret", "{text:?}");
        }
    }

    #[test]
    fn files_without_two_keys_are_refused() {
        for text in
            ["", "me", "a\nb\nc", "access_key=a\nb", "access_key=a\naccess_key=b", "x=a\ny=b"]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn incomplete_key_pair_is_refused() {
        let some = || Some("x".to_owned());
        assert!(from_pair(Variables::HAUL, None, None).unwrap().is_none());
        assert!(from_pair(Variables::HAUL, some(), some()).unwrap().is_some());
        for (access, secret) in [(some(), None), (None, some())] {
            let text = from_pair(Variables::HAUL, access, secret).unwrap_err().text().unwrap();
            assert!(text.contains(ACCESS) && text.contains(SECRET), "{text}");
        }
    }

    #[test]
    fn world_readable_file_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, "me\nsecret\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(from_file(file.path()).is_ok());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(from_file(file.path()).unwrap_err().text().unwrap().contains("chmod"));
    }

    #[test]
    fn directory_is_refused_without_chmod_advice() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        let text = from_file(dir.path()).unwrap_err().text().unwrap();
        assert!(text.contains("a directory") && !text.contains("chmod"), "{text}");
    }
}
