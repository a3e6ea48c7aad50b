//! Requests: from bytes to a [`Request`]. Pure; no socket and no clock.

use super::response::{Refusal, Status};

/// The longest request target, in bytes.
const TARGET_MAX: usize = 8 * 1024;
/// The most header lines.
const HEADERS_MAX: usize = 100;
/// The longest line that starts a chunk, with its extensions.
const CHUNK_LINE_MAX: usize = 256;

const fn bad(why: &'static str) -> Refusal {
    Refusal(Status::BadRequest, why)
}

/// What the server tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    /// Of the standard, but nothing here has it.
    Other,
}

/// How the end of the body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Neither Content-Length nor Transfer-Encoding: there is no body.
    Absent,
    Length(u64),
    Chunked,
}

/// A parsed head.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    /// HTTP/1.1, as opposed to HTTP/1.0.
    pub(crate) is_1_1: bool,
    /// The client wants to use the connection again.
    pub(crate) keep_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub(crate) expects_continue: bool,
    pub(crate) framing: Framing,
}

impl Request {
    /// Parses a whole head, empty line included.
    pub(crate) fn parse(head: &[u8]) -> Result<Request, Refusal> {
        let mut lines = head
            .split(|&byte| byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let (method, target, is_1_1) = request_line(lines.next().unwrap_or_default())?;
        let mut headers = Headers::default();
        for line in lines.take_while(|line| !line.is_empty()) {
            headers.add(line)?;
        }
        headers.check(is_1_1)?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Request {
            method,
            path: path.into(),
            query: query.into(),
            is_1_1,
            keep_alive: !headers.close && (is_1_1 || headers.keep_alive),
            expects_continue: is_1_1 && headers.expects_continue,
            framing: match (headers.chunked, headers.length) {
                (true, _) => Framing::Chunked,
                (false, Some(length)) => Framing::Length(length),
                (false, None) => Framing::Absent,
            },
        })
    }

    /// The number that `name=` has in the query.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let mut pairs = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(key, _)| *key == name)?;
        digits(value.as_bytes())
    }
}

/// Where the head that `input` starts with ends, its empty line included. The first `seen` bytes were
/// searched before. A line may end with a bare line feed, as people type it into `nc`.
pub(crate) fn head_end(input: &[u8], seen: usize) -> Option<usize> {
    let from = seen.saturating_sub(3);
    let mut feeds = (from..input.len()).filter(|&at| input[at] == b'\n');
    feeds.find_map(|feed| match &input[feed + 1..] {
        [b'\n', ..] => Some(feed + 2),
        [b'\r', b'\n', ..] => Some(feed + 3),
        _ => None,
    })
}

/// Refuses a head of which only the beginning has come, when it is clear that it cannot become good.
pub(crate) fn check_beginning(input: &[u8], head_max: usize) -> Result<(), Refusal> {
    match input.first() {
        Some(&first) if !is_token_byte(first) => Err(bad("this is not HTTP")),
        _ if input.len() <= head_max => Ok(()),
        _ if input.contains(&b'\n') => Err(head_too_large()),
        _ => Err(Refusal(Status::UriTooLong, "the request line is too long")),
    }
}

pub(crate) const fn head_too_large() -> Refusal {
    Refusal(Status::HeadersTooLarge, "the head is too large")
}

pub(crate) const fn body_too_large() -> Refusal {
    Refusal(Status::ContentTooLarge, "the body is too large")
}

fn request_line(line: &[u8]) -> Result<(Method, &str, bool), Refusal> {
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(bad("the first line is not `METHOD TARGET HTTP/1.1`"));
    };
    let is_1_1 = match version {
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            if *major != b'1' {
                return Err(Refusal(
                    Status::VersionNotSupported,
                    "this server speaks HTTP/1.1",
                ));
            }
            *minor != b'0'
        }
        _ => return Err(bad("the first line does not end with a version")),
    };
    let method = match method {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"POST" => Method::Post,
        b"PUT" | b"DELETE" | b"CONNECT" | b"OPTIONS" | b"TRACE" | b"PATCH" => Method::Other,
        _ if is_token(method) => return Err(Refusal(Status::NotImplemented, "unknown method")),
        _ => return Err(bad("the method is not a word")),
    };
    if target.len() > TARGET_MAX {
        return Err(Refusal(Status::UriTooLong, "the target is too long"));
    }
    let target = std::str::from_utf8(target)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    let target = target.ok_or(bad("the target has bytes that do not belong there"))?;
    Ok((method, path_of(method, target)?, is_1_1))
}

/// The path and query of a target, which may be a whole URL.
fn path_of(method: Method, target: &str) -> Result<&str, Refusal> {
    if target.starts_with('/') || method == Method::Other {
        return Ok(target);
    }
    let scheme = target
        .get(..7)
        .filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let after = scheme
        .map(|scheme| &target[scheme.len()..])
        .ok_or(bad("the target is not a path"))?;
    // The host ends at the path, or at a query without one.
    let rest = after.find(['/', '?']).map_or("/", |end| &after[end..]);
    Ok(if rest.starts_with('?') { "/" } else { rest })
}

