//! The parts without I/O: parsing, routing, dates, options, figures.

use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;

use super::histogram::Histogram;
use super::options::{self, Command};
use super::request::{Chunked, Framing, Method, Request, check_beginning, head_end};
use super::response::{Refusal, Status, date};
use super::routes::{Action, route};

/// A request line and header lines, with the ends of lines added.
fn head(lines: &[&str]) -> Vec<u8> {
    format!("{}\r\n\r\n", lines.join("\r\n")).into_bytes()
}

fn parse(lines: &[&str]) -> Result<Request, Status> {
    Request::parse(&head(lines)).map_err(|Refusal(status, _)| status)
}

#[track_caller]
fn refused(status: Status, lines: &[&str]) {
    match parse(lines) {
        Err(got) => assert_eq!(got, status, "{lines:?}"),
        Ok(request) => panic!("{lines:?} was taken as {request:?}"),
    }
}

#[test]
fn a_head_is_taken_apart() {
    let request = parse(&["GET /sleep?a=b&ms=12 HTTP/1.1", "Host: x", "X-Other:"]).unwrap();
    assert_eq!(request.method, Method::Get);
    assert_eq!(
        (request.path.as_str(), request.query.as_str()),
        ("/sleep", "a=b&ms=12")
    );
    assert_eq!(
        (
            request.number("ms"),
            request.number("a"),
            request.number("c")
        ),
        (Some(12), None, None)
    );
    assert!(request.is_1_1 && request.keep_alive && !request.expects_continue);
    assert_eq!(request.framing, Framing::Absent);

    let request = parse(&[
        "POST /echo HTTP/1.1",
        "host:x",
        "CONTENT-LENGTH:  7 ",
        "Expect: 100-Continue",
    ])
    .unwrap();
    assert_eq!(request.framing, Framing::Length(7));
    assert!(request.expects_continue);

    let request = parse(&[
        "POST /echo HTTP/1.1",
        "Host: x",
        "Transfer-Encoding: Chunked",
    ])
    .unwrap();
    assert_eq!(request.framing, Framing::Chunked);
}

#[test]
fn the_version_and_the_connection_header_decide_about_keep_alive() {
    let keep_alive = |line, header: &[&str]| {
        parse(&[&[line, "Host: x"], header].concat())
            .unwrap()
            .keep_alive
    };
    assert!(keep_alive("GET / HTTP/1.1", &[]));
    assert!(!keep_alive("GET / HTTP/1.1", &["Connection: close"]));
    assert!(!keep_alive("GET / HTTP/1.1", &["Connection: foo , Close"]));
    assert!(!keep_alive("GET / HTTP/1.0", &[]));
    assert!(keep_alive("GET / HTTP/1.0", &["Connection: Keep-Alive"]));
    assert!(!keep_alive(
        "GET / HTTP/1.0",
        &["Connection: keep-alive, close"]
    ));
    // A later HTTP/1 is spoken as HTTP/1.1.
    assert!(keep_alive("GET / HTTP/1.7", &[]));
}

#[test]
fn targets_may_be_paths_and_urls() {
    let path = |target: &str| {
        parse(&[&format!("GET {target} HTTP/1.1"), "Host: x"]).map(|request| request.path)
    };
    assert_eq!(path("/a/b?c").as_deref(), Ok("/a/b"));
    assert_eq!(path("http://x:80/a?b").as_deref(), Ok("/a"));
    assert_eq!(path("HTTP://x").as_deref(), Ok("/"));
    for bad in [
        "*",
        "a",
        "ftp://x/",
        "/\x7f",
        "/é",
        "ht\u{1F600}tp",
        "http:/",
    ] {
        assert_eq!(path(bad), Err(Status::BadRequest), "{bad}");
    }
}

