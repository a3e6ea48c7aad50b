//! The example server, end to end: its pure parts, the server in this process, and the program.

#[path = "../examples/server/bench.rs"]
mod bench;
#[path = "../examples/server/connection.rs"]
mod connection;
#[path = "../examples/server/histogram.rs"]
mod histogram;
#[path = "../examples/server/options.rs"]
mod options;
#[path = "../examples/server/request.rs"]
mod request;
#[path = "../examples/server/response.rs"]
mod response;
#[path = "../examples/server/routes.rs"]
mod routes;
#[path = "../examples/server/serve.rs"]
mod serve;

#[path = "server/pure.rs"]
mod pure;

#[path = "server/sockets.rs"]
mod sockets;

#[path = "server/program.rs"]
mod program;