/// What the header lines say, as far as the server cares.
#[derive(Default)]
struct Headers {
    lines: usize,
    hosts: usize,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
}

impl Headers {
    fn add(&mut self, line: &[u8]) -> Result<(), Refusal> {
        self.lines += 1;
        if self.lines > HEADERS_MAX {
            return Err(Refusal(Status::HeadersTooLarge, "too many header lines"));
        }
        let colon = line
            .iter()
            .position(|&byte| byte == b':')
            .ok_or(bad("a header line has no colon"))?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if !is_token(name) {
            return Err(bad("a header's name is not a word"));
        }
        if value
            .iter()
            .any(|&byte| byte.is_ascii_control() && byte != b'\t')
        {
            return Err(bad("a header has control characters"));
        }
        match name.to_ascii_lowercase().as_slice() {
            b"host" => self.hosts += 1,
            b"content-length" => {
                let length = digits(value).ok_or(bad("Content-Length is not a number"))?;
                if self.length.is_some_and(|before| before != length) {
                    return Err(bad("there are two Content-Lengths"));
                }
                self.length = Some(length);
            }
            b"transfer-encoding" => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Refusal(
                        Status::NotImplemented,
                        "the only Transfer-Encoding here is chunked",
                    ));
                }
                self.chunked = true;
            }
            b"connection" => {
                for word in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                    self.close |= word.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            b"expect" => {
                if !value.eq_ignore_ascii_case(b"100-continue") {
                    return Err(Refusal(
                        Status::ExpectationFailed,
                        "the only expectation here is 100-continue",
                    ));
                }
                self.expects_continue = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn check(&self, is_1_1: bool) -> Result<(), Refusal> {
        if self.hosts > 1 || (is_1_1 && self.hosts == 0) {
            return Err(bad("there must be one Host header"));
        }
        // A proxy in front may have believed the other one: that is how requests are smuggled in.
        if self.chunked && (self.length.is_some() || !is_1_1) {
            return Err(bad(
                "Transfer-Encoding does not go with Content-Length or HTTP/1.0",
            ));
        }
        Ok(())
    }
}

/// Takes a chunked body apart, in whatever pieces it comes.
#[derive(Default)]
pub(crate) struct Chunked {
    next: Part,
    trailer_len: usize,
}

#[derive(Default)]
enum Part {
    #[default]
    Size,
    /// So many bytes are left of the chunk.
    Data(usize),
    /// The line end behind a chunk's bytes.
    DataEnd,
    Trailer,
}

impl Chunked {
    /// Appends to `body` what `input` holds of it. Returns how many bytes of `input` were used, and
    /// whether the body has ended.
    pub(crate) fn decode(
        &mut self,
        input: &[u8],
        body: &mut Vec<u8>,
        body_max: usize,
    ) -> Result<(usize, bool), Refusal> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            match self.next {
                Part::Size => {
                    let Some(line) = line(rest)? else {
                        return Ok((used, false));
                    };
                    let size = chunk_size(line)?;
                    if size > (body_max - body.len()) as u64 {
                        return Err(body_too_large());
                    }
                    used += line.len() + 2;
                    self.next = if size == 0 {
                        Part::Trailer
                    } else {
                        Part::Data(size as usize)
                    };
                }
                Part::Data(left) => {
                    let now = left.min(rest.len());
                    body.extend_from_slice(&rest[..now]);
                    used += now;
                    if now < left {
                        self.next = Part::Data(left - now);
                        return Ok((used, false));
                    }
                    self.next = Part::DataEnd;
                }
                Part::DataEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        used += 2;
                        self.next = Part::Size;
                    }
                    [] | [b'\r'] => return Ok((used, false)),
                    _ => return Err(bad("a chunk is longer than it says")),
                },
                Part::Trailer => {
                    let Some(line) = line(rest)? else {
                        return Ok((used, false));
                    };
                    used += line.len() + 2;
                    if line.is_empty() {
                        return Ok((used, true));
                    }
                    self.trailer_len += line.len();
                    if self.trailer_len > CHUNK_LINE_MAX * 8 {
                        return Err(head_too_large());
                    }
                }
            }
        }
    }
}

/// The first line of `input` without its end, if it is there.
fn line(input: &[u8]) -> Result<Option<&[u8]>, Refusal> {
    match input
        .iter()
        .take(CHUNK_LINE_MAX)
        .position(|&byte| byte == b'\n')
    {
        Some(end) => {
            let line = input[..end].strip_suffix(b"\r");
            line.map(Some)
                .ok_or(bad("a chunk's line does not end with CR LF"))
        }
        None if input.len() < CHUNK_LINE_MAX => Ok(None),
        None => Err(bad("a chunk's line is too long")),
    }
}

fn chunk_size(line: &[u8]) -> Result<u64, Refusal> {
    let size = line
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii_end();
    let good = (1..=15).contains(&size.len()) && size.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(size).ok().filter(|_| good);
    text.and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or(bad("a chunk's size is not a number"))
}

/// A number of digits only: no sign, no space.
fn digits(text: &[u8]) -> Option<u64> {
    let good = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text)
        .ok()
        .filter(|_| good)?
        .parse()
        .ok()
}

fn is_token(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|&byte| is_token_byte(byte))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
