#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().expect("a folder").keep());
    headwater_fuzz::program(folder, bytes);
});
