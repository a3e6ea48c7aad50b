//! `Timeout` on timers that the tests drive.

use std::cell::Cell;
use std::future::{pending, poll_fn, ready};
use std::task::Waker;

use gmp_executor::seam::Timers;

use super::*;
use crate::driver::TimerDriver;
use crate::sleep::tests::DELAYS;
use crate::test_support::{Count, MS, paused, poll};

fn timeout_on<F: Future>(driver: &TimerDriver, delay: Duration, future: F) -> Timeout<F> {
    let deadline = driver.now().checked_add(delay);
    let delay = deadline.map(|deadline| Sleep::with_shard(deadline, driver.shard(0).clone()));
    Timeout::new(future, delay)
}

#[test]
fn a_future_that_is_ready_wins_over_any_deadline() {
    let driver = paused(1);
    driver.pass(MS);
    for delay in DELAYS {
        let timeout = timeout_on(&driver, delay, ready(7));
        assert_eq!(
            poll(Box::pin(timeout).as_mut(), Waker::noop()),
            Poll::Ready(Ok(7))
        );
    }
    let past = Sleep::with_shard(driver.now() - MS, driver.shard(0).clone());
    let timeout = Timeout::new(ready(7), Some(past));
    assert_eq!(
        poll(Box::pin(timeout).as_mut(), Waker::noop()),
        Poll::Ready(Ok(7))
    );
    assert_eq!(driver.park_timeout(0), None, "nothing was registered");
}

#[test]
fn a_future_that_is_pending_elapses() {
    for delay in DELAYS {
        let driver = paused(1);
        let (count, waker) = Count::new();
        let mut timeout = Box::pin(timeout_on(&driver, delay, pending::<()>()));
        let mut polled = poll(timeout.as_mut(), &waker);
        assert_eq!(polled.is_ready(), delay.is_zero());
        if polled.is_pending() && driver.auto_advance() {
            assert_eq!(driver.fire(0), 1);
            assert_eq!(count.get(), 1);
            polled = poll(timeout.as_mut(), &waker);
        }
        let never = delay == Duration::MAX;
        assert_eq!(polled.is_ready(), !never, "{delay:?}");
        if polled.is_ready() {
            assert_eq!(polled, Poll::Ready(Err(Elapsed::new())));
        }
    }
}

#[test]
fn a_future_that_gets_ready_in_time_takes_its_timer_along() {
    let driver = paused(1);
    let (count, waker) = Count::new();
    let open = Cell::new(false);
    let future = poll_fn(|_| {
        if open.get() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    let mut timeout = Box::pin(timeout_on(&driver, 100 * MS, future));
    assert!(poll(timeout.as_mut(), &waker).is_pending());
    driver.run(90 * MS);
    assert!(poll(timeout.as_mut(), &waker).is_pending());
    open.set(true);
    assert_eq!(poll(timeout.as_mut(), &waker), Poll::Ready(Ok(())));
    drop(timeout);
    assert_eq!(driver.run(20 * MS), 0);
    assert_eq!(count.get(), 0);
}

/// A44: the future inside spends the budget in each poll, so that the deadline is never looked at.
#[test]
fn a_greedy_future_does_not_outlast_its_deadline() {
    let driver = paused(1);
    let (_, waker) = Count::new();
    let greedy = poll_fn(|cx| {
        while let Poll::Ready(coop) = coop::poll_proceed(cx) {
            coop.made_progress();
        }
        Poll::<()>::Pending
    });
    let mut timeout = Box::pin(timeout_on(&driver, 50 * MS, greedy));
    for _ in 0..10 {
        let polled = coop::with_full_budget(|| {
            let polled = poll(timeout.as_mut(), &waker);
            assert!(!coop::has_budget_remaining());
            polled
        });
        assert!(polled.is_pending());
        driver.pass(5 * MS);
    }
    let polled = coop::with_full_budget(|| poll(timeout.as_mut(), &waker));
    assert_eq!(polled, Poll::Ready(Err(Elapsed::new())));
}

/// If the budget was spent before, the timeout yields like everything else.
#[test]
fn a_timeout_has_no_budget_of_its_own() {
    let driver = paused(1);
    let (_, waker) = Count::new();
    let mut timeout = Box::pin(timeout_on(&driver, MS, pending::<()>()));
    assert!(poll(timeout.as_mut(), &waker).is_pending());
    driver.run(MS);
    coop::with_full_budget(|| {
        let mut cx = Context::from_waker(&waker);
        while let Poll::Ready(coop) = coop::poll_proceed(&mut cx) {
            coop.made_progress();
        }
        assert!(poll(timeout.as_mut(), &waker).is_pending());
    });
    assert!(poll(timeout.as_mut(), &waker).is_ready());
}

#[test]
fn a_timer_that_completes_costs_a_unit_of_budget() {
    let driver = paused(1);
    let mut sleep = driver.sleep(MS);
    coop::with_full_budget(|| {
        for _ in 0..1_000 {
            assert!(poll(sleep.as_mut(), Waker::noop()).is_pending());
        }
        assert!(coop::has_budget_remaining(), "pending is free");
    });
    driver.run(MS);
    coop::with_full_budget(|| {
        let ready = (0..1_000).filter(|_| poll(sleep.as_mut(), Waker::noop()).is_ready());
        assert_eq!(ready.count(), 128);
    });
}

#[test]
fn the_future_inside_can_be_reached() {
    let driver = paused(1);
    let mut timeout = timeout_on(&driver, MS, ready(1));
    assert_eq!(
        format!("{:?}", timeout.get_ref()),
        format!("{:?}", ready(1))
    );
    *timeout.get_mut() = ready(2);
    assert!(format!("{timeout:?}").contains("Sleep"));
    assert_eq!(futures::executor::block_on(timeout.into_inner()), 2);
}

#[test]
#[should_panic = "there is no reactor running"]
fn a_timeout_is_made_in_a_runtime() {
    drop(timeout(MS, ready(())));
}

#[test]
#[should_panic = "there is no reactor running"]
fn a_timeout_at_is_made_in_a_runtime() {
    drop(timeout_at(Instant::now(), ready(())));
}
