//! A reseller's work: a sub-user is made and funded, gets static proxies, which are waited for, renewed and cancelled. Killed at
//! any moment and started again, it goes on where it was. A write whose answer was lost is never sent again: it is looked up,
//! and a person says what became of it.
//!
//!     HOPLINE_BACKEND_URL=… HOPLINE_USERNAME=… HOPLINE_PASSWORD=… cargo run --example reseller

use std::error::Error;

use hopline::client::{OrderReply, Outputs, Phase, PlaceOrder, RecordId, RecordKind, Saved, Ticket};
use hopline::contract::reseller::{
    AdjustSubUserBalance, CancelStaticOrder, CreateStaticOrder, CreateUser, OrderUnit, QueryProducts, RenewStaticOrder,
};
use hopline::contract::{Api, Decimal, Secret};
use hopline::{CallOptions, Client, ClientOptions, Effect, drive};
use serde::Deserialize;
use ureq_example::{Ureq, entropy};

#[path = "ureq.rs"]
#[allow(dead_code, reason = "it is a program of its own; only its transport and its store are used here")]
mod ureq_example;

/// A client and what sends for it.
struct Reseller(Client, Ureq);

impl Reseller {
    /// Waits for what was started.
    fn wait<O: Outputs>(&mut self, ticket: Ticket<O>) -> Result<O::Output, hopline::Error> {
        drive(&mut self.0, ticket, &mut self.1)
    }

    /// Shows what the service has that may be an operation in doubt. Whoever knows which it is tells the client with `settle`.
    fn look_up(&mut self, record: &RecordId) -> Result<(), hopline::Error> {
        let asked = self.0.reconcile(record, CallOptions::default());
        let found = self.wait(asked)?;
        println!("{} may have been done; {} things may be it", found.operation, found.candidates.len());
        for candidate in found.candidates {
            println!("{} shows the same {}: {}", candidate.read, candidate.matched.join(", "), candidate.item.text());
        }
        Ok(())
    }

    /// What was in doubt when this ended the last time still is.
    fn doubts(&mut self) -> Result<Vec<Saved>, hopline::Error> {
        let (mut doubts, mut after) = (Vec::new(), None);
        loop {
            let asked = self.0.saved(after);
            let page = self.wait(asked)?;
            doubts.extend(page.entries.into_iter().filter(|saved| saved.holds == RecordKind::InDoubtForGood));
            after = page.after;
            if after.is_none() {
                return Ok(doubts);
            }
        }
    }

    /// The order that an earlier run placed; only where there is none, a product is chosen and ordered.
    fn order(&mut self) -> Result<OrderReply, Box<dyn Error>> {
        // The contract does not document which words end an order, so a program names those that it knows.
        let options = CallOptions { ends: vec!["failed".to_owned(), "cancelled".to_owned()], ..CallOptions::default() };
        let earlier = Ticket::<Option<PlaceOrder>>::of(self.0.resume_intent("order-17", options.clone()));
        if let Some(earlier) = self.wait(earlier)? {
            return Ok(earlier);
        }
        // An intent is our own name for a write: whoever starts it again gets what it brought, and nothing is done twice.
        let user = CreateUser { username: "shop-17".into(), password: Secret::new("a long password"), ..CreateUser::default() };
        let made = self.0.start(user, CallOptions::intent("user-17"));
        let user_id = self.wait(made)?.data.id.ok_or("the service did not say which number the sub-user has")?;
        let funds = AdjustSubUserBalance { user_id, amount: 50.into(), remark: "for May".into() };
        let funded = self.0.start(funds, CallOptions::intent("money-17"));
        self.wait(funded)?;

        let asked = self.0.start(QueryProducts::default(), CallOptions::default());
        let products = self.wait(asked)?.data.items;
        let in_stock = products.iter().filter(|one| one.stock > Some(Decimal::from(0)) && !one.needs_project_id());
        let product = in_stock.min_by_key(|one| one.price).ok_or("nothing is in stock; try again later")?;
        let order = CreateStaticOrder {
            pool_id: product.product_id.as_deref().unwrap_or_default().to_owned(),
            user_id,
            ip_count: 1.into(),
            duration: 1.into(),
            unit: OrderUnit::Month,
            cycle_times: 1.into(),
            ..CreateStaticOrder::default()
        };
        let placed = self.0.place_order(order, CallOptions { intent: Some("order-17".to_owned()), ..options });
        Ok(self.wait(placed)?)
    }

    fn work(&mut self) -> Result<(), Box<dyn Error>> {
        let placed = self.order()?;
        println!("order {} is {:?}", placed.order_no, placed.phase);
        match placed.phase {
            Phase::Ready => {}
            Phase::Ended => return Ok(()),
            _ => return Err("it is not active yet; start this again to wait on".into()),
        }
        // The contract does not document the fields of an item, so a program reads its own.
        #[derive(Deserialize)]
        struct Item {
            instances: Vec<Instance>,
        }
        #[derive(Deserialize)]
        struct Instance {
            ip: String,
            port: u16,
        }
        for item in &placed.order.items {
            item.read::<Item>()?.instances.iter().for_each(|proxy| println!("its proxy is {}:{}", proxy.ip, proxy.port));
        }

        let order_no = placed.order_no;
        let renewal = RenewStaticOrder {
            order_no: Some(order_no.clone()),
            duration: Some(1.into()),
            unit: Some(OrderUnit::Month),
            cycle_times: Some(1.into()),
            ..RenewStaticOrder::default()
        };
        let renewed = self.0.start(renewal, CallOptions::intent("renewal-17"));
        self.wait(renewed)?;
        let cancelled = self.0.start(CancelStaticOrder { order_no: order_no.clone() }, CallOptions::intent("end-17"));
        self.wait(cancelled)?;
        println!("order {order_no} was renewed and cancelled");
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = ClientOptions {
        api: Api::Reseller,
        base_url: std::env::var("HOPLINE_BACKEND_URL")?,
        username: Some(Secret::new(std::env::var("HOPLINE_USERNAME")?)),
        password: Some(Secret::new(std::env::var("HOPLINE_PASSWORD")?)),
        store: true,
        ..ClientOptions::default()
    };
    // It logs in by itself, with the first call.
    let mut reseller = Reseller(Client::new(options, entropy()?)?, Ureq::new("hopline-records")?);
    let doubts = reseller.doubts()?;
    for saved in &doubts {
        reseller.look_up(&saved.record)?;
    }
    if !doubts.is_empty() {
        return Err("look at them, then `settle` it as the one that it was, or as not happened".into());
    }
    let ended = reseller.work();
    // Now, too, somebody has to look before anything is sent again.
    if let Some(doubt) = ended.as_ref().err().and_then(|error| error.downcast_ref::<hopline::Error>())
        && doubt.effect == Effect::Unknown
        && let Some(record) = doubt.record.clone()
    {
        reseller.look_up(&RecordId(record))?;
    }
    ended
}
