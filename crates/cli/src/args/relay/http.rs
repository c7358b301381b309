//! Defines the arguments of `haul relay --http`.

use std::num::NonZero;
use std::time::Duration;

use clap::Args;
use haul_tcp_relay::{HeadLimits, HttpOptions, Rate};

use crate::args::files::with_burst;
use crate::args::values::{parse_positive, parse_time_from};
use crate::units::{parse_bytes, parse_time};

#[derive(Debug, Args)]
pub(crate) struct HttpArgs {
    /// Relay HTTP/1.1 requests instead of raw connections
    ///
    /// Message heads are parsed strictly and written again; ambiguous heads are rejected. Targets
    /// receive the client's address in Forwarded and X-Forwarded-For.
    #[arg(long, help_heading = "HTTP")]
    pub(crate) http: bool,
    /// Name of the relay in the Via header
    #[arg(long, value_name = "NAME", default_value = "haul", help_heading = "HTTP")]
    #[arg(requires = "http")]
    pub(crate) via: String,
    /// Keep Forwarded and X-Forwarded-* headers sent by clients, instead of dropping them
    ///
    /// Safe only if all clients are trusted proxies: any client can forge these headers.
    #[arg(long, help_heading = "HTTP", requires = "http")]
    pub(crate) trust_forwarded: bool,
    /// Reject upgrades to WebSocket
    #[arg(long, help_heading = "HTTP", requires = "http")]
    pub(crate) no_websockets: bool,
    /// Maximum size of a request body; above it, 413 is returned [default: unlimited]
    #[arg(long, value_name = "SIZE", help_heading = "HTTP", requires = "http")]
    #[arg(value_parser = parse_bytes)]
    pub(crate) max_body: Option<u64>,
    /// Maximum size of the head of a request or response
    #[arg(long, value_name = "SIZE", default_value = "16KiB", help_heading = "HTTP")]
    #[arg(hide_short_help = true, requires = "http", value_parser = parse_bytes)]
    pub(crate) max_head: u64,
    /// Maximum rate of requests of one client, such as 100/s or 30/min [default: unlimited]
    ///
    /// A client is an IPv4 address or an IPv6 /64 prefix. A request above the rate is answered with
    /// 429.
    #[arg(long, value_name = "RATE", help_heading = "HTTP", requires = "http")]
    pub(crate) rate_per_client: Option<Rate>,
    /// Number of requests a client may send at once after a pause [default: those of a second]
    #[arg(long, value_name = "N", help_heading = "HTTP")]
    #[arg(requires = "rate_per_client", hide_short_help = true)]
    #[arg(value_parser = parse_positive::<NonZero<u32>>)]
    pub(crate) burst_per_client: Option<NonZero<u32>>,
    /// Maximum number of idle upstream connections per thread and target; 0 disables reuse
    ///
    /// Only idempotent requests are sent over reused connections. A client keeps its upstream
    /// connection until the client was idle for a second.
    #[arg(long, value_name = "COUNT", default_value = "32", help_heading = "HTTP")]
    #[arg(hide_short_help = true, requires = "http")]
    pub(crate) spare_connections: usize,
    /// Maximum time until a target begins its response; after it, 504 is returned
    #[arg(long, value_name = "TIME", default_value = "1min", help_heading = "HTTP")]
    #[arg(requires = "http", value_parser = parse_time_from("1ms"))]
    pub(crate) response_time: Duration,
    /// Maximum time without progress of a body; after it, the exchange is aborted
    #[arg(long, value_name = "TIME", default_value = "1min", help_heading = "HTTP")]
    #[arg(hide_short_help = true, requires = "http", value_parser = parse_time_from("1ms"))]
    pub(crate) body_time: Duration,
    /// Time from which on a request is listed as slow in the console (--admin); 0s disables the list
    ///
    /// The time is that from the head of the request to the head of the response.
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "HTTP")]
    #[arg(hide_short_help = true, requires = "http", value_parser = parse_time)]
    pub(crate) slow_request: Duration,
}

impl HttpArgs {
    /// Returns the options of the relay, or `None` without `--http`.
    ///
    /// `idle_time` is that of `--idle-time`, if it is given.
    pub(crate) fn options(&self, idle_time: Option<Option<Duration>>) -> Option<HttpOptions> {
        let defaults = HttpOptions::default();
        let head_bytes_max = usize::try_from(self.max_head).unwrap_or(usize::MAX);
        self.http.then(|| HttpOptions {
            head_limits: HeadLimits { head_bytes_max, ..HeadLimits::default() },
            request_body_bytes_max: self.max_body,
            via: self.via.clone(),
            trust_forwarded: self.trust_forwarded,
            peer_rate: self.rate_per_client.map(|rate| with_burst(rate, self.burst_per_client)),
            upgrade: !self.no_websockets,
            idle_time_max: idle_time.unwrap_or(defaults.idle_time_max),
            response_time_max: self.response_time,
            body_time_max: self.body_time,
            slow_request_time: Some(self.slow_request).filter(|time| !time.is_zero()),
            idle_connections_max: self.spare_connections,
            ..defaults
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
    fn http_defaults_are_those_of_the_library() {
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
