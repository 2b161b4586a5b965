//! The session endpoints after creation; [`create`] has a file of its own.

use rust_decimal::Decimal;

use super::Service;
use super::call::Call;
use super::catalogue::DYNAMIC;
use super::envelope::{Code, Refusal, Reply};
use super::input::{Body, required};
use super::session::{MONTH_MS, Session, Status};

pub(crate) use super::create::create;

const REASONS: &[&str] = &["manual", "scheduled", "http_403", "http_429", "captcha", "timeout", "block"];

pub(crate) fn get(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let with_credentials = call.query.flag("include_credentials", false)?;
    let place = service.place(call)?;
    Ok(service.show(place, call, with_credentials))
}

pub(crate) fn terminate(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let place = service.place(call)?;
    service.release(place);
    Ok(service.show(place, call, false))
}

pub(crate) fn rotate(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let with_credentials = call.query.flag("include_credentials", false)?;
    Body::parse(call.body)?.word("reason", REASONS)?;
    let place = service.place(call)?;
    let session = &service.sessions[place];
    if session.product.kind != DYNAMIC {
        return Err(Refusal::invalid("session_id", "must name a dynamic session to rotate"));
    }
    check_status(session, call, &[Status::Active])?;
    let exit = service.next_exit();
    let session = &mut service.sessions[place];
    session.exit = exit;
    session.rotations += 1;
    session.telemetry.forgive();
    Ok(service.show(place, call, with_credentials))
}

pub(crate) fn renew(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let months = required("duration", Body::parse(call.body)?.whole("duration", 1)?)?;
    let place = service.place(call)?;
    let session = &service.sessions[place];
    let Some(end) = session.ends_at else {
        return Err(Refusal::invalid("session_id", "must name a static session to renew"));
    };
    check_status(session, call, &[Status::Active, Status::Expired])?;
    let ends_at = later(end.max(call.now_ms), months)?;
    service.check_resource(session, call.now_ms)?;
    let amount = if session.resource.is_some() { Decimal::ZERO } else { total(service.price(&session.product), session.quantity, months)? };
    service.check_budget(amount, false, call)?;
    service.check_balance(amount, call)?;
    let session = &mut service.sessions[place];
    session.ends_at = Some(ends_at);
    let id = session.id.clone();
    service.charge("renew_session", id, amount, call);
    Ok(service.show_charge(place, call, amount))
}

fn check_status(session: &Session, call: &Call<'_>, allowed: &[Status]) -> Result<(), Refusal> {
    let status = session.status(call.now_ms);
    if allowed.contains(&status) {
        return Ok(());
    }
    let message = "the status of the session does not allow this operation";
    Err(Refusal::new(Code::SessionExpired, message).detail("status", status.word()))
}

/// The end of a static session some months from a moment.
pub(crate) fn later(from_ms: i64, months: i64) -> Result<i64, Refusal> {
    months.checked_mul(MONTH_MS).and_then(|length| from_ms.checked_add(length)).ok_or_else(|| Refusal::invalid("duration", "is too long"))
}

/// The price of a purchase; sums that no balance could hold are refused as the quantity's fault.
pub(crate) fn total(price: Decimal, quantity: Decimal, months: i64) -> Result<Decimal, Refusal> {
    price
        .checked_mul(quantity)
        .and_then(|month| month.checked_mul(months.into()))
        .ok_or_else(|| Refusal::invalid("quantity", "is too large"))
}

impl Service {
    /// The place of the session that a path names, if it is the caller's.
    pub(crate) fn place(&self, call: &Call<'_>) -> Result<usize, Refusal> {
        let found = self.sessions.iter().position(|session| *session.id == *call.id && session.account == call.account);
        found.ok_or_else(|| Refusal::new(Code::SessionNotFound, "the account has no session with this id"))
    }

    fn show(&self, place: usize, call: &Call<'_>, with_credentials: bool) -> Reply {
        Reply::new(200, &self.sessions[place].record(&self.config, call.now_ms, with_credentials, None))
    }

    fn show_charge(&self, place: usize, call: &Call<'_>, amount: Decimal) -> Reply {
        Reply::new(200, &self.sessions[place].record(&self.config, call.now_ms, false, Some(amount)))
    }

    /// Ends a session, and gives the addresses that it took back to the stock.
    fn release(&mut self, place: usize) {
        let session = &mut self.sessions[place];
        if !std::mem::replace(&mut session.terminated, true) && session.resource.is_none() {
            let (product, addresses) = (session.product.clone(), session.quantity);
            self.restock(&product, addresses);
        }
    }

    pub(crate) fn next_exit(&mut self) -> u32 {
        self.exits += 1;
        self.exits
    }
}
