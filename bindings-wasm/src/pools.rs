//! What a host does with a lease at once. Everything else about pools is a command, which `start` starts.

use hopline::contract::pools::LeaseRef;
use wasm_bindgen::prelude::*;

use crate::{Client, Refused, at};

#[wasm_bindgen]
impl Client {
    /// Says what was seen through a lease, as `observe` takes it; `wait_ms` is the Retry-After of the target. Gives `keep`, `give_back` or
    /// `wait`; `undefined` where the lease is not valid any more, or its session has another exit by now.
    #[wasm_bindgen(js_name = observeLease)]
    pub fn observe_lease(
        &mut self,
        pool: u32,
        lease: f64,
        seen: &str,
        wait_ms: Option<f64>,
        unix_ms: f64,
        monotonic_ms: f64,
    ) -> Result<Option<String>, Refused> {
        let wait_ms = wait_ms.map(|ms| ms as i64);
        let advice = self.client.observe_lease_text(&lease_of(pool, lease), seen, wait_ms, at(unix_ms, monotonic_ms)).map_err(Refused)?;
        Ok(advice.map(str::to_owned))
    }

    /// Gives a lease back. Whether it was valid.
    #[wasm_bindgen(js_name = giveBack)]
    pub fn give_back(&mut self, pool: u32, lease: f64, unix_ms: f64, monotonic_ms: f64) -> bool {
        self.client.give_back(&lease_of(pool, lease), at(unix_ms, monotonic_ms))
    }

    /// Whether what a lease was given for is this client's still.
    #[wasm_bindgen(js_name = isValid)]
    pub fn is_valid(&self, pool: u32, lease: f64) -> bool {
        self.client.is_valid(&lease_of(pool, lease))
    }
}

/// A number of JavaScript is exact as far as leases are counted.
fn lease_of(pool: u32, lease: f64) -> LeaseRef {
    LeaseRef { pool, lease: lease as i64 }
}
