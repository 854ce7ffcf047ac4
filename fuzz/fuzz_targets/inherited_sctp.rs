#![no_main]

use std::cell::RefCell;

use headwater_fuzz::{Image, Variable};

thread_local! {
    static IMAGE: RefCell<Image> = RefCell::default();
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    IMAGE.with_borrow_mut(|image| image.feed(Variable::Sctp, bytes));
});
