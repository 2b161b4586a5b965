//! The addresses of the static products: two ranges each, one written as a network and one by its ends.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use super::envelope::refused;
use crate::service::Service;
use crate::service::catalogue::Product;
use crate::service::envelope::Refusal;

/// The second octet of the first product's addresses; those of sessions end below it.
const FIRST: u8 = 128;

/// The ranges of a product: their text, and the last octets that they hold under a third octet.
pub(super) struct Range {
    pub(super) text: String,
    network: [u8; 3],
    hosts: RangeInclusive<u8>,
}

impl Range {
    pub(super) fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        let [a, b, c] = self.network;
        self.hosts.clone().map(move |host| Ipv4Addr::new(a, b, c, host))
    }
}

impl Service {
    /// The ranges of a static product; another has none.
    pub(super) fn ranges(&self, product: &Product) -> Vec<Range> {
        let mut statics = self.catalogue.iter().filter(|product| product.stock.is_some());
        let place = statics.position(|own| own.number == product.number).and_then(|place| u8::try_from(place).ok());
        let Some(second) = place.and_then(|place| FIRST.checked_add(place)) else {
            return Vec::new();
        };
        let network = Range { text: format!("127.{second}.0.0/24"), network: [127, second, 0], hosts: 1..=254 };
        let ends = Range { text: format!("127.{second}.1.10-127.{second}.1.99"), network: [127, second, 1], hosts: 10..=99 };
        vec![network, ends]
    }

    /// The addresses of a product that no order holds, the lowest first.
    pub(super) fn free_addresses(&self, product: &Product, now_ms: i64) -> Vec<Ipv4Addr> {
        let orders = self.backend.static_orders.iter().filter(|order| order.product.number == product.number);
        let held: std::collections::BTreeSet<Ipv4Addr> = orders
            .filter(|order| order.holds_addresses(now_ms))
            .flat_map(|order| order.instances.iter().map(|instance| instance.exit))
            .collect();
        self.ranges(product).iter().flat_map(Range::addresses).filter(|address| !held.contains(address)).collect()
    }

    /// The addresses of an order: those that were asked for by name, and the lowest free ones for the rest.
    pub(super) fn assign(&self, product: &Product, wanted: &[Ipv4Addr], count: usize, now_ms: i64) -> Result<Vec<Ipv4Addr>, Refusal> {
        let free = self.free_addresses(product, now_ms);
        if let Some(missing) = wanted.iter().find(|address| !free.contains(address)) {
            return Err(refused(422, "an assigned address is not available").detail("address", missing));
        }
        let others = free.into_iter().filter(|address| !wanted.contains(address));
        let assigned: Vec<Ipv4Addr> = wanted.iter().copied().chain(others).take(count).collect();
        if assigned.len() < count {
            return Err(refused(422, "the product has not enough free addresses"));
        }
        Ok(assigned)
    }
}
