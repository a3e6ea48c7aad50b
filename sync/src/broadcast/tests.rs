//! What the channel promises, one receiver at a time and among threads.

use super::*;
use crate::test_util::polled;

#[test]
fn every_receiver_reads_every_value() {
    let (sender, mut first) = channel(4);
    let mut second = sender.subscribe();
    let mut waits = polled(first.recv());
    waits.pending();
    assert_eq!(sender.send(1).unwrap(), 2);
    assert_eq!(waits.woken(), 1);
    assert_eq!(waits.ready(), Ok(1));
    drop(waits);
    assert_eq!(second.try_recv(), Ok(1));
    assert_eq!(second.try_recv(), Err(TryRecvError::Empty));
    drop(sender);
    assert_eq!(first.try_recv(), Err(TryRecvError::Closed));
}
