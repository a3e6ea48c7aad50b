use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
/// Handle to a task's output.
#[derive(Debug)]
pub struct JoinHandle<T>(std::marker::PhantomData<T>);
impl<T> Unpin for JoinHandle<T> {}
/// Why a task has no output.
#[derive(Debug)]
pub struct JoinError(());
impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;
    fn poll(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Self::Output> { unimplemented!() }
}
