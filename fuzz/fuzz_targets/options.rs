#![no_main]

use std::cell::RefCell;

use headwater_fuzz::Endpoints;

thread_local! {
    static ENDPOINTS: RefCell<Endpoints> = RefCell::default();
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ENDPOINTS.with_borrow_mut(|all| all.feed(bytes)));
