//! The sharing of a pool's sessions among its clients: what each says of its needs in the pool's record, and what follows for the others.
//!
//! No clock of another client counts: an entry has a number that grows, and is believed for as long as it was seen to change not too long ago.

use std::collections::VecDeque;

use super::rules::{PoolRule, holds};
use crate::collections::Map;
use crate::contract::stored;
use crate::time::Millis;

/// Somebody who waits for so long without a break makes a client short of sessions.
const SHORT: Millis = 2000;
/// A break in the waiting that is no longer than this is none, as when a lease is handed on.
const BREAK: Millis = 250;
/// A client that waits and finds nothing in the store for so long tells the others to share what there is.
const DRY: Millis = 5000;
/// Sessions that were not needed for so long are told to others.
const SPARE: Millis = 2000;
/// An entry is put again after this.
const PUT_AGAIN: Millis = 5000;
/// An entry that did not change for so long is not believed any more.
const BELIEVED: Millis = 10_000;
/// Where there are more clients than sessions, each keeps a session for so long.
const SLICE: Millis = 3000;
/// A buyer asks for the spare sessions of others for so long before it buys.
pub(crate) const SPARE_FIRST: Millis = 5000;
/// A record lists no more clients.
const CLIENTS: usize = 1024;

/// Returns true if nobody has waited for too long since then for the waiting to go on.
fn is_break(until: Millis, now: Millis) -> bool {
    now.saturating_sub(until) > BREAK || !holds(PoolRule::BreaksAreShort)
}

/// The entry of a client in the pool's record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct ClientEntry {
    client: String,
    /// Grows with each put.
    number: u32,
    /// So many sessions it needs.
    needs: u32,
    /// So many it has, and of these so many are being bought.
    has: u32,
    buying: u32,
    /// So many it has and does not need.
    spare: u32,
    /// True if somebody waits there, and it has less than its share.
    short: bool,
    /// True if the store has nothing for it.
    dry: bool,
    /// True if it takes its clock to be ahead of the others', and so waits for them to try.
    late: bool,
}
stored!(ClientEntry { client, number, needs, has, buying, spare, short, dry, late });

/// The sessions that this client has now.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Here {
    /// Its sessions, also those that are on their way or being changed; and of these the ones that are being bought.
    pub(crate) has: u32,
    pub(crate) buying: u32,
    /// The free ones.
    pub(crate) free: u32,
    /// The sessions that there may be.
    pub(crate) size: u32,
}

impl Here {
    /// The sessions that can be shared: of a purchase nobody knows what comes.
    pub(crate) fn there(self) -> u32 {
        self.has.saturating_sub(self.buying)
    }
}

/// The largest number of the last time.
#[derive(Debug, Clone, Default, Hash)]
struct Peak {
    /// How long that time is.
    span: Millis,
    now: u32,
    /// The numbers before, each larger than those after it, and when each ended.
    before: VecDeque<(Millis, u32)>,
}

impl Peak {
    fn note(&mut self, number: u32, now: Millis) {
        if number != self.now {
            while self.before.back().is_some_and(|(_, last)| *last <= self.now) {
                self.before.pop_back();
            }
            self.before.push_back((now, self.now));
            self.now = number;
        }
        while self.before.front().is_some_and(|(end, _)| now.saturating_sub(*end) >= self.span) {
            self.before.pop_front();
        }
    }

    fn most(&self, now: Millis) -> u32 {
        let before = self.before.iter().find(|(end, _)| now.saturating_sub(*end) < self.span);
        before.map_or(0, |(_, number)| *number).max(self.now)
    }

    /// When it is less, if nothing is noted.
    fn next(&self) -> Option<Millis> {
        self.before.front().filter(|(_, number)| *number > self.now).map(|(end, _)| end.saturating_add(self.span))
    }
}

/// The entries of others that are believed, taken together.
#[derive(Debug, Clone, Default, Hash)]
struct Others {
    /// Until when that is so.
    until: Option<Millis>,
    /// The needs of each, the smallest first.
    needs: Vec<u32>,
    /// The sessions that they have together, without those that are being bought.
    there: u32,
    is_spare: bool,
    is_short: bool,
    is_dry: bool,
    /// True if one of them needs more than it has, and if one of these does not itself wait for others to try.
    lack: bool,
    tries: bool,
    /// True if one of them is short, and has none.
    has_none: bool,
}

