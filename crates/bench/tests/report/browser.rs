//! The report as a browser shows it. HEADWATER_SCREENSHOTS=DIR keeps what it looked like; HEADWATER_REPORT=DIR is looked at too.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use headwater_bench::data::Run;
use serde_json::json;

use crate::chromium::Chromium;
use crate::fixture;

const DESKTOP: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (360, 740);

type Screen = ((u32, u32), &'static str);
const SCREENS: [Screen; 2] = [(DESKTOP, "desktop"), (PHONE, "phone")];

#[test]
fn the_report_opens_on_desktop_and_phone_in_light_and_dark() {
    headwater_testkit::needs!("chromium");
    let mut browser = browser();
    let folder = tempfile::tempdir().unwrap();
    let runs = [
        ("plausible", fixture::plausible()),
        ("hostile", fixture::hostile()),
        ("empty", fixture::empty()),
    ];
    for (name, run) in runs {
        let out = folder.path().join(name);
        headwater_bench::render(&run, &out).unwrap();
        look(&mut browser, &run, &out, name);
    }
}

#[test]
fn published_reports_show_the_results_beside_them_on_a_desktop() {
    published_are_seen(|browser, run, folder, name| screen(browser, run, folder, name, SCREENS[0]));
}

#[test]
fn published_reports_show_the_results_beside_them_on_a_phone() {
    published_are_seen(|browser, run, folder, name| screen(browser, run, folder, name, SCREENS[1]));
}

#[test]
fn published_reports_are_printed() {
    published_are_seen(|browser, _, folder, name| {
        browser.open(&folder.join("report.html"), DESKTOP);
        fold(browser, true);
        paper(browser, name);
    });
}

/// Long as they are, each of these is looked at by a browser of its own.
fn published_are_seen(how: impl Fn(&mut Chromium, &Run, &Path, &str)) {
    headwater_testkit::needs!("chromium");
    let reports = published();
    if reports.is_empty() {
        return;
    }
    let mut browser = browser();
    for (index, folder) in reports.iter().enumerate() {
        let run = Run::read(&folder.join("results.json")).unwrap();
        how(&mut browser, &run, folder, &format!("published-{index}"));
    }
}

/// Folders below docs/results that have a report, and HEADWATER_REPORT.
fn published() -> Vec<PathBuf> {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let results = results.canonicalize().unwrap();
    let below = fs::read_dir(&results).unwrap().flatten();
    let mut folders: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
    folders.push(results);
    folders.extend(env::var_os("HEADWATER_REPORT").map(PathBuf::from));
    folders.retain(|folder| folder.join("report.html").exists());
    folders
}

fn browser() -> Chromium {
    Chromium::start().expect("chromium starts")
}

fn look(browser: &mut Chromium, run: &Run, folder: &Path, name: &str) {
    for kind in SCREENS {
        screen(browser, run, folder, name, kind);
    }
    paper(browser, name);
}

fn screen(browser: &mut Chromium, run: &Run, folder: &Path, name: &str, (size, kind): Screen) {
    browser.open(&folder.join("report.html"), size);
    for theme in ["light", "dark"] {
        browser.theme("screen", theme);
        keep(browser, false, &format!("{name}-{kind}-{theme}"));
        check(browser, run, &format!("{name} {kind} {theme}"));
        fold(browser, true);
        keep(browser, true, &format!("{name}-{kind}-{theme}-whole"));
    }
}

/// Whoever reads in the dark prints on white all the same.
fn paper(browser: &mut Chromium, name: &str) {
    browser.theme("print", "dark");
    let ground = browser.evaluate("getComputedStyle(document.body).backgroundColor");
    assert_eq!(ground, json!("rgb(255, 255, 255)"), "{name}");
    let paper = browser.paper();
    assert!(paper.starts_with(b"%PDF"));
    write(&format!("{name}.pdf"), &paper);
}

fn check(browser: &mut Chromium, run: &Run, what: &str) {
    // Unfolded, where it is widest.
    fold(browser, false);
    let widths = browser
        .evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]");
    assert!(
        widths[0].as_f64() <= widths[1].as_f64(),
        "{what}: scrolls sideways, {widths}"
    );
    let beyond = browser.evaluate(BEYOND);
    assert_eq!(beyond, json!([]), "{what}: not within the page");
    let sections = browser.evaluate("document.querySelectorAll('main > section').length");
    let skipped = usize::from(!run.skipped.is_empty());
    assert_eq!(
        sections,
        json!(run.experiments.len() + skipped + 4),
        "{what}"
    );
    let plots: usize = run
        .experiments
        .iter()
        .map(|report| report.conclusion.plots.len())
        .sum();
    assert_eq!(
        browser.evaluate("document.querySelectorAll('figure.plot').length"),
        json!(plots),
        "{what}"
    );
    let grounds = browser.evaluate("['body', '.hw-0'].map(s => document.querySelector(s)).filter(e => e).map(e => getComputedStyle(e))\
                                    .map(s => s.backgroundColor + s.color)");
    assert_eq!(
        grounds[0].as_str().unwrap().contains("rgb(16, 18, 20)"),
        what.ends_with("dark"),
        "{what}: {grounds}"
    );
    assert_eq!(browser.complaints, Vec::<String>::new(), "{what}");
}

fn fold(browser: &mut Chromium, closed: bool) {
    browser.evaluate(&format!(
        "document.querySelectorAll('details').forEach(d => d.open = {})",
        !closed
    ));
}

/// What reaches beyond the page, unless it is within a box that scrolls.
const BEYOND: &str = "[...document.querySelectorAll('body *')]\
    .filter(e => !e.closest('.wide, pre, svg, .unseen') && e.getClientRects().length)\
    .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5 || e.getBoundingClientRect().left < -0.5)\
    .slice(0, 5).map(e => e.outerHTML.slice(0, 120))";

fn keep(browser: &mut Chromium, whole: bool, name: &str) {
    if screenshots().is_some()
        && let Some(picture) = browser.screenshot(whole)
    {
        write(&format!("{name}.png"), &picture);
    }
}

fn write(name: &str, bytes: &[u8]) {
    if let Some(folder) = screenshots() {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    }
}

fn screenshots() -> Option<PathBuf> {
    Some(Path::new(&env::var_os("HEADWATER_SCREENSHOTS")?).to_path_buf())
}
