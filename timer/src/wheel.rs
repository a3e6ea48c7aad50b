//! A hierarchical timing wheel: due timers come out, `now` comes in; no clock, no lock, no waker.
//!
//! # Words
//!
//! - **tick**: a millisecond since the wheel's beginning, the unit of everything here.
//! - **entry**: what a timer has in the wheel, found through its [`Key`]. Whoever inserted it owns it
//!   and releases it with [`Wheel::remove`], also after it fired: so a key never goes stale, and
//!   no generation is needed to tell.
//! - **linked**: the entry waits in a slot. **fired**: it came out of [`Wheel::pop_due`].
//! - **slot**: a list of entries whose ticks share all but the lowest bits.
//! - **elapsed**: the last `now` that the wheel knows to have nothing left to cascade before it.
//!
//! # The levels
//!
//! A tick is eleven digits of six bits (the uppermost has four), and there is a level for each
//! digit. An entry is on the level of the highest digit in which its tick differs from `elapsed`, in
//! the slot of that digit. So level 0 holds what is due within the current 64 ms, a tick a slot, and
//! eleven levels hold every `u64`: no tick is too far, and none has a special meaning.
//!
//! When `elapsed` reaches the first tick of a slot of a higher level, the slot's entries differ from
//! it in a lower digit only: they *cascade*, in order, to lower levels. An entry cascades at most ten
//! times in its life. Reset and removal unlink from a doubly linked list; everything but the cascade
//! takes constant time.
//!
//! # Invariants
//!
//! 1. On the level of digit `d`, linked entries agree with `elapsed` in every digit above `d`, and
//!    their digit `d` is greater than that of `elapsed` (on level 0: not less).
//! 2. Hence every entry of a level is due before every entry of the levels above it, and on one
//!    level before every entry of the later slots: the earliest entries are in the first
//!    occupied slot of the lowest occupied level.
//! 3. `elapsed` may move to any time before the first tick of that slot without touching an entry:
//!    it keeps agreeing in the digits above, and its digit stays smaller.
//! 4. Among entries of one tick the order of insertion is kept: lists grow at the tail, and a
//!    cascade walks from the head into slots that are empty, by 1.

#[cfg(all(test, not(gmp_loom)))]
mod tests;

/// Bits of a digit.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;
/// No entry: the end of a list.
const NIL: u32 = u32::MAX;
/// An empty wheel gives the memory of more entries than this back.
const SPARE_ENTRIES_MAX: usize = 1024;

/// An entry's place in the wheel that it was inserted into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Linked, in the list of this slot.
    Slot(u16),
    /// Fired, in no list.
    Fired,
    /// Nobody's: in the list of free entries, which `next` links.
    Free,
}

#[derive(Debug)]
struct Entry<T> {
    tick: u64,
    prev: u32,
    next: u32,
    place: Place,
    value: Option<T>,
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

const EMPTY: List = List {
    head: NIL,
    tail: NIL,
};

/// The first occupied slot.
struct First {
    level: usize,
    slot: u16,
    /// The least tick that an entry of the slot can have.
    start: u64,
}

/// A set of deadlines, each with a value that is handed out once when the deadline has passed.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    elapsed: u64,
    /// A bit for each level with an entry.
    levels: u16,
    /// For each level a bit for each slot with an entry.
    occupied: [u64; LEVELS],
    lists: Box<[List]>,
    entries: Vec<Entry<T>>,
    /// The first free entry.
    free: u32,
    /// How many entries are not free.
    live: usize,
}

impl<T> Wheel<T> {
    pub(crate) fn new() -> Self {
        Wheel {
            elapsed: 0,
            levels: 0,
            occupied: [0; LEVELS],
            lists: vec![EMPTY; LEVELS * SLOTS].into_boxed_slice(),
            entries: Vec::new(),
            free: NIL,
            live: 0,
        }
    }

    /// Whether no entry is linked.
    #[cfg(all(test, not(gmp_loom)))]
    pub(crate) fn is_idle(&self) -> bool {
        self.levels == 0
    }

    /// Links a new entry. A tick that is not after `elapsed` is due at once.
    #[inline]
    pub(crate) fn insert(&mut self, tick: u64, value: Option<T>) -> Key {
        let index = match self.free {
            NIL => self.grow(),
            free => free,
        };
        let (slot, prev) = self.append(tick, index);
        self.live += 1;
        let entry = &mut self.entries[index as usize];
        debug_assert_eq!(entry.place, Place::Free);
        self.free = entry.next;
        // One by one: an entry made elsewhere would be copied here.
        entry.tick = tick;
        entry.prev = prev;
        entry.next = NIL;
        entry.place = Place::Slot(slot);
        entry.value = value;
        Key(index)
    }

    /// Adds a free entry where there is none.
    #[cold]
    fn grow(&mut self) -> u32 {
        let index = self.entries.len() as u32;
        assert_ne!(index, NIL, "a P has fewer than 2^32 timers");
        self.entries.push(Entry {
            tick: 0,
            prev: NIL,
            next: NIL,
            place: Place::Free,
            value: None,
        });
        self.free = index;
        index
    }

