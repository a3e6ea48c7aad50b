//! Responses: from a [`Response`] to bytes.

use std::borrow::Cow;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use super::request::{Method, Request};

/// The status codes that this server uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok = 200,
    BadRequest = 400,
    NotFound = 404,
    MethodNotAllowed = 405,
    RequestTimeout = 408,
    LengthRequired = 411,
    ContentTooLarge = 413,
    UriTooLong = 414,
    ExpectationFailed = 417,
    HeadersTooLarge = 431,
    NotImplemented = 501,
    VersionNotSupported = 505,
}

impl Status {
    fn reason(self) -> &'static str {
        match self {
            Status::Ok => "OK",
            Status::BadRequest => "Bad Request",
            Status::NotFound => "Not Found",
            Status::MethodNotAllowed => "Method Not Allowed",
            Status::RequestTimeout => "Request Timeout",
            Status::LengthRequired => "Length Required",
            Status::ContentTooLarge => "Content Too Large",
            Status::UriTooLong => "URI Too Long",
            Status::ExpectationFailed => "Expectation Failed",
            Status::HeadersTooLarge => "Request Header Fields Too Large",
            Status::NotImplemented => "Not Implemented",
            Status::VersionNotSupported => "HTTP Version Not Supported",
        }
    }
}

/// An error response, and the reason that its body gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) Status, pub(crate) &'static str);

/// What goes back to the client.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: Status,
    pub(crate) body: Cow<'static, [u8]>,
    /// The methods that the path has, for 405.
    pub(crate) allow: Option<&'static str>,
}

impl Response {
    pub(crate) fn ok(body: impl Into<Cow<'static, [u8]>>) -> Response {
        Response {
            status: Status::Ok,
            body: body.into(),
            allow: None,
        }
    }

    /// Appends the response to `out`. Without a request (it could not be read) the connection closes.
    pub(crate) fn write(&self, request: Option<&Request>, close: bool, out: &mut Vec<u8>) {
        let _ = write!(
            out,
            "HTTP/1.1 {} {}\r\nServer: gmp\r\nDate: {}\r\nContent-Length: {}\r\n",
            self.status as u16,
            self.status.reason(),
            date(SystemTime::now()),
            self.body.len(),
        );
        if let Some(allow) = self.allow {
            let _ = write!(out, "Allow: {allow}\r\n");
        }
        if !self.body.is_empty() {
            out.extend_from_slice(b"Content-Type: text/plain; charset=utf-8\r\n");
        }
        if close {
            out.extend_from_slice(b"Connection: close\r\n");
        } else if request.is_some_and(|request| !request.is_1_1) {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if request.is_none_or(|request| request.method != Method::Head) {
            out.extend_from_slice(&self.body);
        }
    }
}

impl From<Refusal> for Response {
    fn from(Refusal(status, why): Refusal) -> Response {
        let body = format!("{} {}: {why}\n", status as u16, status.reason());
        Response {
            status,
            body: body.into_bytes().into(),
            allow: None,
        }
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
pub(crate) fn date(now: SystemTime) -> String {
    let seconds = now
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that start in March, counted from the year 0: then a leap day is the last day of its year.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year + u64::from(month >= 10);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    let months = [
        "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb",
    ];
    format!(
        "{weekday}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        months[month as usize],
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}
