//! Reads the targets of bucket notifications from a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "nats")]
use haul_s3_server::NatsLogin;
use haul_s3_server::{EventService, EventTarget, EventTargets};
use toml::de::{DeTable, DeValue};

use crate::args::ServeArgs;
use crate::report::{Exit, Failure, OrFail, Result};
use crate::secrets::file;
use crate::units::parse_time;

/// The maximum length of the file, far more than it needs for many targets.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Returns the targets of a server; one without a file still serves clients that listen. `None` for
/// a read-only server, which makes no changes.
pub(crate) fn for_server(args: &ServeArgs) -> Result<Option<Arc<EventTargets>>> {
    let cannot = || "cannot send events".to_owned();
    let targets = match args.event_targets.as_deref() {
        Some(path) => load(path)?,
        None if args.replication.read_only => return Ok(None),
        None => EventTargets::new(Vec::new()).or_not_start(cannot)?,
    };
    Ok(Some(Arc::new(targets)))
}

/// Reads the targets. Paths in the file are relative to its directory.
fn load(path: &Path) -> Result<EventTargets> {
    let cannot = || format!("cannot use the event targets in {}", path.display());
    let text = file::read_up_to(path, FILE_BYTES_MAX, &cannot)?;
    let invalid = |why: String| Failure::new(format!("{}: {why}", cannot())).exit(Exit::NotStarted);
    let dir = path.parent().unwrap_or(Path::new("."));
    let targets = parse(&text, dir).map_err(invalid)?;
    EventTargets::new(targets).or_not_start(cannot)
}

fn parse(text: &str, dir: &Path) -> std::result::Result<Vec<EventTarget>, String> {
    let file = DeTable::parse(text).map_err(|error| error.to_string())?.into_inner();
    let mut found = Vec::new();
    for (kind, targets) in file {
        let (kind, DeValue::Table(targets)) = (kind.into_inner(), targets.into_inner()) else {
            return Err(no_target());
        };
        let kind = Kind::parse(&kind)?;
        for (name, options) in targets {
            let name = format!("{}.{}", kind.name(), name.get_ref());
            let DeValue::Table(options) = options.into_inner() else {
                return Err(format!("{name} is no table"));
            };
            found.push(read(kind, options, dir, &name).map_err(|why| format!("{name}: {why}"))?);
        }
    }
    if found.is_empty() { Err(no_target()) } else { Ok(found) }
}

fn no_target() -> String {
    "it consists of tables [webhook.NAME] and [nats.NAME]".to_owned()
}

/// A kind of target, the first part of its table's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Webhook,
    #[cfg(feature = "nats")]
    Nats,
}

impl Kind {
    fn parse(name: &str) -> std::result::Result<Self, String> {
        match name {
            "webhook" => Ok(Self::Webhook),
            #[cfg(feature = "nats")]
            "nats" => Ok(Self::Nats),
            #[cfg(not(feature = "nats"))]
            "nats" => {
                Err("this program was built without NATS: build it with --features nats".to_owned())
            }
            _ => Err(no_target()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            #[cfg(feature = "nats")]
            Self::Nats => "nats",
        }
    }

    /// Returns the options that only this kind has.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Webhook => &["token", "authorization", "secret"],
            #[cfg(feature = "nats")]
            Self::Nats => &["subject", "token", "user", "password"],
        }
    }

    /// Returns the service with these options.
    fn service(
        self,
        mut own: BTreeMap<&'static str, String>,
    ) -> std::result::Result<EventService, String> {
        match self {
            Self::Webhook => {
                let token = own.remove("token").map(|token| format!("Bearer {token}"));
                let authorization = match (token, own.remove("authorization")) {
                    (Some(_), Some(_)) => {
                        return Err("it has a token or an authorization".to_owned());
                    }
                    (token, authorization) => token.or(authorization),
                };
                Ok(EventService::Webhook { authorization, secret: own.remove("secret") })
            }
            #[cfg(feature = "nats")]
            Self::Nats => {
                let subject = own.remove("subject").ok_or("it has no subject")?;
                let part = |name: &str, own: &mut BTreeMap<_, _>| own.remove(name);
                let (user, password) = (part("user", &mut own), part("password", &mut own));
                let login = match (part("token", &mut own), user, password) {
                    (None, None, None) => None,
                    (Some(token), None, None) => Some(NatsLogin::Token(token)),
                    (None, Some(user), Some(password)) => Some(NatsLogin::Password(user, password)),
                    _ => return Err("it has a token, or a user and a password".to_owned()),
                };
                Ok(EventService::Nats { subject, login })
            }
        }
    }
}