#[test]
fn nonsense_is_refused_with_the_right_status() {
    let refused_line = |status, line| refused(status, &[line, "Host: x"]);
    for line in [
        "",
        "GET",
        "GET /",
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / HTTP/11",
        "GET / http/1.1",
        "G:T / HTTP/1.1",
    ] {
        refused_line(Status::BadRequest, line);
    }
    refused_line(Status::VersionNotSupported, "PRI * HTTP/2.0");
    refused_line(Status::VersionNotSupported, "GET / HTTP/0.9");
    refused_line(Status::NotImplemented, "BREW /pot HTTP/1.1");
    refused_line(
        Status::UriTooLong,
        &format!("GET /{} HTTP/1.1", "x".repeat(9000)),
    );

    let refused_header = |status, headers: &[&str]| {
        refused(
            status,
            &[&["POST /echo HTTP/1.1", "Host: x"], headers].concat(),
        )
    };
    for header in [
        "X",
        ": x",
        "X : y",
        " folded: x",
        "X: a\x01b",
        "X: a\rb",
        "Content-Length: +1",
        "Content-Length: -1",
        "Content-Length: 1 1",
        "Content-Length: ",
        "Content-Length: 99999999999999999999",
        "Host: y",
    ] {
        refused_header(Status::BadRequest, &[header]);
    }
    refused_header(
        Status::BadRequest,
        &["Content-Length: 1", "Content-Length: 2"],
    );
    refused_header(
        Status::BadRequest,
        &["Content-Length: 1", "Transfer-Encoding: chunked"],
    );
    refused_header(
        Status::NotImplemented,
        &["Transfer-Encoding: gzip, chunked"],
    );
    refused_header(
        Status::NotImplemented,
        &["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
    );
    refused_header(Status::ExpectationFailed, &["Expect: a miracle"]);
    refused_header(Status::HeadersTooLarge, &["X: y"; 100]);
    assert!(parse(&[&["GET / HTTP/1.1", "Host: x"][..], &["X: y"; 99]].concat()).is_ok());

    refused(Status::BadRequest, &["GET / HTTP/1.1"]);
    refused(
        Status::BadRequest,
        &["POST /echo HTTP/1.0", "Transfer-Encoding: chunked"],
    );
    assert!(parse(&["GET / HTTP/1.0"]).is_ok());
    // The same length twice is no contradiction.
    assert!(
        parse(&[
            "POST / HTTP/1.1",
            "Host: x",
            "Content-Length: 1",
            "Content-Length: 1"
        ])
        .is_ok()
    );
}

#[test]
fn the_end_of_a_head_is_found_however_it_comes() {
    for end in ["\r\n\r\n", "\n\n", "\r\n\n", "\n\r\n"] {
        let head = format!("GET / HTTP/1.1\r\nHost: x{end}");
        let text = format!("{head}body\n\n");
        for seen in 0..head.len() {
            assert_eq!(
                head_end(text.as_bytes(), seen),
                Some(head.len()),
                "{end:?} after {seen}"
            );
            assert_eq!(
                head_end(&text.as_bytes()[..seen], 0),
                None,
                "{end:?} in {seen}"
            );
        }
    }
}

#[test]
fn a_beginning_that_cannot_become_good_is_refused_at_once() {
    let status = |input: &[u8]| {
        check_beginning(input, 20)
            .err()
            .map(|Refusal(status, _)| status)
    };
    assert_eq!(status(b""), None);
    assert_eq!(status(b"GET / HTTP/1.1\r\nHost"), None);
    assert_eq!(
        status(b"GET / HTTP/1.1\r\nHost:"),
        Some(Status::HeadersTooLarge)
    );
    assert_eq!(status(b"GET /aaaaaaaaaaaaaaaa"), Some(Status::UriTooLong));
    assert_eq!(status(b"\x16\x03\x01"), Some(Status::BadRequest));
}

/// Decodes `input` that comes in pieces of `step` bytes; the bytes behind the body are returned too.
fn decode(input: &[u8], step: usize, max: usize) -> Result<(Vec<u8>, Vec<u8>), Option<Status>> {
    let (mut chunked, mut body, mut buffer) = (Chunked::default(), Vec::new(), Vec::new());
    let mut pieces = input.chunks(step);
    while let Some(piece) = pieces.next() {
        buffer.extend_from_slice(piece);
        let decoded = chunked.decode(&buffer, &mut body, max);
        let (used, done) = decoded.map_err(|Refusal(status, _)| Some(status))?;
        buffer.drain(..used);
        if done {
            pieces.for_each(|piece| buffer.extend_from_slice(piece));
            return Ok((body, buffer));
        }
    }
    Err(None)
}

#[test]
fn chunks_are_put_together_whatever_the_pieces() {
    let input =
        b"5\r\nhello\r\n1;name=\"value\"\r\n \r\n005\r\nworld\r\n0\r\nTrailer: x\r\n\r\nGET";
    for step in 1..=input.len() {
        let (body, rest) = decode(input, step, 11).unwrap();
        assert_eq!(
            (body.as_slice(), rest.as_slice()),
            (&b"hello world"[..], &b"GET"[..])
        );
        assert_eq!(decode(input, step, 10), Err(Some(Status::ContentTooLarge)));
    }
}

#[test]
fn bad_chunks_are_refused() {
    let long_extension = format!("1;{}\r\nx\r\n", "y".repeat(300));
    let trailers = format!("0\r\n{}", "Name: value\r\n".repeat(1000));
    let cases = [
        ("5\nhello\r\n", Some(Status::BadRequest)),
        ("\r\n", Some(Status::BadRequest)),
        ("x\r\n", Some(Status::BadRequest)),
        ("+5\r\nhello\r\n", Some(Status::BadRequest)),
        ("0x5\r\nhello\r\n", Some(Status::BadRequest)),
        ("5\r\nhello!\r\n", Some(Status::BadRequest)),
        ("10000000000000000\r\n", Some(Status::BadRequest)),
        ("fffffffffffffff\r\n", Some(Status::ContentTooLarge)),
        (long_extension.as_str(), Some(Status::BadRequest)),
        (trailers.as_str(), Some(Status::HeadersTooLarge)),
        ("5\r\nhell", None),
    ];
    for (input, status) in cases {
        for step in [1, input.len()] {
            assert_eq!(decode(input.as_bytes(), step, 1000), Err(status), "{input}");
        }
    }
}

proptest! {
    #[test]
    fn no_input_makes_the_parser_panic(input in prop::collection::vec(any::<u8>(), 0..200), step in 1usize..20) {
        let _ = Request::parse(&input);
        let _ = head_end(&input, 0);
        let _ = check_beginning(&input, 100);
        let _ = decode(&input, step, 50);
    }

    #[test]
    fn near_misses_do_not_make_the_parser_panic(
        at in 0usize..60,
        byte in any::<u8>(),
    ) {
        let mut input = head(&["POST /echo?a=b HTTP/1.1", "Host: x", "Content-Length: 12"]);
        let at = at % input.len();
        input[at] = byte;
        let _ = Request::parse(&input);
    }

    #[test]
    fn every_body_survives_chunking(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..10),
        step in 1usize..30,
    ) {
        let mut input = Vec::new();
        for chunk in &chunks {
            input.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
            input.extend_from_slice(chunk);
            input.extend_from_slice(b"\r\n");
        }
        input.extend_from_slice(b"0\r\n\r\n");
        prop_assert_eq!(decode(&input, step, 500), Ok((chunks.concat(), Vec::new())));
    }
}