/// The needs of this client, and those that others have told.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Sharing {
    client: String,
    number: u32,
    keep_ready: u32,
    /// The sessions that were in use or waited for, within `idle_release` and within the time after which they are spare.
    used: Peak,
    used_of_late: Peak,
    /// The sessions that are in use or waited for, with those that a key had within `idle_release`, which it is to find again.
    in_hand: u32,
    /// Since when somebody waits, and when the last one ceased to.
    waits_since: Option<Millis>,
    waited_until: Option<Millis>,
    /// Since when the store has nothing to take or to buy.
    nothing_since: Option<Millis>,
    /// The entries of others, and when each was seen to change.
    entries: Map<String, (Millis, ClientEntry)>,
    others: Others,
    /// The sessions that this client and the others had, together. One that goes from one of them to another is nobody's meanwhile, so the most
    /// that were there within some time count.
    there: Peak,
    /// True if this client waits for others to try what its clock shows to be due.
    is_late: bool,
    /// The entry that was put last, and when.
    said: Option<ClientEntry>,
    said_at: Millis,
}

impl Sharing {
    pub(crate) fn new(client: String, idle_release: Millis, keep_ready: u32) -> Self {
        let peak = |span| Peak { span, ..Peak::default() };
        let (used, used_of_late, there) = (peak(idle_release), peak(SPARE), peak(BELIEVED));
        Sharing { client, keep_ready, used, used_of_late, there, ..Sharing::default() }
    }

    /// Notes how many sessions of this client are there, of these how many are lent, and how many free ones a key had a short time ago; and how
    /// many more would help those who wait.
    pub(crate) fn note(&mut self, there: u32, lent: u32, of_keys: u32, waited_for: u32, now: Millis) {
        if waited_for > 0 {
            let is_after_break = self.waited_until.take().is_some_and(|until| is_break(until, now));
            if self.waits_since.is_none() || is_after_break {
                self.waits_since = Some(now);
            }
        } else if self.waits_since.is_some() && self.waited_until.is_none() {
            self.waited_until = Some(now);
        }
        let used = lent.saturating_add(waited_for);
        self.in_hand = used.saturating_add(of_keys);
        self.used.note(used, now);
        self.used_of_late.note(used, now);
        if self.others.until.is_some_and(|until| until <= now) {
            self.look_at_others(now);
        }
        self.there.note(self.others.there.saturating_add(there), now);
    }

    /// Returns true if the store had nothing when it was asked last.
    pub(crate) fn has_nothing(&self) -> bool {
        self.nothing_since.is_some()
    }

    /// The store had nothing to take or to buy.
    pub(crate) fn found_nothing(&mut self, now: Millis) {
        self.nothing_since.get_or_insert(now);
    }

    /// A session is being bought. That one was taken over does not say that there are more.
    pub(crate) fn bought(&mut self) {
        self.nothing_since = None;
    }

    /// The sessions that this client needs.
    fn needs(&self, now: Millis) -> u32 {
        let used = if holds(PoolRule::NeedsLast) { self.used.most(now) } else { self.used.now };
        used.max(self.in_hand).saturating_add(if holds(PoolRule::ReadyIsNeeded) { self.keep_ready } else { 0 })
    }

    /// For how long somebody has waited without a break.
    fn waited(&self, now: Millis) -> Millis {
        let is_over = self.waited_until.is_some_and(|until| is_break(until, now));
        self.waits_since.filter(|_| !is_over).map_or(0, |since| now.saturating_sub(since))
    }

    /// Takes in the entries of the pool's record.
    pub(crate) fn read(&mut self, entries: &[ClientEntry], now: Millis) {
        let mut read = Map::default();
        for entry in entries.iter().filter(|entry| entry.client != self.client).take(CLIENTS) {
            let known =
                self.entries.get(&entry.client).filter(|(_, known)| known.number == entry.number && holds(PoolRule::ChangesAreBelieved));
            read.insert(entry.client.clone(), (known.map_or(now, |(at, _)| *at), entry.clone()));
        }
        self.entries = read;
        self.look_at_others(now);
    }

