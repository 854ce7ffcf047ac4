#![no_main]

use std::sync::OnceLock;

use headwater_fuzz::ForeignBoard;

static BOARD: OnceLock<ForeignBoard> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let board = || ForeignBoard::new(&tempfile::tempdir().expect("a folder").keep());
    BOARD.get_or_init(board).feed(bytes);
});