#[test]
fn routes_know_their_methods() {
    let status = |line: &str| {
        let request = parse(&[line, "Host: x", "Content-Length: 0"]).unwrap();
        match route(&request, Vec::new()) {
            Action::Reply(response) => (response.status, response.allow),
            Action::Sleep(_) | Action::Block(_) => (Status::Ok, None),
        }
    };
    for good in [
        "GET /",
        "HEAD /",
        "GET /?x",
        "POST /echo",
        "GET /sleep?ms=0",
        "HEAD /block?ms=60000",
    ] {
        assert_eq!(
            status(&format!("{good} HTTP/1.1")),
            (Status::Ok, None),
            "{good}"
        );
    }
    for bad in [
        "GET /sleep",
        "GET /sleep?ms=",
        "GET /block?ms=x",
        "GET /block?ms=-1",
        "GET /sleep?ms=60001",
    ] {
        assert_eq!(
            status(&format!("{bad} HTTP/1.1")),
            (Status::BadRequest, None),
            "{bad}"
        );
    }
    for (method, allow) in [
        ("POST /", "GET, HEAD"),
        ("DELETE /", "GET, HEAD"),
        ("GET /echo", "POST"),
        ("POST /sleep?ms=1", "GET, HEAD"),
    ] {
        let got = status(&format!("{method} HTTP/1.1"));
        assert_eq!(got, (Status::MethodNotAllowed, Some(allow)), "{method}");
    }
    for missing in ["GET /x", "GET //", "OPTIONS *", "CONNECT x:1"] {
        assert_eq!(
            status(&format!("{missing} HTTP/1.1")),
            (Status::NotFound, None),
            "{missing}"
        );
    }
}

#[test]
fn dates_are_right() {
    let cases = [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
        (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
        (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
    ];
    for (seconds, text) in cases {
        assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), text);
    }
}

#[test]
fn the_command_line_is_understood() {
    let parse = |line: &str| options::parse(line.split_whitespace().map(String::from));
    let serve = |addr: &str| Ok(Command::Serve { addr: addr.into() });
    assert_eq!(parse(""), serve("127.0.0.1:8080"));
    assert_eq!(parse("--addr [::1]:1"), serve("[::1]:1"));
    assert_eq!(parse("--addr=x:2"), serve("x:2"));
    assert_eq!(parse("--addr a:1 --help --nonsense"), Ok(Command::Help));
    let bench = |connections, seconds| {
        Ok(Command::Bench {
            connections,
            time: Duration::from_secs(seconds),
        })
    };
    assert_eq!(parse("--bench"), bench(64, 5));
    assert_eq!(parse("--bench --seconds=2 --connections 7"), bench(7, 2));
    let bad = [
        "x",
        "--port 1",
        "--addr",
        "--bench --seconds",
        "--bench --seconds 0",
        "--bench --connections many",
        "--connections 5",
        "--bench --addr x:1",
    ];
    for bad in bad {
        assert!(
            parse(bad).is_err_and(|message| !message.is_empty()),
            "{bad}"
        );
    }
}

#[test]
fn quantiles_are_near_the_truth() {
    let mut all = Histogram::default();
    assert_eq!(all.quantile(0.5), Duration::ZERO);
    let mut half = Histogram::default();
    for micros in 1..=10_000 {
        let part = if micros % 2 == 0 { &mut all } else { &mut half };
        part.add(Duration::from_micros(micros));
    }
    all.add_all(&half);
    assert_eq!(
        (all.count(), all.max()),
        (10_000, Duration::from_millis(10))
    );
    for (q, micros) in [
        (0.0, 1.0),
        (0.5, 5_000.0),
        (0.9, 9_000.0),
        (0.99, 9_900.0),
        (1.0, 10_000.0),
    ] {
        let got = all.quantile(q).as_nanos() as f64 / 1000.0;
        assert!(got >= micros && got <= micros * 33.0 / 32.0, "{q}: {got}");
    }
}
