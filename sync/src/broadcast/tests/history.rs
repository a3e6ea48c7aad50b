//! Random histories, compared with a model: all values that were sent, and where each receiver is.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::Poll;

use futures::future::LocalBoxFuture;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Send,
    Subscribe,
    /// Of the receiver with this number, modulo how many there are.
    Resubscribe(usize),
    TryRecv(usize),
    Leave(usize),
    /// Begins to wait, or polls the future that does, or drops it.
    Recv(usize),
    Forget(usize),
    CloseSender,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Send),
        1 => Just(Step::Subscribe),
        1 => any::<usize>().prop_map(Step::Resubscribe),
        8 => any::<usize>().prop_map(Step::TryRecv),
        1 => any::<usize>().prop_map(Step::Leave),
        3 => any::<usize>().prop_map(Step::Recv),
        1 => any::<usize>().prop_map(Step::Forget),
        1 => Just(Step::CloseSender),
    ]
}

/// A receiver, where it is, and whether it has been polled and waits.
struct Reader {
    /// It has the receiver borrowed.
    wait: Option<Polled<LocalBoxFuture<'static, Result<u64, RecvError>>>>,
    receiver: Rc<RefCell<Receiver<u64>>>,
    next: u64,
    start: u64,
}

/// The model. The value sent as the `n`th is `n`.
struct Model {
    capacity: u64,
    sent: u64,
    is_closed: bool,
}

impl Model {
    /// What the next read gives, and where the receiver is then.
    fn read(&self, next: u64) -> (Result<u64, TryRecvError>, u64) {
        let oldest = self.sent.saturating_sub(self.capacity);
        match next {
            _ if next == self.sent && self.is_closed => (Err(TryRecvError::Closed), next),
            _ if next == self.sent => (Err(TryRecvError::Empty), next),
            _ if next < oldest => (Err(TryRecvError::Lagged(oldest - next)), oldest),
            _ => (Ok(next), next + 1),
        }
    }

    /// How many values somebody has yet to read: those from the slowest receiver on.
    fn unread(&self, readers: &[Reader]) -> u64 {
        let slowest = readers.iter().map(|reader| reader.next).min();
        let unread = slowest.map_or(0, |next| self.sent - next);
        unread.min(self.capacity)
    }
}

fn try_error(read: Result<u64, RecvError>) -> Result<u64, TryRecvError> {
    read.map_err(|error| match error {
        RecvError::Closed => TryRecvError::Closed,
        RecvError::Lagged(missed) => TryRecvError::Lagged(missed),
    })
}

impl Reader {
    fn new(receiver: Receiver<u64>, next: u64) -> Self {
        Reader {
            wait: None,
            receiver: Rc::new(RefCell::new(receiver)),
            next,
            start: next,
        }
    }

    fn try_recv(&mut self, model: &Model) {
        self.wait = None;
        let (expected, next) = model.read(self.next);
        let read = self.receiver.borrow_mut().try_recv();
        assert_eq!(read, expected, "at {} since {}", self.next, self.start);
        self.next = next;
    }

    #[expect(
        clippy::await_holding_refcell_ref,
        reason = "nobody borrows the receiver while `wait` is there"
    )]
    fn recv(&mut self, model: &Model) {
        let receiver = self.receiver.clone();
        let wait = self.wait.get_or_insert_with(|| {
            let recv = async move { receiver.borrow_mut().recv().await };
            polled(Box::pin(recv) as _)
        });
        let (expected, next) = model.read(self.next);
        match wait.poll() {
            Poll::Pending => assert_eq!(expected, Err(TryRecvError::Empty)),
            Poll::Ready(read) => {
                assert_eq!(try_error(read), expected);
                self.wait = None;
                self.next = next;
            }
        }
    }

    /// A receiver that waits has been woken if there is something to say.
    fn check(&self, model: &Model) {
        let is_empty = model.read(self.next).0 == Err(TryRecvError::Empty);
        match &self.wait {
            Some(wait) => assert_eq!(wait.woken() == 0, is_empty),
            None => {
                let receiver = self.receiver.borrow();
                assert_eq!(receiver.len() as u64, model.sent - self.next);
                assert_eq!(receiver.is_closed(), model.is_closed);
            }
        }
    }
}

fn run(capacity: usize, steps: Vec<Step>) {
    let (sender, receiver) = channel(capacity);
    let mut sender = Some(sender);
    let mut model = Model {
        capacity: capacity.next_power_of_two() as u64,
        sent: 0,
        is_closed: false,
    };
    let mut readers = vec![Reader::new(receiver, 0)];
    for step in steps {
        let count = readers.len();
        let pick = |number: usize| (count > 0).then(|| number % count);
        match step {
            Step::Send => {
                let Some(sender) = &sender else { continue };
                match sender.send(model.sent) {
                    Ok(receivers) => {
                        assert_eq!(receivers, count);
                        model.sent += 1;
                    }
                    Err(error) => assert_eq!((error.0, count), (model.sent, 0)),
                }
            }
            Step::Subscribe => {
                let Some(sender) = &sender else { continue };
                readers.push(Reader::new(sender.subscribe(), model.sent));
            }
            Step::Resubscribe(number) => {
                let Some(number) = pick(number) else { continue };
                readers[number].wait = None;
                let receiver = readers[number].receiver.borrow().resubscribe();
                readers.push(Reader::new(receiver, model.sent));
            }
            Step::TryRecv(number) => {
                let Some(number) = pick(number) else { continue };
                readers[number].try_recv(&model);
            }
            Step::Recv(number) => {
                let Some(number) = pick(number) else { continue };
                readers[number].recv(&model);
            }
            Step::Forget(number) => {
                let Some(number) = pick(number) else { continue };
                readers[number].wait = None;
            }
            Step::Leave(number) => {
                let Some(number) = pick(number) else { continue };
                readers.swap_remove(number);
            }
            Step::CloseSender => {
                // Rarely of use at the beginning.
                if model.sent > 10 {
                    sender = None;
                    model.is_closed = true;
                }
            }
        }
        if let Some(sender) = &sender {
            assert_eq!(sender.len() as u64, model.unread(&readers));
            assert_eq!(sender.is_empty(), model.unread(&readers) == 0);
            assert_eq!(sender.receiver_count(), readers.len());
        }
        readers.iter().for_each(|reader| reader.check(&model));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_as_in_the_model(capacity in 1_usize..10, steps in vec(step(), 0..200)) {
        run(capacity, steps);
    }
}

/// `len` searches: it must find the same whatever is where in the ring.
#[test]
fn the_length_is_right_all_the_way_round() {
    for capacity in [1, 2, 4, 8, 64] {
        let (sender, mut receiver) = channel(capacity);
        for offset in 0..capacity {
            for unread in 0..=capacity {
                for _ in 0..unread {
                    sender.send(0).unwrap();
                }
                assert_eq!((sender.len(), sender.is_empty()), (unread, unread == 0));
                while receiver.try_recv().is_ok() {}
            }
            sender.send(offset).unwrap();
            receiver.try_recv().unwrap();
        }
    }
}
