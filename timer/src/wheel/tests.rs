//! The wheel against a sorted map, in simulated time. A wrong digit, a list that loses an entry at
//! one of its ends, a cascade that forgets a slot: each shows as a timer that fires at another time, or
//! in another order, than in the map.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::*;

/// The tick at which an entry fires, and when it was linked.
type Due = (u64, u64);

/// What the wheel should be: entries sorted by the tick at which they fire, then by when they
/// were linked.
#[derive(Default)]
struct Model {
    linked: BTreeMap<Due, u32>,
    /// For each entry that was not released: its key, and its place above unless it fired.
    entries: Vec<(Key, u32, Option<Due>)>,
    links: u64,
    ids: u32,
}

/// The wheel and its model, which are given the same orders.
struct Pair {
    wheel: Wheel<u32>,
    model: Model,
    now: u64,
}

impl Pair {
    fn new() -> Pair {
        Pair {
            wheel: Wheel::new(),
            model: Model::default(),
            now: 0,
        }
    }

    fn place(&mut self, tick: u64) -> Due {
        self.model.links += 1;
        (tick.max(self.wheel.elapsed), self.model.links)
    }

    fn insert(&mut self, tick: u64) {
        let place = self.place(tick);
        let id = self.model.ids;
        self.model.ids += 1;
        let key = self.wheel.insert(tick, Some(id));
        self.model.linked.insert(place, id);
        self.model.entries.push((key, id, Some(place)));
    }

    fn reset(&mut self, which: usize, tick: u64) {
        let place = self.place(tick);
        let Some((key, id, old)) = self.model.entries.get_mut(which) else {
            return;
        };
        if let Some(old) = old.replace(place) {
            self.model.linked.remove(&old);
        }
        self.model.linked.insert(place, *id);
        let (key, id) = (*key, *id);
        self.wheel.reset(key, tick);
        *self.wheel.value_mut(key) = Some(id);
    }

    fn remove(&mut self, which: usize) {
        if which >= self.model.entries.len() {
            return;
        }
        let (key, id, place) = self.model.entries.swap_remove(which);
        assert_eq!(self.wheel.is_fired(key), place.is_none());
        let value = self.wheel.remove(key);
        assert_eq!(value, place.map(|_| id));
        if let Some(place) = place {
            self.model.linked.remove(&place);
        }
    }

    /// Fires at most `count` of what is due `by` later.
    fn fire(&mut self, by: u64, count: usize) {
        self.now = self.now.saturating_add(by);
        for _ in 0..count {
            let due = self.model.linked.first_key_value();
            let expected = due
                .filter(|((tick, _), _)| *tick <= self.now)
                .map(|(place, id)| (*place, *id));
            let fired = self.wheel.pop_due(self.now);
            assert_eq!(fired.and_then(|(_, id)| id), expected.map(|(_, id)| id));
            let Some((place, id)) = expected else {
                return;
            };
            self.model.linked.remove(&place);
            let entry = self.model.entries.iter_mut().find(|entry| entry.1 == id);
            let entry = entry.expect("a linked entry was not released");
            assert_eq!(fired.map(|(key, _)| key), Some(entry.0));
            entry.2 = None;
        }
    }

    fn check(&self) {
        let earliest = self.model.linked.keys().next().map(|(tick, _)| *tick);
        assert_eq!(self.wheel.is_idle(), earliest.is_none());
        assert_eq!(self.wheel.next_tick(usize::MAX), earliest);
        if let Some(earliest) = earliest {
            let bound = self.wheel.next_tick(2).expect("there is an entry");
            assert!(bound <= earliest && bound >= self.wheel.elapsed);
        }
        assert_eq!(self.wheel.live, self.model.entries.len());
        for (key, _, place) in &self.model.entries {
            assert_eq!(self.wheel.is_fired(*key), place.is_none());
        }
    }
}

#[derive(Clone, Debug)]
enum Order {
    Insert(u64),
    InsertAt(u64),
    Reset(usize, u64),
    Remove(usize),
    Fire(u64, usize),
    CatchUp(u64),
}

