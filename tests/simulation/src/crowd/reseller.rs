//! What the callers of the reseller API do, and what must be true in the end.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{Answered, CallOptions, CommandId, Holds};
use hopline::wire::Request;
use hopline::{Effect, Error};

use super::{Crowd, Out};
use crate::doubt::Reconciled;
use crate::world::is_login;

/// What the callers did and know, over all processes.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// Starts without a name of their own, of orders and of adjustments.
    orders: u32,
    adjustments: u32,
    /// The orders that were handed over.
    known: BTreeSet<String>,
    /// A doubt was settled without a look at what it is about.
    pub(super) settled: bool,
    /// The service has refused the login of this client.
    pub(super) refused: bool,
    /// What was answered last.
    last: Option<String>,
}

impl Books {
    pub(super) fn learn(&mut self, result: &Result<Answered, Error>) {
        match result {
            Ok(answered) => {
                self.known.extend(answered.facts.order_no.clone());
                self.last = Some(answered.raw.text().to_owned());
            }
            Err(error) => self.known.extend(error.order_no.clone().filter(|_| error.effect == Effect::Done)),
        }
    }
}

/// An order; how many addresses it has tells whose it is.
fn order(addresses: u64) -> String {
    format!(
        r#"{{"poolId":"static-us","userId":200001,"unitPrice":0,"totalAmount":0,"ipCount":{addresses},"cycleTimes":1,"duration":1,"unit":"month"}}"#
    )
}

fn adjustment(remark: &str) -> String {
    format!(r#"{{"user_id":200001,"amount":1,"remark":"{remark}"}}"#)
}

/// How many addresses an order without a name has.
const UNNAMED: u64 = 5;

impl Crowd {
    pub(super) fn start_at_reseller(&mut self) -> CommandId {
        match self.below(9) {
            0..=2 => {
                let name = self.below(4);
                self.client.start_json("place_order", &order(1 + name), CallOptions::intent(format!("order-{name}")))
            }
            3 => {
                self.books.orders += 1;
                self.client.start_json("place_order", &order(UNNAMED), CallOptions::default())
            }
            4 => {
                let name = format!("money-{}", self.below(3));
                self.client.start_json("adjust_sub_user_balance", &adjustment(&name), CallOptions::intent(name))
            }
            5 => {
                self.books.adjustments += 1;
                let remark = format!("plain-{}", self.books.adjustments);
                self.client.start_json("adjust_sub_user_balance", &adjustment(&remark), CallOptions::default())
            }
            6 => {
                let placed = self.world.service.backend(self.world.now.unix).static_orders;
                let order = placed.first().map(|order| order.order_no.clone()).unwrap_or_else(|| "none".to_owned());
                let options = CallOptions { deadline_ms: Some(5000), ..CallOptions::default() };
                self.client.start_json("wait_order", &format!("{{\"order_no\":\"{order}\"}}"), options)
            }
            7 => {
                let doubt = self.client.saved().into_iter().find(|saved| saved.holds == Holds::InDoubtForGood);
                let record = doubt.map(|saved| saved.record.to_string()).unwrap_or_default();
                self.client.start_json("reconcile", &format!("{{\"record\":\"{record}\"}}"), CallOptions::default())
            }
            _ => self.client.start_json("get_current_balance", "{}", CallOptions::default()),
        }
    }

    /// One login at a time, none after a refusal, and no request without a token.
    pub(super) fn check_login(&self, request: &Request) -> Result<(), String> {
        let under_way = || self.out.iter().any(|out| matches!(out, Out::Send(_, other) if is_login(other)));
        match is_login(request) {
            true if under_way() => Err("two logins were under way".into()),
            true if self.books.refused => Err("a login was sent again after it was refused".into()),
            false if request.header("x-api-key").or(request.header("authorization")).is_none() => {
                Err(format!("{} was sent without a token", request.url))
            }
            _ => Ok(()),
        }
    }

    /// Nothing was done twice, and every order is known or shown by a reconcile.
    pub(super) fn count_at_reseller(&mut self) -> Result<(), String> {
        let mut books = self.world.service.backend(self.world.now.unix);
        // The reseller has orders of its own from the beginning.
        books.static_orders.retain(|order| order.user_id == books.users[0].id);
        let mut placed: BTreeMap<usize, u32> = BTreeMap::new();
        books.static_orders.iter().for_each(|order| *placed.entry(order.ip_count).or_default() += 1);
        for (addresses, times) in placed {
            let most = if addresses as u64 == UNNAMED { self.books.orders } else { 1 };
            if times > most {
                return Err(format!("an order with {addresses} addresses was placed {times} times, and started {most} times"));
            }
        }
        let mut adjusted: BTreeMap<&str, u32> = BTreeMap::new();
        books.entries.iter().filter_map(|entry| entry.remark.as_deref()).for_each(|remark| *adjusted.entry(remark).or_default() += 1);
        if let Some((remark, times)) = adjusted.into_iter().find(|(_, times)| *times > 1) {
            return Err(format!("the adjustment `{remark}` was made {times} times"));
        }
        let saved = self.client.saved();
        let mut known: BTreeSet<String> = saved.iter().filter_map(|saved| saved.order_no.clone()).collect();
        known.append(&mut self.books.known);
        for doubt in saved.iter().filter(|saved| saved.holds == Holds::InDoubtForGood && saved.operation == "create_static_order") {
            let command = self.client.start_json("reconcile", &format!("{{\"record\":\"{}\"}}", doubt.record), CallOptions::default());
            self.follow(command);
            self.end_all()?;
            let shown = self.books.last.take().and_then(|answer| Reconciled::read(&answer));
            known.extend(shown.ok_or("the reconcile does not show all there is")?);
        }
        let lost: Vec<&String> = books.static_orders.iter().map(|order| &order.order_no).filter(|order| !known.contains(*order)).collect();
        if lost.is_empty() || self.books.settled { Ok(()) } else { Err(format!("placed and forgotten: {lost:?}")) }
    }
}
