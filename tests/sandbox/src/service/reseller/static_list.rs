//! The list of static orders with their proxy instances, and how many there are of each status.

use serde_json::Map;

use super::call::Call;
use super::input::{Paging, Span};
use super::people::number;
use super::static_order::{STATUSES, Status};
use super::static_record::{InstanceRecord, Record};
use crate::service::Service;
use crate::service::envelope::{Refusal, Reply};

pub(crate) fn list(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let query = &call.query;
    let paging = Paging::read(query)?;
    let status = query.text("status");
    let search = query.text("search").unwrap_or_default().to_lowercase();
    let region = query.text("region").unwrap_or_default().to_lowercase();
    let created = Span::moments(query, "created_start", "created_end")?;
    let expires = Span::moments(query, "expire_start", "expire_end")?;
    let with_bin = query.flag("show_recycle_bin", false)? || call.caller.user.is_none();
    let user = query.text("user_id").map(|id| number("user_id", id)).transpose()?;
    let user = user.map(|id| service.within(call.caller, id)).transpose()?;
    let is_wanted = |record: &Record| {
        status.is_none_or(|status| record.status == status)
            && user.is_none_or(|user| record.owner == user)
            && (with_bin || !is_in_bin(record))
            && created.holds(record.created_ms)
            && expires.holds_any(record.expires_ms)
            && is_found(record, &search)
            && is_there(record, &region)
    };
    let records = service.static_records(call.caller, call.now_ms).into_iter().filter(is_wanted).collect();
    let (part, counts) = paging.cut(records);
    Ok(service.backend.spelling.listed(&part, &counts))
}

pub(crate) fn statistics(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let records = service.static_records(call.caller, call.now_ms);
    let count = |status: Status| records.iter().filter(|record| record.status == status.word()).count();
    let mut counts: Map<_, _> = STATUSES.iter().map(|status| (status.word().to_owned(), count(*status).into())).collect();
    counts.insert("total".to_owned(), records.len().into());
    Ok(Reply::new(200, &counts))
}

/// An ended order is in the recycle bin.
fn is_in_bin(record: &Record) -> bool {
    [Status::Failed, Status::Expired, Status::Cancelled].iter().any(|status| status.word() == record.status)
}

fn is_found(record: &Record, search: &str) -> bool {
    let holds = |text: &str| text.to_lowercase().contains(search);
    let of_instance = |instance: &InstanceRecord| {
        let InstanceRecord { ip, username, password, .. } = instance;
        let ports = [instance.port, instance.http_port].map(|port| port.to_string());
        let texts = [ip, username, password, &instance.exit_ip.to_string()];
        texts.into_iter().any(|text| holds(text)) || ports.iter().any(|port| port == search)
    };
    holds(&record.order_no)
        || holds(&record.app_order_no)
        || record.remark.as_deref().is_some_and(holds)
        || record.instances.iter().any(of_instance)
}

fn is_there(record: &Record, region: &str) -> bool {
    let holds = |text: &str| text.to_lowercase().contains(region);
    region.is_empty()
        || record.place.is_some_and(|place| {
            let names = [place.country_en, place.country_zh, place.city_en, place.city_zh, place.state, &place.region()];
            names.into_iter().any(holds)
        })
}