/// Distances of every size: within a slot, a level, around each power of two, anything.
fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..4_u64,
        4 => 0..200_u64,
        2 => 0..70_000_u64,
        2 => (0..64_u32, 0..3_u64).prop_map(|(bit, off)| (1_u64 << bit).saturating_add(off) - 1),
        1 => any::<u64>(),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        6 => distance().prop_map(Order::Insert),
        1 => distance().prop_map(Order::InsertAt),
        3 => (0..40_usize, distance()).prop_map(|(which, by)| Order::Reset(which, by)),
        3 => (0..40_usize).prop_map(Order::Remove),
        4 => (distance(), 0..50_usize).prop_map(|(by, count)| Order::Fire(by, count)),
        1 => distance().prop_map(Order::CatchUp),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_does_what_a_sorted_map_does(orders in prop::collection::vec(order(), 1..150)) {
        let mut pair = Pair::new();
        for order in orders {
            match order {
                Order::Insert(by) => pair.insert(pair.now.saturating_add(by)),
                Order::InsertAt(tick) => pair.insert(tick),
                Order::Reset(which, by) => pair.reset(which, pair.now.saturating_add(by)),
                Order::Remove(which) => pair.remove(which),
                Order::Fire(by, count) => pair.fire(by, count),
                Order::CatchUp(by) => {
                    pair.now = pair.now.saturating_add(by);
                    pair.wheel.catch_up(pair.now);
                }
            }
            pair.check();
        }
        pair.fire(u64::MAX, usize::MAX);
        pair.check();
        while !pair.model.entries.is_empty() {
            pair.remove(0);
        }
        pair.check();
    }

    #[test]
    fn each_fires_at_its_tick_when_time_goes_from_tick_to_tick(
        ticks in prop::collection::vec(0..10_000_u64, 1..60),
    ) {
        let mut wheel = Wheel::new();
        for tick in &ticks {
            wheel.insert(*tick, Some(*tick));
        }
        let mut fired = HashMap::new();
        for now in 0..10_000 {
            while let Some((_, tick)) = wheel.pop_due(now) {
                assert_eq!(tick, Some(now));
                *fired.entry(now).or_insert(0) += 1;
            }
        }
        assert_eq!(fired.values().sum::<usize>(), ticks.len());
    }
}

fn fired(wheel: &mut Wheel<u64>, now: u64) -> Vec<u64> {
    std::iter::from_fn(|| wheel.pop_due(now))
        .map(|(_, value)| value.expect("each entry fires once"))
        .collect()
}

#[test]
fn every_level_and_both_sides_of_every_boundary() {
    for level in 0..LEVELS as u32 {
        let boundary = 1_u64 << (level * BITS);
        for begin in [0, 1, boundary - 1, boundary] {
            for tick in [
                boundary - 1,
                boundary,
                boundary + 1,
                boundary.saturating_mul(63),
            ] {
                let mut wheel = Wheel::new();
                wheel.catch_up(begin);
                wheel.insert(tick, Some(tick));
                let due = tick.max(begin);
                assert_eq!(wheel.next_tick(1), Some(due));
                if due > begin {
                    assert_eq!(fired(&mut wheel, due - 1), []);
                    assert_eq!(wheel.next_tick(1), Some(due));
                }
                assert_eq!(fired(&mut wheel, due), [tick]);
                assert!(wheel.is_idle());
            }
        }
    }
}

#[test]
fn the_end_of_time_is_a_tick_like_any_other() {
    let mut wheel = Wheel::new();
    let last = wheel.insert(u64::MAX, Some(2));
    let first = wheel.insert(u64::MAX - 1, Some(1));
    assert_eq!(wheel.next_tick(8), Some(u64::MAX - 1));
    assert_eq!(fired(&mut wheel, u64::MAX - 1), [1]);
    assert!(wheel.is_fired(first) && !wheel.is_fired(last));
    assert_eq!(fired(&mut wheel, u64::MAX), [2]);
    wheel.insert(0, Some(3));
    assert_eq!(fired(&mut wheel, u64::MAX), [3]);
}

