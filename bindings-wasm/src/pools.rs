//! The calls of a lease that are answered at once. All other calls of pools are commands, which `start` starts.

use hopline::contract::pools::LeaseRef;
use wasm_bindgen::prelude::*;

use crate::{Client, Refused, at};

#[wasm_bindgen]
impl Client {
    /// Takes an observation through a lease, in the form of `observe`; `wait_ms` is the Retry-After of the target. Returns `keep`,
    /// `give_back` or `wait`; `undefined` if the lease is not valid any more, or its session has another exit by now.
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

    /// Gives a lease back. Returns true if it was valid.
    #[wasm_bindgen(js_name = giveBack)]
    pub fn give_back(&mut self, pool: u32, lease: f64, unix_ms: f64, monotonic_ms: f64) -> bool {
        self.client.give_back(&lease_of(pool, lease), at(unix_ms, monotonic_ms))
    }

    /// Returns true if the lease is still this client's.
    #[wasm_bindgen(js_name = isValid)]
    pub fn is_valid(&self, pool: u32, lease: f64) -> bool {
        self.client.is_valid(&lease_of(pool, lease))
    }
}

/// A number of JavaScript is exact as far as leases are counted.
fn lease_of(pool: u32, lease: f64) -> LeaseRef {
    LeaseRef { pool, lease: lease as i64 }
}