    fn look_at_others(&mut self, now: Millis) {
        let mut others = Others::default();
        for (at, entry) in self.entries.values().filter(|(at, _)| now.saturating_sub(*at) < BELIEVED) {
            others.until = others.until.into_iter().chain([at.saturating_add(BELIEVED)]).min();
            others.needs.push(entry.needs);
            others.there = others.there.saturating_add(entry.has.saturating_sub(entry.buying));
            others.is_spare |= entry.spare > 0;
            others.is_short |= entry.short;
            others.is_dry |= entry.dry;
            others.lack |= entry.needs > entry.has;
            others.tries |= entry.needs > entry.has && !entry.late;
            others.has_none |= entry.short && entry.has == 0;
        }
        others.needs.sort_unstable();
        self.others = others;
    }

    /// How many sessions others say that they have.
    pub(crate) fn others_have(&self) -> u32 {
        self.others.there
    }

    /// True if others have less than their share.
    pub(crate) fn are_others_short(&self) -> bool {
        self.others.is_short
    }

    /// True if others need more sessions than they have, and try to buy one where that is due.
    pub(crate) fn do_others_try(&self) -> bool {
        self.others.tries
    }

    /// This client waits for others to try, or not any more.
    pub(crate) fn waits_for_others(&mut self, is_late: bool) {
        self.is_late = is_late;
    }

    /// True if others have sessions that they do not need.
    pub(crate) fn have_others_spare(&self) -> bool {
        self.others.is_spare
    }

    /// The sessions that can be shared: as many as there may be, or, where the store has nothing for somebody, as there are.
    fn there(&self, here: Here, now: Millis) -> u32 {
        let there = self.there.most(now).max(self.others.there.saturating_add(here.there()));
        if (self.others.is_dry || self.is_dry(now)) && holds(PoolRule::WhatIsThereIsShared) {
            here.size.min(there.max(1))
        } else {
            here.size
        }
    }

    /// The share of this client: its needs, up to the level at which all together get no more than there is.
    fn share(&self, here: Here, now: Millis) -> u32 {
        let mine = self.needs(now).max(1);
        let mut needs = self.others.needs.clone();
        needs.insert(needs.partition_point(|need| *need < mine), mine);
        let mut left = self.there(here, now);
        if !holds(PoolRule::ShareIsALevel) {
            return mine.min(left / u32::try_from(needs.len()).unwrap_or(u32::MAX)).max(1);
        }
        for (at, need) in needs.iter().enumerate() {
            let those = u32::try_from(needs.len() - at).unwrap_or(u32::MAX);
            if need.saturating_mul(those) >= left {
                return mine.min(left / those).max(1);
            }
            left -= need;
        }
        mine
    }

    fn is_dry(&self, now: Millis) -> bool {
        holds(PoolRule::DryIsTold) && self.waited(now) >= SHORT && self.nothing_since.is_some_and(|since| now.saturating_sub(since) >= DRY)
    }

    fn is_short(&self, here: Here, now: Millis) -> bool {
        holds(PoolRule::ShortIsTold) && self.waited(now) >= SHORT && (here.has == 0 || here.has < self.share(here, now))
    }

    /// The sessions beyond those that were used of late.
    fn spare(&self, here: Here, now: Millis) -> u32 {
        let recent = self.used_of_late.most(now).max(self.in_hand).saturating_add(self.keep_ready);
        if holds(PoolRule::SpareIsTold) { here.free.min(here.has.saturating_sub(recent)) } else { 0 }
    }

    /// How many of the free sessions go back to the store: those that are not needed, and, where others are short, those above the share.
    pub(crate) fn gives_back(&self, here: Here, now: Millis) -> u32 {
        let needs = self.needs(now);
        let needs = if holds(PoolRule::UnneededGoesBack) { needs } else { here.has };
        let keeps = if self.others.is_short { needs.min(self.share(here, now)) } else { needs };
        here.has.saturating_sub(keeps).min(here.free)
    }

    /// Where there are more clients than sessions and one has none: when a session goes back that is this client's since then, and for how
    /// long no other is asked for after it.
    pub(crate) fn slice(&self, here: Here, since: Millis, now: Millis) -> Option<(Millis, Millis)> {
        let clients = Millis::try_from(self.others.needs.len()).unwrap_or(Millis::MAX) + 1;
        let there = Millis::from(self.there(here, now).max(1));
        let rests = if holds(PoolRule::TurnsRest) { SLICE * (clients - there) / there } else { 0 };
        (self.others.has_none && clients > there && holds(PoolRule::TurnsAreTaken)).then(|| (since.saturating_add(SLICE), rests))
    }