#[test]
fn a_clock_that_steps_back_fires_nothing_early_and_nothing_twice() {
    let mut wheel = Wheel::new();
    wheel.insert(100, Some(100));
    wheel.insert(120, Some(120));
    assert_eq!(fired(&mut wheel, 110), [100]);
    for now in [105, 0, 109] {
        assert_eq!(fired(&mut wheel, now), []);
        wheel.catch_up(now);
        assert_eq!(wheel.elapsed, 110);
    }
    wheel.insert(104, Some(104));
    assert_eq!(fired(&mut wheel, 0), [104], "due by the latest time known");
    assert_eq!(fired(&mut wheel, 119), []);
    assert_eq!(fired(&mut wheel, 120), [120]);
}

#[test]
fn equal_ticks_fire_in_the_order_of_registration_through_all_cascades() {
    let mut wheel = Wheel::new();
    let tick = 3 << 18 | 5 << 12 | 7 << 6 | 9;
    let mut expected = Vec::new();
    for (order, at) in [0, 1 << 18, 3 << 18, tick - 64, tick - 3, tick]
        .iter()
        .enumerate()
    {
        assert_eq!(fired(&mut wheel, at - u64::from(*at == tick)), []);
        wheel.insert(tick, Some(order as u64));
        expected.push(order as u64);
    }
    assert_eq!(fired(&mut wheel, tick), expected);
}

#[test]
fn a_long_slot_is_not_scanned_to_its_end() {
    let mut wheel = Wheel::new();
    for tick in 130..140 {
        wheel.insert(tick, Some(tick));
    }
    assert_eq!(wheel.next_tick(10), Some(130));
    assert_eq!(wheel.next_tick(9), Some(128), "the first tick of the slot");
    assert_eq!(fired(&mut wheel, 128), []);
    assert_eq!(wheel.next_tick(0), Some(130), "exact on level 0");
}

#[test]
fn unlinking_the_head_the_middle_the_tail_and_the_only_one() {
    for victim in 0..3 {
        let mut wheel = Wheel::new();
        let keys = [0, 1, 2].map(|value| wheel.insert(500, Some(value)));
        assert_eq!(wheel.remove(keys[victim]), Some(victim as u64));
        let left: Vec<u64> = (0..3).filter(|value| *value != victim as u64).collect();
        assert_eq!(fired(&mut wheel, 500), left);
    }
    let mut wheel = Wheel::new();
    let only = wheel.insert(500, Some(0));
    assert_eq!(wheel.remove(only), Some(0));
    assert!(wheel.is_idle());
    assert_eq!(wheel.next_tick(8), None);
    assert_eq!(fired(&mut wheel, 500), []);
}

#[test]
fn a_fired_entry_keeps_its_key_until_it_is_released() {
    let mut wheel = Wheel::new();
    let key = wheel.insert(1, Some(1));
    assert_eq!(fired(&mut wheel, 1), [1]);
    let other = wheel.insert(2, Some(2));
    assert_ne!(key, other);
    assert!(wheel.is_fired(key));
    wheel.reset(key, 3);
    assert!(!wheel.is_fired(key));
    assert_eq!(wheel.pop_due(3).map(|(_, value)| value), Some(Some(2)));
    assert_eq!(wheel.pop_due(3).map(|(_, value)| value), Some(None));
    assert_eq!(wheel.remove(key), None);
    assert_eq!(wheel.remove(other), None);
}

#[test]
fn an_empty_wheel_gives_its_memory_back() {
    let mut wheel = Wheel::new();
    let keys: Vec<Key> = (0..5_000).map(|n| wheel.insert(n, Some(n))).collect();
    for key in keys {
        wheel.remove(key);
    }
    assert_eq!(wheel.entries.capacity(), 0);
    let key = wheel.insert(1, Some(1));
    wheel.remove(key);
    assert_ne!(wheel.entries.capacity(), 0, "a few are kept");
}
