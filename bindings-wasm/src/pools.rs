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

    /// Discards the session of a lease, which is not lent again. Returns true if the lease was valid.
    pub fn discard(&mut self, pool: u32, lease: f64, unix_ms: f64, monotonic_ms: f64) -> bool {
        self.client.discard(&lease_of(pool, lease), at(unix_ms, monotonic_ms))
    }

    /// Keeps data of the callers' for the next lease of this exit: an object of JSON.
    #[wasm_bindgen(js_name = setLeaseData)]
    pub fn set_lease_data(&mut self, pool: u32, lease: f64, data: &str, unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        self.client.set_lease_data(&lease_of(pool, lease), data, at(unix_ms, monotonic_ms)).map_err(Refused)
    }

    /// When a lease for the target is worth asking for, after the advice `wait`; Unix milliseconds.
    #[wasm_bindgen(js_name = retryAt)]
    pub fn retry_at(&self, pool: u32, lease: f64) -> Option<f64> {
        self.client.retry_at(&lease_of(pool, lease)).map(|at| at as f64)
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
