//! The part of the table for `haul relay --http`.

use std::time::Duration;

use clap::Args;
use haul_tcp_relay::{HeadLimits, HttpOptions};

use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
pub(crate) struct HttpArgs {
    /// Read HTTP/1.1: heads strictly, and written anew; bodies pass through
    ///
    /// What cannot be understood in one way only is refused. Targets are told who asks by Forwarded
    /// and X-Forwarded-For.
    #[arg(long, help_heading = "HTTP")]
    pub(crate) http: bool,
    /// The relay's name in Via
    #[arg(long, value_name = "NAME", default_value = "haul", help_heading = "HTTP")]
    #[arg(requires = "http")]
    pub(crate) via: String,
    /// Pass on what clients say in Forwarded and X-Forwarded-*; without this it is dropped
    ///
    /// Only where all clients are proxies of your own: anybody can write it.
    #[arg(long, help_heading = "HTTP", requires = "http")]
    pub(crate) trust_forwarded: bool,
    /// Let no connection become a websocket
    #[arg(long, help_heading = "HTTP", requires = "http")]
    pub(crate) no_websockets: bool,
    /// The longest body of a request [default: any]
    #[arg(long, value_name = "SIZE", help_heading = "HTTP", requires = "http")]
    #[arg(value_parser = parse_bytes)]
    pub(crate) max_body: Option<u64>,
    /// The longest head of a request or a response
    #[arg(long, value_name = "SIZE", default_value = "16KiB", help_heading = "HTTP")]
    #[arg(hide_short_help = true, requires = "http", value_parser = parse_bytes)]
    pub(crate) max_head: u64,
    /// How long the head of a request may take
    #[arg(long, value_name = "TIME", default_value = "15s", help_heading = "HTTP")]
    #[arg(hide_short_help = true, requires = "http", value_parser = parse_time)]
    pub(crate) head_time: Duration,
    /// How long a client may say nothing between requests
    #[arg(long, value_name = "TIME", default_value = "1min", help_heading = "HTTP")]
    #[arg(hide_short_help = true, requires = "http", value_parser = parse_time)]
    pub(crate) keep_alive_time: Duration,
    /// How many connections to each target a thread keeps for whichever client asks next; 0: none
    ///
    /// Only requests that may be sent twice go over them. A client keeps the connection it uses, and
    /// leaves it when it has asked nothing for a second.
    #[arg(long, value_name = "COUNT", default_value = "32", help_heading = "HTTP")]
    #[arg(hide_short_help = true, requires = "http")]
    pub(crate) spare_connections: usize,
    /// How long a target may take to answer
    #[arg(long, value_name = "TIME", default_value = "1min", help_heading = "HTTP")]
    #[arg(requires = "http", value_parser = parse_time)]
    pub(crate) response_time: Duration,
    /// How long a body may stand still
    #[arg(long, value_name = "TIME", default_value = "1min", help_heading = "HTTP")]
    #[arg(hide_short_help = true, requires = "http", value_parser = parse_time)]
    pub(crate) body_time: Duration,
}

impl HttpArgs {
    /// The options of the library; none where HTTP is not to be read.
    pub(crate) fn options(&self) -> Option<HttpOptions> {
        let head_bytes_max = usize::try_from(self.max_head).unwrap_or(usize::MAX);
        self.http.then(|| HttpOptions {
            head_limits: HeadLimits { head_bytes_max, ..HeadLimits::default() },
            request_body_bytes_max: self.max_body,
            via: self.via.clone(),
            trust_forwarded: self.trust_forwarded,
            upgrade: !self.no_websockets,
            head_time_max: self.head_time,
            keep_alive_time_max: self.keep_alive_time,
            response_time_max: self.response_time,
            body_time_max: self.body_time,
            spares_max: self.spare_connections,
            ..HttpOptions::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn parsed(arguments: &[&str]) -> Result<Option<HttpOptions>, String> {
        let words = ["haul", "relay", "--listen", "127.0.0.1:0", "--to", "unix:/a"];
        let cli = Cli::try_parse_from(words.iter().chain(arguments)).map_err(|e| e.to_string())?;
        let Command::Relay(args) = cli.command else { panic!("not relay") };
        Ok(args.config().http)
    }

    #[test]
    fn http_is_read_where_it_is_asked_for_and_as_the_library_does() {
        assert_eq!(parsed(&[]), Ok(None));
        assert_eq!(parsed(&["--http"]), Ok(Some(HttpOptions::default())));
    }

    #[test]
    fn options_reach_the_library() {
        let arguments =
            ["--http", "--via=edge", "--trust-forwarded", "--no-websockets", "--max-body=1MiB"];
        let options = parsed(&arguments).unwrap().unwrap();
        assert_eq!((options.via.as_str(), options.request_body_bytes_max), ("edge", Some(1 << 20)));
        assert!(options.trust_forwarded && !options.upgrade);
        assert!(parsed(&["--trust-forwarded"]).unwrap_err().contains("--http"));
    }
}
