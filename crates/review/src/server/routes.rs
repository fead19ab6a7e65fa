//! What can be asked.

use super::answer::{Answer, answer, json, refuse};
use super::guard::{Entry, Guard, pair};
use super::shown::{Evidence, Shown, ShownGroup};
use crate::content::Content;
use crate::decision::Decision;
use crate::session::{Session, Wish};
use crate::statistics::statistics;
use crate::{Error, Result};
use askama::Template;
use hyper::header::{self, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rows of a group that are shown at once.
const OF_GROUP: usize = 20;
/// Rows that are sent ahead, so that their pictures are there.
const AHEAD: usize = 4;
/// Groups, and classes that fit a search, of which one is told.
const LISTED: usize = 100;

/// The files of the page, and their kinds.
const FILES: [(&str, &str, &str); 3] = [
    ("/review.css", "text/css; charset=utf-8", include_str!("../../page/review.css")),
    ("/review.js", "text/javascript; charset=utf-8", include_str!("../../page/review.js")),
    ("/icon.svg", "image/svg+xml", include_str!("../../page/icon.svg")),
];

/// The page itself; rows come later.
#[derive(Template)]
#[template(path = "review.html")]
struct Page<'a> {
    title: &'a str,
    reviewer: &'a str,
    is_blind: bool,
}

/// A review as it is served.
#[derive(Debug)]
pub struct App {
    pub(super) guard: Guard,
    session: Mutex<Session>,
    content: Content,
    title: String,
    reviewer: String,
    /// Whether rows without a flag are mixed in: then evidence is shown when it is asked for.
    is_blind: bool,
}

/// Rows to be decided, as they are posted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Posted {
    rows: Vec<(u64, Decision)>,
    milliseconds: u64,
    informed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    text: String,
}

