//! Sub-users: opened, funded, edited, disabled and deleted by their reseller.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::books::{Entry, Kind};
use super::call::{Call, Owner};
use super::envelope::refused;
use super::input::Paging;
use super::people::{User, user_id};
use crate::service::Service;
use crate::service::envelope::{Number, Refusal, Reply, timestamp};
use crate::service::input::{Body, required};

const STATUSES: &[&str] = &["active", "disabled", "deleted"];

/// A sub-user as its reseller sees it.
#[derive(Serialize)]
struct Record<'a> {
    id: u32,
    username: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<&'a str>,
    status: &'static str,
    balance: Number,
    vendora_balance: Number,
    vendorb_balance: Number,
    total_recharge: Number,
    total_consumption: Number,
    agent_id: u32,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize)]
struct Adjusted {
    user_id: u32,
    amount: Number,
    balance: Number,
}

pub(crate) fn create(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let username = required("username", sized(&body, "username", 3)?)?;
    let password = required("password", sized(&body, "password", 6)?)?;
    let phone = body.text("phone")?;
    if phone.as_deref().is_some_and(|phone| phone.len() != 11 || !phone.bytes().all(|digit| digit.is_ascii_digit())) {
        return Err(Refusal::invalid("phone", "must be a mobile number of 11 digits"));
    }
    let (email, remark) = (body.text("email")?, body.text("remark")?);
    let balance = body.least("balance", Decimal::ZERO)?.filter(|balance| !balance.is_zero());
    service.check_name(&username, None)?;
    service.check_funds(call.caller, balance.unwrap_or_default())?;
    let user = User {
        agent: call.caller.agent,
        username: username.into(),
        password: password.into(),
        email: email.map(Arc::from),
        phone: phone.map(Arc::from),
        remark: remark.map(Arc::from),
        is_disabled: false,
        is_deleted: false,
        balance: Decimal::ZERO,
        total_recharge: Decimal::ZERO,
        total_consumption: Decimal::ZERO,
        created_at: call.now_ms,
        updated_at: call.now_ms,
    };
    let place = service.backend.users.len();
    service.backend.users.push(Arc::new(user));
    if let Some(balance) = balance {
        service.transfer(Owner { user: Some(place), ..call.caller }, balance, "initial balance", call.now_ms)?;
    }
    Ok(Reply::new(200, &service.user_record(place)))
}

pub(crate) fn list(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let paging = Paging::read(&call.query)?;
    let status = call.query.word("status", STATUSES)?;
    let with_deleted = call.query.flag("includeDeleted", false)? || status == Some("deleted");
    let search = call.query.text("search").unwrap_or_default().to_lowercase();
    let is_found = |user: &User| {
        let texts = [Some(&user.username), user.email.as_ref(), user.phone.as_ref()];
        texts.into_iter().flatten().any(|text| text.to_lowercase().contains(&search))
    };
    let users = service.backend.users.iter().enumerate().filter(|(_, user)| user.agent == call.caller.agent);
    let users = users.filter(|(_, user)| with_deleted || !user.is_deleted);
    let users = users.filter(|(_, user)| status.is_none_or(|status| user.status() == status) && is_found(user));
    let (part, counts) = paging.cut(users.map(|(place, _)| place).collect());
    let records: Vec<_> = part.into_iter().map(|place| service.user_record(place)).collect();
    Ok(service.backend.spelling.listed(&records, &counts))
}

/// Moves money between the reseller and a sub-user, so that none is made or lost.
pub(crate) fn adjust(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let amount = required("amount", body.any("amount")?)?;
    let remark = required("remark", body.text("remark")?)?;
    let owner = service.subordinate(call, "user_id", call.id(0))?;
    if service.balance_of(owner).checked_add(amount).is_none_or(|balance| balance < Decimal::ZERO) {
        return Err(refused(400, "the balance after the deduction would be below 0"));
    }
    service.check_funds(call.caller, amount)?;
    service.transfer(owner, amount, &remark, call.now_ms)?;
    let adjusted = Adjusted { user_id: service.id_of(owner), amount: Number(amount), balance: Number(service.balance_of(owner)) };
    Ok(Reply::new(200, &adjusted))
}

