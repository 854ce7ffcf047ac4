//! `results.json`: written, read back, refused.

use std::fs;
use std::path::Path;

use headwater_bench::data::*;
use serde_json::Value as Json;

use crate::fixture;

fn written(run: &Run) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    run.write(&path).unwrap();
    (folder, path)
}

fn json(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn words(path: &Path) -> String {
    Run::read(path).unwrap_err().to_string()
}

#[test]
fn a_run_is_read_back_as_it_was_written() {
    for run in [
        fixture::plausible(),
        fixture::full(),
        fixture::hostile(),
        fixture::empty(),
    ] {
        let (_folder, path) = written(&run);
        let (_other, again) = written(&Run::read(&path).unwrap());
        assert!(known(json(&path)) == known(json(&again)), "{}", run.command);
    }
}

/// What is null and what is absent is both unknown: JSON has no infinite numbers.
fn known(value: Json) -> Json {
    match value {
        Json::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            fields.map(|(key, value)| (key, known(value))).collect()
        }
        Json::Array(items) => items.into_iter().map(known).collect(),
        other => other,
    }
}

#[test]
fn the_single_samples_stay_out_and_the_rates_stay_in() {
    let whole = fixture::plausible();
    let slim = whole.without_samples();
    let arm = |run: &Run| run.experiments[0].cells[0].arms[0].clone();
    assert_eq!((arm(&whole).all.len(), arm(&slim).all.len()), (15, 0));
    assert_eq!(arm(&whole).rates, arm(&slim).rates);
    let (_folder, path) = written(&slim);
    assert!(!fs::read_to_string(&path).unwrap().contains("all_messages"));
    assert!(
        Run::read(&path).unwrap().experiments[0].cells[0].arms[0]
            .all
            .is_empty()
    );
}

#[test]
fn fields_of_a_newer_version_are_left_out() {
    let (_folder, path) = written(&fixture::full());
    let mut newer = json(&path);
    newer["invented"] = Json::from("later");
    newer["experiments"][0]["cells"][0]["arms"][0]["invented"] = Json::from(vec![1, 2]);
    newer["machine"]["invented"] = Json::Null;
    fs::write(&path, newer.to_string()).unwrap();
    Run::read(&path).unwrap();
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let (folder, path) = written(&fixture::empty());
    let mut other = json(&path);
    other["schema"] = Json::from("headwater-bench/2");
    fs::write(&path, other.to_string()).unwrap();
    let refusal = words(&path);
    for part in [
        "results.json",
        "\"headwater-bench/2\"",
        "reads \"headwater-bench/1\"",
    ] {
        assert!(refusal.contains(part), "{refusal}");
    }
    for (text, reason) in [
        ("{\"cells\": []}", "names no schema"),
        ("not json", "no JSON object"),
        ("", "no JSON object"),
        ("{\"schema\": \"headwater-bench/1\"", "no JSON object"),
        ("{\"schema\": \"headwater-bench/1\"}", "damaged"),
    ] {
        fs::write(&path, text).unwrap();
        assert!(words(&path).contains(reason), "{text}: {}", words(&path));
    }
    assert!(words(&folder.path().join("none.json")).contains("No such file"));
}

#[test]
fn samples_are_exported_by_arm_and_round() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples.json");
    let mut run = fixture::plausible();
    run.experiments[0].cells[0].arms[0].all[3] = None;
    export_samples(&run, &path).unwrap();
    let samples = json(&path);
    assert_eq!(samples["schema"], SAMPLES_SCHEMA);
    let arms: usize = run
        .experiments
        .iter()
        .flat_map(|one| &one.cells)
        .map(|cell| cell.arms.len())
        .sum();
    assert_eq!(samples["arms"].as_array().unwrap().len(), arms);
    let first = &samples["arms"][0];
    assert_eq!(
        (&first["cell"], &first["placement"]),
        (&Json::from("one-4"), &Json::from("apart"))
    );
    assert!(first["samples"][3].is_null() && first["samples"][4]["rate"].is_f64());
}

/// A disk of its own that is too small, which root may have.
#[test]
fn a_full_disk_leaves_the_old_results_intact() {
    headwater_testkit::needs!("mounts");
    let folder = tempfile::tempdir().unwrap();
    assert!(small_disk(folder.path()));
    let path = folder.path().join("results.json");
    fixture::empty().write(&path).unwrap();
    let before = fs::read(&path).unwrap();
    let words = fixture::plausible().write(&path).unwrap_err().to_string();
    for part in [
        "results.json",
        "bytes",
        "No space left",
        "free that much",
        "still there",
    ] {
        assert!(words.contains(part), "{words}");
    }
    let rendered = headwater_bench::render(&fixture::plausible(), folder.path())
        .unwrap_err()
        .to_string();
    assert!(rendered.contains("No space left"), "{rendered}");
    assert_eq!(fs::read(&path).unwrap(), before);
    Run::read(&path).unwrap();
    let hidden = fs::read_dir(folder.path()).unwrap().flatten();
    assert!(
        hidden
            .into_iter()
            .all(|file| !file.file_name().to_string_lossy().starts_with('.'))
    );
}

/// Mounts 64 KiB of memory on `folder`, for this thread alone; it goes when the thread ends.
fn small_disk(folder: &Path) -> bool {
    let path = |folder: &Path| std::ffi::CString::new(folder.to_str().unwrap()).unwrap();
    // Of where something is mounted.
    let makes_private = |at: &Path| {
        let (at, none) = (path(at), std::ptr::null());
        let how = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: the string ends with NUL and outlives the call.
        unsafe { libc::mount(c"none".as_ptr(), at.as_ptr(), none, how, none.cast()) == 0 }
    };
    let at = path(folder);
    // SAFETY: the strings end with NUL and outlive the calls; a namespace of its own keeps the mount from everybody else.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && folder.ancestors().any(makes_private)
            && libc::mount(
                c"tmpfs".as_ptr(),
                at.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                c"size=64k".as_ptr().cast(),
            ) == 0
    }
}