    /// Releases the entry, linked or fired, and returns its value unless it was handed out.
    #[inline]
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.unlink(key.0);
        let free = self.free;
        let entry = self.entry(key.0);
        debug_assert_eq!(entry.place, Place::Fired);
        entry.place = Place::Free;
        entry.next = free;
        let value = entry.value.take();
        self.free = key.0;
        self.live -= 1;
        if self.live == 0 && self.entries.capacity() > SPARE_ENTRIES_MAX {
            self.entries = Vec::new();
            self.free = NIL;
        }
        value
    }

    /// Links the entry anew, linked or fired, with another deadline.
    pub(crate) fn reset(&mut self, key: Key, tick: u64) {
        self.unlink(key.0);
        self.entry(key.0).tick = tick;
        self.link(key.0);
    }

    pub(crate) fn is_fired(&self, key: Key) -> bool {
        self.entries[key.0 as usize].place == Place::Fired
    }

    /// The value of the entry; `None` once it was handed out.
    pub(crate) fn value_mut(&mut self, key: Key) -> &mut Option<T> {
        &mut self.entry(key.0).value
    }

    /// Fires the earliest entry that is due at `now`, and returns its key and its value.
    ///
    /// A `now` before one seen earlier counts as that one: clocks have been seen to step back.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<(Key, Option<T>)> {
        let now = now.max(self.elapsed);
        while let Some(first) = self.first() {
            if first.start > now {
                break;
            }
            self.elapsed = first.start;
            if first.level > 0 {
                self.cascade(first.slot);
                continue;
            }
            let index = self.lists[first.slot as usize].head;
            self.unlink(index);
            return Some((Key(index), self.entry(index).value.take()));
        }
        self.elapsed = now;
        None
    }

    /// Tells the wheel the time, so that entries inserted now get to a low level, and fires nothing.
    pub(crate) fn catch_up(&mut self, now: u64) {
        if now > self.elapsed && self.first().is_none_or(|first| first.start > now) {
            self.elapsed = now;
        }
    }

    /// A time by which the earliest entry is not due yet, or just due: its tick, unless its slot has
    /// more than `scan_max` entries, in which case it may be the first tick of the slot.
    pub(crate) fn next_tick(&self, scan_max: usize) -> Option<u64> {
        let first = self.first()?;
        if first.level == 0 {
            return Some(first.start);
        }
        let mut earliest = u64::MAX;
        let mut index = self.lists[first.slot as usize].head;
        for _ in 0..scan_max {
            let entry = &self.entries[index as usize];
            earliest = earliest.min(entry.tick);
            index = entry.next;
            if index == NIL {
                return Some(earliest);
            }
        }
        Some(first.start)
    }

    /// The first occupied slot of the lowest occupied level: the earliest entries, by invariant 2.
    #[inline]
    fn first(&self) -> Option<First> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros();
        let digit = self.occupied[level as usize].trailing_zeros();
        let shift = level * BITS;
        let above = u64::MAX.checked_shl(shift + BITS).unwrap_or(0);
        Some(First {
            level: level as usize,
            slot: (level * SLOTS as u32 + digit) as u16,
            start: self.elapsed & above | u64::from(digit) << shift,
        })
    }

    fn cascade(&mut self, slot: u16) {
        let mut index = self.lists[slot as usize].head;
        self.clear(slot);
        while index != NIL {
            let next = self.entry(index).next;
            self.link(index);
            index = next;
        }
    }

    /// Puts the entry, which is in no list, at the tail of the list of its slot.
    fn link(&mut self, index: u32) {
        let (slot, tail) = self.append(self.entries[index as usize].tick, index);
        let entry = self.entry(index);
        entry.prev = tail;
        entry.next = NIL;
        entry.place = Place::Slot(slot);
    }

    /// Makes the entry the tail of the list of its slot. Returns the slot, and the tail before it.
    #[inline]
    fn append(&mut self, tick: u64, index: u32) -> (u16, u32) {
        // What is past goes where `elapsed` is: level 0, the first slot that `pop_due` looks at.
        let tick = tick.max(self.elapsed);
        let differing = (self.elapsed ^ tick) | (SLOTS as u64 - 1);
        let level = differing.ilog2() / BITS;
        let digit = (tick >> (level * BITS)) as usize % SLOTS;
        let slot = level as usize * SLOTS + digit;

        let tail = std::mem::replace(&mut self.lists[slot].tail, index);
        if tail != NIL {
            self.entry(tail).next = index;
        } else {
            self.lists[slot].head = index;
            self.occupied[level as usize] |= 1 << digit;
            self.levels |= 1 << level;
        }
        (slot as u16, tail)
    }

    /// Takes the entry out of its list, if it is in one, and marks it fired.
    #[inline]
    fn unlink(&mut self, index: u32) {
        let entry = self.entry(index);
        let (prev, next) = (entry.prev, entry.next);
        let Place::Slot(slot) = std::mem::replace(&mut entry.place, Place::Fired) else {
            return;
        };
        if prev == NIL && next == NIL {
            self.clear(slot);
            return;
        }
        match prev {
            NIL => self.lists[slot as usize].head = next,
            prev => self.entry(prev).next = next,
        }
        match next {
            NIL => self.lists[slot as usize].tail = prev,
            next => self.entry(next).prev = prev,
        }
    }

    /// Marks the slot empty.
    #[inline]
    fn clear(&mut self, slot: u16) {
        let level = slot as usize / SLOTS;
        self.lists[slot as usize] = EMPTY;
        self.occupied[level] &= !(1 << (slot as usize % SLOTS));
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    #[inline]
    fn entry(&mut self, index: u32) -> &mut Entry<T> {
        &mut self.entries[index as usize]
    }
}
