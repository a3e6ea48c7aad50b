//! What the server does for which path.

use std::time::Duration;

use super::request::{Framing, Method, Request};
use super::response::{Refusal, Response, Status};

/// The longest time that a client may have the server sleep or block.
const WAIT_MAX_MS: u64 = 60_000;

const HELLO: &[u8] = b"Hello from gmp!\n";

/// What is to be done for a request.
#[derive(Debug)]
pub(crate) enum Action {
    Reply(Response),
    /// Let the task sleep: costs no thread.
    Sleep(Duration),
    /// Block the thread without telling the runtime, which has to cope.
    Block(Duration),
}

pub(crate) fn route(request: &Request, body: Vec<u8>) -> Action {
    let allow = match request.path.as_str() {
        "/" | "/sleep" | "/block" => "GET, HEAD",
        "/echo" => "POST",
        _ => {
            return refuse(
                Status::NotFound,
                "there are /, /echo, /sleep?ms=N and /block?ms=N",
            );
        }
    };
    match (request.path.as_str(), request.method) {
        ("/", Method::Get | Method::Head) => Action::Reply(Response::ok(HELLO)),
        ("/sleep", Method::Get | Method::Head) => wait(request, Action::Sleep),
        ("/block", Method::Get | Method::Head) => wait(request, Action::Block),
        ("/echo", Method::Post) if request.framing == Framing::Absent => refuse(
            Status::LengthRequired,
            "a body needs Content-Length or chunked coding",
        ),
        ("/echo", Method::Post) => Action::Reply(Response::ok(body)),
        _ => {
            let refusal = Refusal(Status::MethodNotAllowed, "see the Allow header");
            Action::Reply(Response {
                allow: Some(allow),
                ..refusal.into()
            })
        }
    }
}

fn wait(request: &Request, action: fn(Duration) -> Action) -> Action {
    match request.number("ms") {
        Some(ms @ ..=WAIT_MAX_MS) => action(Duration::from_millis(ms)),
        _ => refuse(Status::BadRequest, "say how long: ?ms=N, at most 60000"),
    }
}

fn refuse(status: Status, why: &'static str) -> Action {
    Action::Reply(Refusal(status, why).into())
}