fn read(
    kind: Kind,
    options: DeTable<'_>,
    dir: &Path,
    name: &str,
) -> std::result::Result<EventTarget, String> {
    let (_kind, name) = name.split_once('.').unwrap_or(("", name));
    let mut target = EventTarget::webhook(name, "");
    let (mut identity, mut own) = ([None, None], BTreeMap::new());
    for (option, value) in options {
        let (option, value) = (option.into_inner(), value.into_inner());
        let text = || match &value {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(format!("{option} is a string")),
        };
        let number = || match &value {
            DeValue::Integer(number) => {
                let number = u64::from_str_radix(number.as_str(), number.radix());
                number.map_err(|error| format!("{option}: {error}"))
            }
            _ => Err(format!("{option} is a number")),
        };
        let time = || -> std::result::Result<Duration, String> {
            parse_time(&text()?).map_err(|why| format!("{option}: {why}"))
        };
        let content = || {
            let path = dir.join(text()?);
            std::fs::read(&path).map_err(|error| format!("{option}: {}: {error}", path.display()))
        };
        if let Some(option) = kind.options().iter().find(|known| ***known == *option) {
            own.insert(*option, text()?);
            continue;
        }
        match &*option {
            "url" => target.url = text()?,
            "ca" => target.authorities = Some(content()?),
            "client-cert" => identity[0] = Some(content()?),
            "client-key" => identity[1] = Some(content()?),
            "records" => target.batch_max = usize::try_from(number()?).unwrap_or(usize::MAX),
            "timeout" => target.timeout = time()?,
            "queue-events" => target.queue_events_max = number()?,
            "queue-age" => target.queue_age_max = Some(time()?),
            _ => {
                return Err(format!(
                    "unknown option {option}: there are url, {}, ca, client-cert, client-key, \
                     records, timeout, queue-events and queue-age",
                    kind.options().join(", ")
                ));
            }
        }
    }
    target.client_identity = match identity {
        [Some(certificate), Some(key)] => Some([certificate, b"\n".to_vec(), key].concat()),
        [None, None] => None,
        _ => return Err("client-cert and client-key belong together".to_owned()),
    };
    if target.url.is_empty() {
        return Err("it has no url".to_owned());
    }
    target.service = kind.service(own)?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_have_their_options() {
        let text = "[webhook.orders]\nurl = \"https://example.com/hook\"\ntoken = \"t\"\n\
                    secret = \"s\"\nrecords = 1\ntimeout = \"2s\"\nqueue-events = 5\n\
                    queue-age = \"1d\"\n[webhook.audit]\nurl = \"http://localhost:1\"\n";
        let found = parse(text, Path::new(".")).unwrap();
        let names: Vec<_> = found.iter().map(|webhook| &*webhook.name).collect();
        assert_eq!(names.len(), 2);
        let orders = found.iter().find(|webhook| webhook.name == "orders").unwrap();
        assert!(matches!(&orders.service, EventService::Webhook { authorization, secret }
            if authorization.as_deref() == Some("Bearer t") && secret.as_deref() == Some("s")));
        assert_eq!((orders.batch_max, orders.timeout), (1, Duration::from_secs(2)));
        assert_eq!(orders.queue_events_max, 5);
        assert_eq!(orders.queue_age_max, Some(Duration::from_hours(24)));
    }

    #[test]
    fn malformed_files_are_refused_with_the_reason() {
        for (text, why) in [
            ("webhook = 1", "tables [webhook.NAME]"),
            ("[kafka.a]\nurl = \"a\"", "tables [webhook.NAME]"),
            #[cfg(not(feature = "nats"))]
            ("[nats.a]\nurl = \"a\"", "built without NATS"),
            #[cfg(feature = "nats")]
            ("[nats.a]\nurl = \"a\"", "nats.a: it has no subject"),
            #[cfg(feature = "nats")]
            ("[nats.a]\nurl = \"a\"\nsubject = \"b\"\nuser = \"c\"", "a user and a password"),
            ("[webhook.a]\nurl = \"a\"\nsubject = \"b\"", "unknown option subject"),
            ("[webhook.a]\nurl = \"a\"\ntoken = \"b\"\nauthorization = \"c\"", "token or an auth"),
            ("[webhook.a]\n", "webhook.a: it has no url"),
            ("[webhook]\na = 1", "webhook.a is no table"),
            ("[webhook.a]\nurl = 5", "url is a string"),
            ("[webhook.a]\nurl = \"a\"\nqueue-events = -1", "queue-events: invalid digit"),
            ("[webhook.a]\nurl = \"a\"\ntimeout = \"soon\"", "timeout: "),
            ("[webhook.a]\nurl = \"a\"\nuser = \"b\"", "unknown option user"),
            ("[webhook.a]\nurl = \"a\"\nclient-cert = \"/none\"", "client-cert: /none"),
            ("[webhook.a\n", "TOML parse error"),
        ] {
            let refused = parse(text, Path::new("/")).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
