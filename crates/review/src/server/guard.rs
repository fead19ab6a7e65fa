//! Who may ask: whoever has the token, from a page of this server.
//!
//! Any page in a browser can send requests to this machine, under any name that leads here. So the name that was asked for (`Host`) must be this
//! machine's own, requests that change something must come from a page of ours (`Origin`) and be JSON, which other pages cannot send unasked,
//! and everything needs a token that is drawn at every start.

use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, StatusCode, Uri};
use std::sync::Mutex;
use subtle::ConstantTimeEq;

/// What a request is checked against.
#[derive(Debug)]
pub struct Guard {
    token: String,
    /// Lets one browser in, once: a command line that opens it may be seen by others on the machine.
    ticket: Mutex<Option<String>>,
    port: u16,
}

/// Why a request is not let in, in words.
pub type Refusal = (StatusCode, &'static str);

/// How a request came in.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// With the cookie.
    Known,
    /// With the token or the ticket in the address: it gets the cookie, and the address without them.
    New,
}

impl Guard {
    /// With a new token.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(port: u16) -> std::io::Result<Self> {
        Ok(Self { token: random()?, ticket: Mutex::new(Some(random()?)), port })
    }

    /// The address to print.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// An address that works once.
    #[must_use]
    pub fn address_once(&self) -> Option<String> {
        let ticket = self.ticket.lock().ok()?.clone()?;
        Some(format!("http://127.0.0.1:{}/?ticket={ticket}", self.port))
    }

    /// The cookie for a browser. Cookies do not tell ports apart, so its name does.
    #[must_use]
    pub fn cookie(&self) -> String {
        format!("negscale-{}={}; Path=/; HttpOnly; SameSite=Strict", self.port, self.token)
    }

    /// Lets a request in, or says why not.
    pub fn check(&self, method: &Method, address: &Uri, headers: &HeaderMap) -> Result<Entry, Refusal> {
        let names = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let asked = only(headers, &header::HOST);
        if !asked.is_some_and(|host| names.iter().any(|name| name == host)) {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                "This server answers to 127.0.0.1 and localhost only: open the address that `negscale review` printed.",
            ));
        }
        // Programs that are no browsers send none.
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, &header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
            if !origin.is_some_and(|origin| names.iter().any(|name| name == origin)) {
                return Err((StatusCode::FORBIDDEN, "The request comes from another page."));
            }
        }
        if method == Method::POST && only(headers, &header::CONTENT_TYPE) != Some("application/json") {
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "What is posted must be JSON."));
        }
        // Before the cookie: also who has it shall not keep the token in the address.
        let query = |name: &str| pair(address, name);
        if query("token").is_some_and(|token| is_same(token, &self.token)) {
            return Ok(Entry::New);
        }
        let cookie = format!("negscale-{}", self.port);
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        if pairs.any(|(name, value)| name == cookie && is_same(value, &self.token)) {
            return Ok(Entry::Known);
        }
        if let (Some(shown), Ok(mut ticket)) = (query("ticket"), self.ticket.lock())
            && ticket.take_if(|ticket| is_same(shown, ticket)).is_some()
        {
            return Ok(Entry::New);
        }
        Err((
            StatusCode::UNAUTHORIZED,
            "Open the address that `negscale review` printed when it was started last: it holds a token, which this request lacks.",
        ))
    }
}

/// A value of the query.
pub fn pair<'a>(address: &'a Uri, name: &str) -> Option<&'a str> {
    address
        .query()?
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    all.next().is_none().then_some(first)?.to_str().ok()
}

fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// 256 bits in hexadecimal.
fn random() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
