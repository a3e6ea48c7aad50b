//! A listener while the whole system is out of descriptors, which a filter of system calls pretends.
#![cfg(all(not(gmp_loom), target_os = "linux"))]

use std::io::{self, Read, Write};
use std::mem::offset_of;
use std::net::{TcpListener as StdListener, TcpStream};
use std::thread;

use gmp_executor::task;
use gmp_net::TcpListener;
use support::*;

mod support;

/// From now on `accept4` fails on this thread with `ENFILE`. Says whether the system allows such a filter.
fn refuse_to_accept() -> bool {
    let (load, equals, answer) = (
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
        libc::BPF_RET | libc::BPF_K,
    );
    let step = |code: u32, k: u32, otherwise: u8| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: otherwise,
        k,
    };
    let mut steps = [
        step(load, offset_of!(libc::seccomp_data, nr) as u32, 0),
        step(equals, libc::SYS_accept4 as u32, 1),
        step(answer, libc::SECCOMP_RET_ERRNO | libc::ENFILE as u32, 0),
        step(answer, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: a request that takes numbers only.
    let unprivileged = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0;
    // SAFETY: the program and its steps are alive during the call, which copies them.
    let filtered =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) } == 0;
    unprivileged && filtered
}

/// Each `accept` says `ENFILE`, the loop around it leaves room for another task although it only tries again,
/// and the connection waits until there are descriptors.
#[test]
fn accept_goes_on_when_the_system_has_descriptors_again() {
    let _watchdog = Watchdog::new();
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(b"x").unwrap();

    let without = thread::spawn(move || {
        let runtime = rt::current_thread();
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            if !refuse_to_accept() {
                eprintln!("not tested: the system allows no filter of system calls");
                return listener.into_std().unwrap();
            }
            let other = task::spawn(async {
                for _ in 0..10 {
                    task::yield_now().await;
                }
            });
            let mut errors = 0;
            while errors < 1_000 || !other.is_finished() {
                let error = listener.accept().await.unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::ENFILE));
                assert_ne!(error.kind(), io::ErrorKind::WouldBlock);
                errors += 1;
            }
            listener.into_std().unwrap()
        })
    });
    let listener = without.join().unwrap();

    rt::current_thread().block_on(async {
        let listener = TcpListener::from_std(listener).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = stream.into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    });
}
