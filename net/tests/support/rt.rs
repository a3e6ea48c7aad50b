//! The runtimes the tests run on.

use std::sync::Arc;

use gmp_executor::{Config, Flavor, Runtime};
use gmp_net::Netpoll;

pub fn current_thread() -> Runtime {
    runtime(Flavor::CurrentThread, 1)
}

pub fn multi_thread() -> Runtime {
    runtime(Flavor::MultiThread, 2)
}

fn runtime(flavor: Flavor, procs: usize) -> Runtime {
    let mut config = Config::new(flavor, procs);
    config.netpoll = Some(Arc::new(Netpoll::new(procs).unwrap()));
    Runtime::new(config).unwrap()
}

/// A runtime without I/O.
pub fn without_io() -> Runtime {
    Runtime::new(Config::new(Flavor::CurrentThread, 1)).unwrap()
}