impl App {
    /// For a listener at this port.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new(
        session: Session,
        content: Content,
        title: &str,
        reviewer: &str,
        port: u16,
    ) -> std::io::Result<Self> {
        let is_blind = session.samples.list.iter().any(|sample| !sample.flagged);
        let guard = Guard::new(port)?;
        let (title, reviewer) = (title.to_owned(), reviewer.to_owned());
        Ok(Self { guard, session: Mutex::new(session), content, title, reviewer, is_blind })
    }

    /// The address to print, with its token.
    #[must_use]
    pub fn address(&self) -> String {
        self.guard.address()
    }

    /// An address that works once, for the command line of a browser.
    #[must_use]
    pub fn address_once(&self) -> Option<String> {
        self.guard.address_once()
    }

    /// Answers a request that did not come over a line, and gives the status: for tests and fuzzing. A line with method and address, lines of
    /// headers with those of `known` before them, an empty line, and a body; none if these are no request.
    #[doc(hidden)]
    pub fn ask(&self, known: &str, request: &[u8]) -> Option<u16> {
        let end = request.windows(2).position(|two| two == b"\n\n")?;
        let (head, body) = (std::str::from_utf8(&request[..end]).ok()?, &request[end + 2..]);
        let (first, rest) = head.split_once('\n').unwrap_or((head, ""));
        let (method, address) = first.split_once(' ')?;
        let (method, address) = (method.parse::<Method>().ok()?, address.parse::<Uri>().ok()?);
        let mut headers = header::HeaderMap::new();
        for line in known.lines().chain(rest.lines()) {
            let (name, value) = line.split_once(": ")?;
            headers.append(name.parse::<header::HeaderName>().ok()?, HeaderValue::from_str(value).ok()?);
        }
        Some(match self.guard.check(&method, &address, &headers) {
            Ok(entry) => self.answer(entry, &method, &address, body).status().as_u16(),
            Err((status, _)) => status.as_u16(),
        })
    }

    pub(super) fn answer(&self, entry: Entry, method: &Method, address: &Uri, body: &[u8]) -> Answer {
        let path = address.path();
        if entry == Entry::New {
            if (method, path) != (&Method::GET, "/") {
                return refuse(StatusCode::UNAUTHORIZED, "Open the printed address first.");
            }
            let mut moved = answer(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
            moved.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/"));
            if let Ok(cookie) = HeaderValue::from_str(&self.guard.cookie()) {
                moved.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            return moved;
        }
        if method == Method::GET
            && let Some((_, kind, text)) = FILES.iter().find(|(name, ..)| *name == path)
        {
            return answer(StatusCode::OK, kind, *text);
        }
        match (method.as_str(), path) {
            ("GET", "/") => self.page(),
            ("GET", path) if path.starts_with("/picture/") => self.picture(&path["/picture/".len()..]),
            _ => match self.value(method, address, body) {
                Some(Ok(value)) => json(StatusCode::OK, &value),
                Some(Err(Error::Refused(words))) => refuse(StatusCode::BAD_REQUEST, &words),
                Some(Err(error)) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
                None => refuse(StatusCode::NOT_FOUND, "There is nothing at this address."),
            },
        }
    }

    fn value(&self, method: &Method, address: &Uri, body: &[u8]) -> Option<Result<Value>> {
        Some(match (method.as_str(), address.path()) {
            ("GET", "/api/next") => self.current().map(|mut session| self.next(&mut session)),
            ("GET", "/api/evidence") => self.evidence(address),
            ("GET", "/api/groups") => self.groups(),
            ("GET", "/api/group") => self.group(address),
            ("GET", "/api/figures") => {
                self.current().map(|session| json!(statistics(&session, &self.reviewer)))
            }
            ("POST", "/api/classes") => self.classes(body),
            ("POST", "/api/decide") => self.decide(body),
            ("POST", "/api/undo") => self.undo(),
            _ => return None,
        })
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        // A decision is applied only once it is on the disk, so a panic elsewhere leaves the session sound.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// With what other processes have recorded.
    fn current(&self) -> Result<MutexGuard<'_, Session>> {
        let mut session = self.session();
        session.refresh()?;
        Ok(session)
    }

    fn page(&self) -> Answer {
        let page = Page { title: &self.title, reviewer: &self.reviewer, is_blind: self.is_blind };
        match page.render() {
            Ok(text) => answer(StatusCode::OK, "text/html; charset=utf-8", text),
            Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    /// Of rows to look at and their neighbours only.
    fn picture(&self, row: &str) -> Answer {
        let is_shown = |row: &u64| {
            let session = self.session();
            session.samples.place(*row).is_some() || session.samples.near.contains(row)
        };
        let row = row.parse().ok().filter(is_shown);
        match row.and_then(|row| self.content.picture(row)) {
            Some(picture) => answer(StatusCode::OK, picture.kind, picture.bytes),
            None => refuse(
                StatusCode::NOT_FOUND,
                "There is no such picture among those to look at, or it cannot be read.",
            ),
        }
    }

    /// The next rows, and how far the reviewer is.
    fn next(&self, session: &mut Session) -> Value {
        let (reviewer, has_evidence) = (self.reviewer.as_str(), !self.is_blind);
        let places: Vec<u64> = session.next(reviewer, AHEAD).iter().map(|sample| sample.row).collect();
        let shown = places.iter().filter_map(|row| session.samples.place(*row));
        let samples = &session.samples;
        let next: Vec<Shown> = shown
            .map(|place| Shown::of(samples, &samples.list[place], &self.content, has_evidence))
            .collect();
        let decided = session
            .decisions
            .by(reviewer)
            .map_or(0, |all| all.all().filter(|(row, _)| samples.place(*row).is_some()).count());
        json!({ "next": next, "decided": decided, "rows": samples.list.len() })
    }

    fn decide(&self, body: &[u8]) -> Result<Value> {
        let Posted { rows, milliseconds, informed } = parse(body)?;
        let mut session = self.session();
        let informed = informed || !self.is_blind;
        session.decide(&self.reviewer, &Wish { rows, milliseconds, informed })?;
        Ok(self.next(&mut session))
    }

    fn undo(&self) -> Result<Value> {
        let mut session = self.session();
        let rows = session.undo(&self.reviewer)?;
        let first = rows.first().and_then(|row| session.samples.place(*row));
        let samples = &session.samples;
        let first =
            first.map(|place| Shown::of(samples, &samples.list[place], &self.content, !self.is_blind));
        let mut value = self.next(&mut session);
        value["undone"] = json!(rows.len());
        value["first"] = json!(first);
        Ok(value)
    }

    fn evidence(&self, address: &Uri) -> Result<Value> {
        let (session, row) = (self.session(), number(address, "row")?);
        let place = session.samples.place(row);
        let place =
            place.ok_or_else(|| Error::Refused(format!("row {row} is not among those to look at")))?;
        let samples = &session.samples;
        Ok(json!(Evidence::of(samples, &samples.list[place], &self.content)))
    }

    fn groups(&self) -> Result<Value> {
        let session = self.current()?;
        let groups = session.groups(&self.reviewer);
        let shown = groups.iter().take(LISTED).map(|group| ShownGroup::of(&session, *group));
        Ok(json!({ "groups": shown.collect::<Vec<_>>(), "all": groups.len() }))
    }

    fn group(&self, address: &Uri) -> Result<Value> {
        let session = self.session();
        let [given, suggested, from] = ["given", "suggested", "from"].map(|name| number(address, name));
        let class =
            |number: u64| u32::try_from(number).map_err(|_| Error::Refused("there is no such class".into()));
        let (given, suggested, from) = (class(given?)?, class(suggested?)?, from? as usize);
        let found = session.of_group(&self.reviewer, given, suggested, from, OF_GROUP);
        let shown = found.into_iter().map(|sample| Shown::of(&session.samples, sample, &self.content, true));
        Ok(json!({ "rows": shown.collect::<Vec<_>>() }))
    }

    /// Classes whose names hold the text, those that begin with it first.
    fn classes(&self, body: &[u8]) -> Result<Value> {
        let text = parse::<Search>(body)?.text.to_lowercase();
        let session = self.session();
        let fits = |name: &&String| name.to_lowercase().contains(&text);
        let mut found: Vec<&String> = session.samples.classes.iter().filter(fits).collect();
        found.sort_by_cached_key(|name| (!name.to_lowercase().starts_with(&text), name.chars().count()));
        found.truncate(LISTED);
        Ok(json!({ "classes": found }))
    }
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| Error::Refused(format!("the request cannot be read: {error}")))
}

fn number(address: &Uri, name: &str) -> Result<u64> {
    let number = pair(address, name).and_then(|text| text.parse().ok());
    number.ok_or_else(|| Error::Refused(format!("`{name}` must be a whole number")))
}