    /// True if further sessions come to this client only as others need less: it has its share, and nobody tells of one to spare.
    pub(crate) fn has_its_share(&self, here: Here, now: Millis) -> bool {
        !self.others.needs.is_empty() && !self.others.is_spare && here.has > 0 && here.has >= self.share(here, now)
    }

    /// The sessions that this client may have, and ask for.
    pub(crate) fn most(&self, here: Here, now: Millis) -> u32 {
        if self.others.is_short && holds(PoolRule::ShareIsTheMost) { self.share(here, now) } else { u32::MAX }
    }

    /// The entry of this client, where it has something to say.
    fn entry(&self, here: Here, now: Millis) -> Option<ClientEntry> {
        let (needs, spare) = (self.needs(now), self.spare(here, now));
        let is_holder = here.has > 0 && self.others.lack && holds(PoolRule::HoldersTell);
        if needs <= here.has && spare == 0 && !is_holder {
            return None;
        }
        let (client, number) = (self.client.clone(), self.number);
        Some(ClientEntry {
            client,
            number,
            needs,
            has: here.has,
            buying: here.buying,
            spare,
            short: self.is_short(here, now),
            dry: self.is_dry(now),
            late: self.is_late,
        })
    }

    /// True if the entry of this client is to be put; or, where that costs nothing now, if its time comes within `ahead`.
    pub(crate) fn is_to_put(&self, here: Here, now: Millis, ahead: Millis) -> bool {
        match (self.entry(here, now), &self.said) {
            (None, said) => said.is_some(),
            (Some(_), None) => true,
            (Some(entry), Some(said)) => {
                let news = entry.needs.abs_diff(said.needs) > (said.needs / 4).max(1);
                let is_spare = (entry.spare > 0) != (said.spare > 0);
                let is_time = now.saturating_add(ahead).saturating_sub(self.said_at) >= PUT_AGAIN && holds(PoolRule::EntriesArePutAgain);
                news || is_spare || (entry.short, entry.dry) != (said.short, said.dry) || is_time
            }
        }
    }

    /// True if an entry of this client is in the record.
    pub(crate) fn is_listed(&self) -> bool {
        self.said.is_some()
    }

    /// The entries of the record with that of this client, which are put now; `here` is none where the pool is being closed. Those that are
    /// not believed any more are dropped.
    pub(crate) fn put_entries(&mut self, here: Option<Here>, now: Millis) -> Vec<ClientEntry> {
        self.number = self.number.wrapping_add(1);
        let own = here.and_then(|here| self.entry(here, now));
        (self.said, self.said_at) = (own.clone(), now);
        let others = self.entries.values().filter(|(at, _)| now.saturating_sub(*at) < BELIEVED).map(|(_, entry)| entry);
        others.cloned().chain(own).collect()
    }

    /// The entry could not be put.
    pub(crate) fn not_put(&mut self) {
        self.said_at = Millis::MIN / 2;
    }

