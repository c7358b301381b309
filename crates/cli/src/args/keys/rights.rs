//! Parses rights on the command line.

use haul_s3_server::{Rights, Scope};

/// The rights to the server itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ServerRights {
    pub(crate) create_buckets: bool,
    pub(crate) metrics: bool,
}

/// Rights without the objects to which they apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RightsArg {
    Objects(Rights),
    Server(ServerRights),
}

/// Rights with the objects to which they apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Allowed {
    Objects(Scope, Rights),
    Server(ServerRights),
}

impl RightsArg {
    /// Adds the scope; returns an error message if it is missing or has no meaning.
    pub(crate) fn to(self, scope: Option<&str>) -> Result<Allowed, String> {
        match (self, scope) {
            (Self::Objects(rights), Some(scope)) => Ok(Allowed::Objects(scope.parse()?, rights)),
            (Self::Server(rights), None) => Ok(Allowed::Server(rights)),
            (Self::Objects(rights), None) => {
                Err(format!("{rights} needs a bucket, such as photos, photos/2026/ or \"*\""))
            }
            (Self::Server(_), Some(scope)) => Err(format!(
                "create-buckets and metrics are rights without a bucket, not to {scope}"
            )),
        }
    }
}

/// Parses a list of rights.
pub(crate) fn parse_rights(text: &str) -> Result<RightsArg, String> {
    let mut server = ServerRights::default();
    for name in text.split(',') {
        match name {
            "create-buckets" => server.create_buckets = true,
            "metrics" => server.metrics = true,
            _ if server == ServerRights::default() => {
                return text.parse().map(RightsArg::Objects);
            }
            _ => return Err(format!("\"{name}\" is a right to a bucket: give it separately")),
        }
    }
    Ok(RightsArg::Server(server))
}

/// Parses rights in the form `RIGHTS=BUCKET[/PREFIX]`, or rights without a bucket.
pub(crate) fn parse_allow(text: &str) -> Result<Allowed, String> {
    match text.split_once('=') {
        Some((rights, scope)) => parse_rights(rights)?.to(Some(scope)),
        None => parse_rights(text)?.to(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_parsed_with_and_without_buckets() {
        let objects = |scope: &str, rights: &str| {
            Ok(Allowed::Objects(scope.parse().unwrap(), rights.parse().unwrap()))
        };
        let server =
            |create_buckets, metrics| Ok(Allowed::Server(ServerRights { create_buckets, metrics }));
        assert_eq!(parse_allow("read,list=photos/a=b"), objects("photos/a=b", "read,list"));
        assert_eq!(parse_allow("admin=*"), objects("*", "admin"));
        assert_eq!(parse_allow("metrics"), server(false, true));
        assert_eq!(parse_allow("create-buckets,metrics"), server(true, true));
        for (text, why) in [
            ("read", "read needs a bucket"),
            ("metrics=photos", "without a bucket"),
            ("metrics,read", "\"read\" is a right to a bucket"),
            ("read,metrics=photos", "\"metrics\" is no right"),
            ("reed=photos", "\"reed\" is no right"),
            ("read=Photos", "\"Photos\" cannot be the name of a bucket"),
            ("", "\"\" is no right"),
        ] {
            let refused = parse_allow(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
