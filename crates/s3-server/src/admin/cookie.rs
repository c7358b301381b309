//! The console's cookies.

use http::Response;
use http::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};

use crate::config::Addresses;

/// The name and the attributes of a cookie that scripts and pages of other sites cannot use.
pub(super) struct Cookie {
    name: String,
    attributes: String,
}

impl Cookie {
    /// Returns a cookie for the paths below `path` at the admin address.
    pub(super) fn new(name: &str, path: &str, addresses: &Addresses) -> Self {
        // Browsers do not separate cookies by port: the name does, for the servers of one machine.
        let name = format!("{name}-{}", addresses.admin.port());
        let secure = if addresses.admin_has_tls() { "; Secure" } else { "" };
        Self { name, attributes: format!("Path={path}; HttpOnly; SameSite=Strict{secure}") }
    }

    /// Returns the `Set-Cookie` value for a token.
    pub(super) fn set(&self, token: &str) -> String {
        format!("{}={token}; {}", self.name, self.attributes)
    }

    /// Returns the `Set-Cookie` value that removes the cookie.
    pub(super) fn remove(&self) -> String {
        format!("{}; Max-Age=0", self.set(""))
    }

    /// Returns the token that a request has.
    pub(super) fn token<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let fields = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut cookies = fields.flat_map(|field| field.split(';'));
        cookies.find_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == self.name).then_some(value)
        })
    }
}

/// Adds a `Set-Cookie` value to a response.
pub(super) fn with_cookie<T>(mut response: Response<T>, cookie: &str) -> Response<T> {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