pub(crate) fn edit(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let (username, password) = (sized(&body, "username", 3)?, sized(&body, "password", 6)?);
    let is_plain = |name: &str| name.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-'));
    if username.as_deref().is_some_and(|name| !is_plain(name)) {
        return Err(Refusal::invalid("username", "must be letters, digits, underscores and hyphens"));
    }
    if username.is_none() && password.is_none() {
        return Err(Refusal::invalid("username", "or password is required"));
    }
    let place = service.user_place(call)?;
    if let Some(name) = &username {
        service.check_name(name, Some(place))?;
    }
    let user = service.user_mut(place);
    if let Some(name) = username {
        user.username = name.into();
    }
    if let Some(word) = password {
        user.password = word.into();
    }
    user.updated_at = call.now_ms;
    Ok(Reply::new(200, &service.user_record(place)))
}

pub(crate) fn set_status(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let status = Body::parse(call.body)?.word("status", &["active", "disabled"])?;
    let status = required("status", status)?;
    let place = service.user_place(call)?;
    let user = service.user_mut(place);
    user.is_disabled = status == "disabled";
    user.updated_at = call.now_ms;
    Ok(Reply::new(200, &service.user_record(place)))
}

/// Deletes a user softly: it can still be listed.
pub(crate) fn delete(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let place = service.user_place(call)?;
    let user = service.user_mut(place);
    user.is_deleted = true;
    user.updated_at = call.now_ms;
    Ok(Reply::new(200, &service.user_record(place)))
}

/// A text of so many characters, and fifty at most.
fn sized(body: &Body, field: &'static str, least: usize) -> Result<Option<String>, Refusal> {
    let text = body.text(field)?;
    match text.as_ref().is_none_or(|text| (least..=50).contains(&text.chars().count())) {
        true => Ok(text),
        false => Err(Refusal::invalid(field, &format!("must have {least} to 50 characters"))),
    }
}

impl Service {
    fn user_place(&self, call: &Call<'_>) -> Result<usize, Refusal> {
        let owner = self.subordinate(call, "user_id", call.id(0))?;
        owner.user.ok_or_else(|| refused(404, "there is no such user"))
    }

    /// Refuses a name that is another's, even if that one is deleted.
    fn check_name(&self, name: &str, own: Option<usize>) -> Result<(), Refusal> {
        let mut others = self.backend.users.iter().enumerate().filter(|(place, _)| Some(*place) != own);
        let is_resellers = name == "reseller" || name.starts_with("reseller-");
        if is_resellers || others.any(|(_, user)| *user.username == *name) {
            return Err(refused(422, "the user name is taken").detail("field", "username"));
        }
        Ok(())
    }

    /// Gives a sub-user money of its reseller, or takes some back; that both can bear it was checked.
    fn transfer(&mut self, owner: Owner, amount: Decimal, remark: &str, now_ms: i64) -> Result<(), Refusal> {
        let too_large = || Refusal::invalid("amount", "is too large");
        let giver = Owner { user: None, ..owner };
        let left = self.balance_of(giver).checked_sub(amount).ok_or_else(too_large)?;
        let got = self.balance_of(owner).checked_add(amount).ok_or_else(too_large)?;
        self.set_balance_of(giver, left);
        self.set_balance_of(owner, got);
        if let Some(user) = owner.user {
            let user = self.user_mut(user);
            user.total_recharge = user.total_recharge.saturating_add(amount.max(Decimal::ZERO));
            user.updated_at = now_ms;
        }
        let remark = Some(Arc::from(remark));
        self.record(Entry { remark, ..Entry::new(owner, Kind::Adjustment, amount, now_ms) });
        Ok(())
    }

    fn user_record(&self, place: usize) -> Record<'_> {
        let user = &self.backend.users[place];
        Record {
            id: user_id(place),
            username: &user.username,
            email: user.email.as_deref(),
            phone: user.phone.as_deref(),
            remark: user.remark.as_deref(),
            status: user.status(),
            balance: Number(user.balance),
            vendora_balance: Number(Decimal::ZERO),
            vendorb_balance: Number(Decimal::ZERO),
            total_recharge: Number(user.total_recharge),
            total_consumption: Number(user.total_consumption),
            agent_id: self.accounts[user.agent].agent_id,
            created_at: timestamp(user.created_at),
            updated_at: timestamp(user.updated_at),
        }
    }
}