    /// When something of this is different though nobody does anything.
    pub(crate) fn next(&self, now: Millis) -> Option<Millis> {
        let waited = self.waits_since.filter(|_| self.waited_until.is_none());
        let after = |since: Option<Millis>, time: Millis| since.map(|since| since.saturating_add(time));
        let dry = after(self.nothing_since.filter(|_| waited.is_some()), DRY);
        let put = after(self.said.as_ref().map(|_| self.said_at), PUT_AGAIN);
        let times = [self.others.until, self.used.next(), self.used_of_late.next(), after(waited, SHORT), dry, put];
        times.into_iter().flatten().filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that uses so many sessions and waits for so many more, for 10 seconds.
    fn client(number: u64, lent: u32, waited_for: u32) -> Sharing {
        let mut sharing = Sharing::new(number.to_string(), 5000, 0);
        sharing.note(lent, lent, 0, waited_for, 0);
        sharing.note(lent, lent, 0, waited_for, 10_000);
        sharing
    }

    fn here(has: u32, size: u32) -> Here {
        Here { has, size, ..Here::default() }
    }

    /// The part of `size` that each gets, by what they need and have, where somebody waits with each.
    fn shares(size: u32, clients: &[(u32, u32)]) -> Vec<u32> {
        let mut all: Vec<Sharing> =
            (0_u64..).zip(clients).map(|(number, (needs, has))| client(number, (*needs).min(*has), needs.saturating_sub(*has))).collect();
        let told: Vec<ClientEntry> =
            all.iter().zip(clients).filter_map(|(sharing, (_, has))| sharing.entry(here(*has, size), 10_000)).collect();
        let told: Vec<ClientEntry> = all
            .iter_mut()
            .zip(clients)
            .filter_map(|(sharing, (_, has))| {
                sharing.read(&told, 10_000);
                sharing.entry(here(*has, size), 10_000)
            })
            .collect();
        all.iter_mut()
            .zip(clients)
            .map(|(sharing, (_, has))| {
                sharing.read(&told, 10_000);
                sharing.share(here(*has, size), 10_000)
            })
            .collect()
    }

    #[test]
    fn clients_that_wait_for_others_to_try_do_not_wait_for_each_other() {
        for late in [false, true] {
            let (mut one, mut other) = (client(1, 0, 2), client(2, 0, 2));
            other.waits_for_others(late);
            one.read(&[other.entry(here(0, 4), 10_000).expect("needs two")], 10_000);
            assert_eq!(one.do_others_try(), !late);
        }
    }

    #[test]
    fn who_needs_less_gets_that_and_the_others_what_is_left_in_equal_parts() {
        for (size, clients, expected) in [
            (20, &[(20, 20)][..], &[20][..]),
            (20, &[(20, 20), (20, 0)], &[10, 10]),
            (20, &[(20, 9), (20, 5), (20, 3), (20, 2), (20, 1), (20, 0)], &[3; 6]),
            (20, &[(2, 2), (5, 3), (10, 5), (20, 10), (20, 0)], &[2, 4, 4, 4, 4]),
            (20, &[(20, 4), (20, 4), (20, 4), (20, 4), (20, 4), (1, 0)], &[3, 3, 3, 3, 3, 1]),
            (12, &[(1, 12), (12, 0)], &[1, 11]),
            (3, &[(4, 1), (4, 1), (4, 1), (4, 0), (4, 0), (4, 0)], &[1; 6]),
            (30, &[(5, 5), (0, 0)], &[5, 1]),
        ] {
            assert_eq!(shares(size, clients), expected, "{size} {clients:?}");
        }
    }

    #[test]
    fn where_the_store_has_nothing_the_sessions_that_are_there_are_shared() {
        let (mut one, mut other) = (client(1, 6, 14), client(2, 0, 20));
        other.found_nothing(0);
        let told = |sharing: &Sharing, has, now| sharing.entry(here(has, 20), now).into_iter().collect::<Vec<_>>();
        other.read(&told(&one, 6, 10_000), 10_000);
        one.read(&told(&other, 0, 10_000), 10_000);
        assert_eq!((one.share(here(6, 20), 10_000), other.share(here(0, 20), 10_000)), (3, 3));
        let gives = one.gives_back(Here { has: 6, free: 2, size: 20, ..Here::default() }, 10_000);
        assert_eq!((gives, one.most(here(6, 20), 10_000), other.most(here(0, 20), 10_000)), (2, 3, 3));
        // The client buys one.
        other.bought();
        assert_eq!(other.share(here(1, 20), 10_000), 10);
    }

    #[test]
    fn a_session_on_its_way_from_one_client_to_another_is_there() {
        let mut one = client(1, 6, 4);
        let others: Vec<ClientEntry> = [2, 3].into_iter().filter_map(|number| client(number, 0, 10).entry(here(0, 20), 10_000)).collect();
        one.found_nothing(0);
        one.read(&others, 10_000);
        assert_eq!(one.gives_back(Here { has: 6, free: 6, size: 20, ..Here::default() }, 10_000), 4);
        // The client has given back four that nobody has yet.
        one.note(2, 2, 0, 8, 10_100);
        assert_eq!((one.share(here(2, 20), 10_100), one.slice(here(2, 20), 0, 10_100)), (2, None));
        assert_eq!(one.gives_back(Here { has: 2, free: 2, size: 20, ..Here::default() }, 10_100), 0);
        // They have not come to anybody: there are fewer.
        one.note(2, 2, 0, 8, 20_100);
        one.read(&others.iter().map(|entry| ClientEntry { number: 9, ..entry.clone() }).collect::<Vec<_>>(), 20_100);
        assert_eq!((one.share(here(2, 20), 20_100), one.slice(here(2, 20), 0, 20_100)), (1, Some((3000, 1500))));
    }

    #[test]
    fn what_is_being_bought_is_not_shared_before_it_is_there() {
        let (mut buyer, mut other) = (client(1, 1, 9), client(2, 0, 10));
        let buys = Here { has: 9, buying: 8, free: 0, size: 20 };
        other.found_nothing(0);
        let told = |sharing: &Sharing, here, now| sharing.entry(here, now).into_iter().collect::<Vec<_>>();
        other.read(&told(&buyer, buys, 10_000), 10_000);
        buyer.read(&told(&other, here(0, 20), 10_000), 10_000);
        assert_eq!((buyer.share(buys, 10_000), other.share(here(0, 20), 10_000)), (1, 1));
        // Of the eight four came: there are five.
        buyer.note(5, 1, 0, 9, 12_000);
        assert_eq!(buyer.share(here(5, 20), 12_000), 2);
    }

    #[test]
    fn who_has_its_share_gets_more_only_where_others_need_less() {
        let has_share = |mine: (u32, u32), theirs: &[ClientEntry]| {
            let mut sharing = client(1, mine.0.min(mine.1), mine.0.saturating_sub(mine.1));
            sharing.read(theirs, 10_000);
            sharing.has_its_share(here(mine.1, 20), 10_000)
        };
        let entry = |needs, has, spare| ClientEntry { client: "other".into(), number: 1, needs, has, spare, ..ClientEntry::default() };
        for (mine, theirs, expected) in [
            ((20, 10), vec![entry(20, 10, 0)], true),
            ((20, 9), vec![entry(20, 11, 0)], false),
            ((20, 10), vec![entry(2, 10, 8)], false),
            // Nobody else is there, or has said anything.
            ((20, 10), vec![], false),
            ((20, 0), vec![entry(20, 20, 0)], false),
        ] {
            assert_eq!(has_share(mine, &theirs), expected, "{mine:?} {theirs:?}");
        }
    }

    #[test]
    fn a_client_is_short_once_somebody_waits_for_two_seconds_without_a_break() {
        let mut sharing = Sharing::new("1".into(), 5000, 0);
        let at = |sharing: &mut Sharing, waited_for, now| {
            sharing.note(0, 0, 0, waited_for, now);
            sharing.is_short(here(0, 1), now)
        };
        assert_eq!([(1, 0), (1, 1999), (1, 2000)].map(|(waits, now)| at(&mut sharing, waits, now)), [false, false, true]);
        // A lease that is handed on is no break; a longer time is.
        assert_eq!(
            [(0, 3000), (1, 3250), (0, 4000), (1, 4251)].map(|(waits, now)| at(&mut sharing, waits, now)),
            [true, true, true, false]
        );
        assert!(!at(&mut sharing, 1, 6250) && at(&mut sharing, 1, 6251));
        assert!(!sharing.is_short(here(1, 1), 6251), "it has its share");
    }

    #[test]
    fn a_session_that_a_key_had_a_short_time_ago_is_needed() {
        let mut sharing = Sharing::new("1".into(), 5000, 0);
        let now = Here { has: 5, free: 4, size: 20, ..Here::default() };
        for (of_keys, gives) in [(4, 0), (2, 2), (0, 4)] {
            sharing.note(5, 1, of_keys, 0, 10_000);
            assert_eq!((sharing.gives_back(now, 10_000), sharing.spare(now, 10_000)), (gives, gives));
        }
    }

    #[test]
    fn what_was_not_needed_of_late_goes_back_and_what_is_to_be_at_hand_stays() {
        for (keep_ready, gives) in [(0, [0, 0, 1, 1, 4]), (3, [0, 0, 0, 0, 1])] {
            let mut sharing = Sharing::new("1".into(), 5000, keep_ready);
            let now = Here { has: 5, free: 4, size: 20, ..Here::default() };
            [(5, 0), (2, 500), (4, 600), (1, 1000)].into_iter().for_each(|(used, at)| sharing.note(5, used, 0, 0, at));
            assert_eq!([1000, 5499, 5500, 5999, 6000].map(|at| sharing.gives_back(now, at)), gives);
            // Two seconds after the peak others may know.
            assert_eq!([2499, 3000].map(|at| sharing.spare(now, at) > 0), [false, keep_ready < 4]);
            assert_eq!(sharing.next(3000), Some(5500));
            sharing.note(5, 1, 0, 0, 5500);
            assert_eq!(sharing.next(5500), Some(6000));
        }
    }

    #[test]
    fn an_entry_is_believed_for_as_long_as_its_number_grows() {
        let mut sharing = client(1, 5, 0);
        let entry = |number, short| ClientEntry { client: "other".into(), number, needs: 5, short, ..ClientEntry::default() };
        sharing.read(&[entry(1, true)], 10_000);
        sharing.read(&[entry(1, true)], 19_000);
        let is_short = |sharing: &mut Sharing, now| {
            sharing.note(5, 5, 0, 0, now);
            sharing.are_others_short()
        };
        assert!(is_short(&mut sharing, 19_999) && !is_short(&mut sharing, 20_000));
        sharing.read(&[entry(2, true)], 21_000);
        assert!(is_short(&mut sharing, 30_999));
        // Whoever puts drops those that are not believed any more.
        assert_eq!([30_999, 31_000].map(|now| sharing.clone().put_entries(None, now).len()), [1, 0]);
    }

    #[test]
    fn an_entry_is_put_where_it_says_something_new_and_each_five_seconds() {
        let mut sharing = Sharing::new("1".into(), 5000, 0);
        assert!(!sharing.is_to_put(here(0, 20), 0, 0) && sharing.put_entries(Some(here(0, 20)), 0).is_empty());
        sharing.note(2, 2, 0, 6, 0);
        assert!(sharing.is_to_put(here(2, 20), 0, 0));
        let put = sharing.put_entries(Some(here(2, 20)), 0);
        assert_eq!(put.first().map(|entry| (entry.number, entry.needs, entry.has, entry.short)), Some((2, 8, 2, false)));
        assert!(!sharing.is_to_put(here(2, 20), 1999, 0) && sharing.is_to_put(here(2, 20), 2000, 0), "it is short");
        sharing.put_entries(Some(here(2, 20)), 2000);
        sharing.note(2, 2, 0, 8, 2100);
        assert!(!sharing.is_to_put(here(2, 20), 3999, 3000) && sharing.is_to_put(here(2, 20), 4000, 3000), "it is read then anyway");
        assert!(!sharing.is_to_put(here(2, 20), 6999, 0) && sharing.is_to_put(here(2, 20), 7000, 0));
        sharing.note(2, 2, 0, 9, 2200);
        assert!(sharing.is_to_put(here(2, 20), 2200, 0), "a quarter more");
        sharing.put_entries(Some(here(2, 20)), 2200);
        sharing.not_put();
        assert!(sharing.is_to_put(here(2, 20), 2300, 0));
        // It has what it needs.
        assert!(sharing.is_listed() && sharing.is_to_put(here(11, 20), 2400, 0));
        assert!(sharing.put_entries(Some(here(11, 20)), 2400).is_empty() && !sharing.is_listed());
    }

    #[test]
    fn where_there_are_more_clients_than_sessions_each_has_one_for_a_time() {
        let mut holder = client(0, 1, 3);
        let waiters: Vec<ClientEntry> = (1..6).filter_map(|number| client(number, 0, 4).entry(here(0, 3), 10_000)).collect();
        holder.read(&waiters, 10_000);
        assert_eq!(holder.slice(here(1, 3), 8000, 10_000), Some((11_000, 3000)));
        assert_eq!(holder.slice(here(1, 6), 8000, 10_000), None, "there is one for each");
        let fed: Vec<ClientEntry> = waiters.into_iter().map(|entry| ClientEntry { has: 1, ..entry }).collect();
        holder.read(&fed, 10_000);
        assert_eq!(holder.slice(here(1, 3), 8000, 10_000), None, "nobody has none");
    }
}
