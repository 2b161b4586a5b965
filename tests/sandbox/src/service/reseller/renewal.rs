//! The later operations on a static order: renewal of some or all of its instances, and cancellation.

use std::sync::Arc;

use serde::Serialize;

use super::books::Kind;
use super::call::Call;
use super::envelope::refused;
use super::input::agreed;
use super::static_order::{StaticOrder, Status, session_order_id};
use super::terms::Terms;
use crate::service::Service;
use crate::service::catalogue::STATIC;
use crate::service::envelope::{Number, Refusal, Reply};
use crate::service::input::{Body, required};

/// How a request names its order.
enum Target {
    Number(String),
    Id(i64),
}

#[derive(Serialize)]
struct Renewed<'a> {
    order_no: &'a str,
    #[serde(rename = "orderNo")]
    camel_order_no: &'a str,
    status: &'static str,
    renewed: Vec<String>,
    total_amount: Number,
}

pub(crate) fn renew(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let number = agreed("order_no", [body.text("order_no")?, body.text("orderNo")?])?;
    let id = id(&body)?;
    let instances = body.list::<String>("instances")?.filter(|list| !list.is_empty());
    let terms = Terms::read(&body)?;
    let by_number = number.map(|number| service.static_place(call, &Target::Number(number))).transpose()?;
    let by_id = id.map(|id| service.static_place(call, &Target::Id(id))).transpose()?;
    let place = required("order_no", agreed("order_id", [by_number, by_id])?)?;
    let order = service.backend.static_orders[place].clone();
    check_status(&order, call.now_ms, &[Status::Active, Status::Expired])?;
    let is_meant = |id: &String| instances.as_ref().is_none_or(|wanted| wanted.contains(id));
    let renewed: Vec<String> = order.instances.iter().map(|instance| instance.id()).filter(is_meant).collect();
    if instances.iter().flatten().any(|id| !renewed.contains(id)) {
        return Err(Refusal::invalid("instances", "must name instances of the order"));
    }
    let total = terms.cost(service.price(&order.product), i64::try_from(renewed.len()).unwrap_or(i64::MAX))?;
    service.check_funds(order.owner, total)?;
    let mut after = StaticOrder::clone(&order);
    for instance in after.instances.iter_mut().filter(|instance| is_meant(&instance.id())) {
        instance.ends_at = instance.ends_at.map(|end| terms.end(end.max(call.now_ms))).transpose()?;
    }
    service.spend(order.owner, Kind::Renewal, (STATIC, &order.order_no), total, call.now_ms);
    let status = after.status(call.now_ms).word();
    service.backend.static_orders[place] = Arc::new(after);
    let order_no = &order.order_no;
    Ok(Reply::new(200, &Renewed { order_no, camel_order_no: order_no, status, renewed, total_amount: Number(total) }))
}

/// The id of an order, as a number or as its digits.
fn id(body: &Body) -> Result<Option<i64>, Refusal> {
    let is_text = body.raw("order_id").is_some_and(|value| value.get().starts_with('"'));
    if !is_text {
        return body.whole("order_id", 1);
    }
    let text = body.text("order_id")?.unwrap_or_default();
    text.parse().map(Some).map_err(|_| Refusal::invalid("order_id", "must be a whole number"))
}

/// Cancels an order. An order that is still processing is refunded; instances that exist are only released.
pub(crate) fn cancel(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let place = service.static_place(call, &Target::Number(call.id(0).to_owned()))?;
    let order = service.backend.static_orders[place].clone();
    check_status(&order, call.now_ms, &[Status::Processing, Status::Active, Status::Expired])?;
    if order.status(call.now_ms) == Status::Processing {
        service.spend(order.owner, Kind::Refund, (STATIC, &order.order_no), -order.total, call.now_ms);
    }
    service.restock(&order.product, order.instances.len().into());
    let order = StaticOrder { is_cancelled: true, ..StaticOrder::clone(&order) };
    let reply = Reply::new(200, &service.order_record(&order, call.now_ms));
    service.backend.static_orders[place] = Arc::new(order);
    service.end_with_resources(call.now_ms);
    Ok(reply)
}

fn check_status(order: &StaticOrder, now_ms: i64, allowed: &[Status]) -> Result<(), Refusal> {
    let status = order.status(now_ms);
    if allowed.contains(&status) {
        return Ok(());
    }
    Err(refused(422, "the status of the order does not allow this").detail("status", status.word()))
}

impl Service {
    /// Gives back what failed orders cost, from the moment on when they failed, and ends the sessions of orders that are over.
    pub(crate) fn settle(&mut self, now_ms: i64) {
        for place in 0..self.backend.static_orders.len() {
            let order = &self.backend.static_orders[place];
            if !order.fails || order.is_settled || order.status(now_ms) != Status::Failed {
                continue;
            }
            let order = order.clone();
            self.spend(order.owner, Kind::Refund, (STATIC, &order.order_no), -order.total, order.ready_at);
            self.restock(&order.product, order.instances.len().into());
            Arc::make_mut(&mut self.backend.static_orders[place]).is_settled = true;
        }
        self.end_with_resources(now_ms);
    }

    fn static_place(&self, call: &Call<'_>, target: &Target) -> Result<usize, Refusal> {
        let is_meant = |id: u32, number: &str| match target {
            Target::Number(wanted) => wanted == number,
            Target::Id(wanted) => *wanted == i64::from(id),
        };
        let orders = &self.backend.static_orders;
        let found = orders.iter().position(|order| is_meant(order.id, &order.order_no) && call.caller.sees(order.owner));
        let mut sessions = self.sessions.iter().filter(|session| session.account == call.caller.agent && call.caller.user.is_none());
        match found {
            Some(place) => Ok(place),
            None if sessions.any(|session| is_meant(session_order_id(session), &session.id)) => {
                Err(refused(422, "the order belongs to a session, and is renewed and ended there"))
            }
            None => Err(refused(404, "you have no static order of this number")),
        }
    }
}
