//! Capacity of a bounded channel that was reserved.

use std::fmt;
use std::iter::FusedIterator;
use std::mem::ManuallyDrop;

use super::bounded::Sender;
use super::capacity::Capacity;
use super::chan::Tx;

/// Capacity for one message, to be used at once or never.
///
/// Made by [`Sender::reserve`] and [`Sender::try_reserve`]. Dropping it gives the capacity back.
pub struct Permit<'a, T> {
    tx: &'a Tx<T, Capacity>,
}

/// Capacity for several messages, as an iterator of [`Permit`]s.
///
/// Made by [`Sender::reserve_many`] and [`Sender::try_reserve_many`]. Dropping it gives back the
/// capacity that was not taken out.
pub struct PermitIterator<'a, T> {
    tx: &'a Tx<T, Capacity>,
    left: usize,
}

/// A [`Permit`] that owns its sender.
///
/// Made by [`Sender::reserve_owned`] and [`Sender::try_reserve_owned`]. Using it, or
/// [releasing](OwnedPermit::release) it, gives the sender back.
pub struct OwnedPermit<T> {
    tx: Tx<T, Capacity>,
}

impl<'a, T> Permit<'a, T> {
    /// The caller has taken a permit.
    pub(super) fn new(tx: &'a Tx<T, Capacity>) -> Self {
        Permit { tx }
    }

    /// Sends a message. There is room for it, so this neither waits nor fails; if the receiver has
    /// been dropped, so is the message.
    pub fn send(self, value: T) {
        let permit = ManuallyDrop::new(self);
        send_with_permit(permit.tx, value);
    }
}

/// Uses a permit that the caller has, and forgets.
fn send_with_permit<T>(tx: &Tx<T, Capacity>, value: T) {
    let position = tx.flavour().redeem();
    // SAFETY: the position was claimed by the line above.
    unsafe { tx.put(position, value) };
}

impl<T> Drop for Permit<'_, T> {
    fn drop(&mut self) {
        self.tx.flavour().give_back(1);
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("chan", self.tx).finish()
    }
}

impl<'a, T> PermitIterator<'a, T> {
    /// The caller has taken as many permits.
    pub(super) fn new(tx: &'a Tx<T, Capacity>, left: usize) -> Self {
        PermitIterator { tx, left }
    }
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Permit<'a, T>> {
        self.left = self.left.checked_sub(1)?;
        Some(Permit { tx: self.tx })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}
impl<T> FusedIterator for PermitIterator<'_, T> {}

impl<T> Drop for PermitIterator<'_, T> {
    fn drop(&mut self) {
        self.tx.flavour().give_back(self.left as u64);
    }
}

impl<T> fmt::Debug for PermitIterator<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitIterator")
            .field("chan", self.tx)
            .field("capacity", &self.left)
            .finish()
    }
}

impl<T> OwnedPermit<T> {
    /// The caller has taken a permit.
    pub(super) fn new(tx: Tx<T, Capacity>) -> Self {
        OwnedPermit { tx }
    }

    /// Sends a message and returns the sender. As [`Permit::send`].
    pub fn send(self, value: T) -> Sender<T> {
        let sender = self.into_sender();
        send_with_permit(&sender.tx, value);
        sender
    }

    /// Gives the capacity back without sending, and returns the sender.
    pub fn release(self) -> Sender<T> {
        let sender = self.into_sender();
        sender.tx.flavour().give_back(1);
        sender
    }

    /// The sender. The permit is the caller's to use or give back.
    fn into_sender(self) -> Sender<T> {
        let permit = ManuallyDrop::new(self);
        // SAFETY: the permit is not used again, nor dropped.
        let tx = unsafe { std::ptr::read(&permit.tx) };
        Sender { tx }
    }

    /// Whether both permits are for the same channel.
    pub fn same_channel(&self, other: &Self) -> bool {
        self.tx.is_same(&other.tx)
    }

    /// Whether the permit is for the channel that `sender` sends into.
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        self.tx.is_same(&sender.tx)
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        self.tx.flavour().give_back(1);
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit")
            .field("chan", &self.tx)
            .finish()
    }
}
