//! A headless Chromium, spoken to in its DevTools protocol over a pipe.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

pub struct Chromium {
    child: Child,
    orders: File,
    answers: BufReader<File>,
    session: Option<String>,
    next: u64,
    /// Errors on the console, exceptions, and requests that left the file.
    pub complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

/// Where the browser reads orders and writes answers.
const ORDERS: RawFd = 3;
const ANSWERS: RawFd = 4;

impl Chromium {
    /// None where there is no such program.
    pub fn start() -> Option<Chromium> {
        let profile = tempfile::tempdir().expect("a folder for the browser's profile");
        let (theirs_in, orders) = pipe();
        let (answers, theirs_out) = pipe();
        let mut command = Command::new("chromium");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
            ])
            .args([
                "--remote-debugging-pipe",
                "--no-first-run",
                "--disable-background-networking",
                "--hide-scrollbars",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let fds = (theirs_in.as_raw_fd(), theirs_out.as_raw_fd());
        // SAFETY: dup2, dup and fcntl may be called between fork and exec. Copies above the wanted numbers are made first, so that
        // neither call takes away what the other one needs.
        unsafe {
            command.pre_exec(move || {
                let copy = |fd| match libc::fcntl(fd, libc::F_DUPFD, 10) {
                    -1 => Err(io::Error::last_os_error()),
                    copy => Ok(copy),
                };
                let (orders, answers) = (copy(fds.0)?, copy(fds.1)?);
                for (from, to) in [(orders, ORDERS), (answers, ANSWERS)] {
                    if libc::dup2(from, to) == -1 {
                        return Err(io::Error::last_os_error());
                    }
                    libc::close(from);
                }
                Ok(())
            });
        }
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => panic!("cannot start chromium: {error}"),
        };
        let mut browser = Chromium {
            child,
            orders: File::from(orders),
            answers: BufReader::new(File::from(answers)),
            session: None,
            next: 0,
            complaints: Vec::new(),
            _profile: profile,
        };
        browser.attach();
        Some(browser)
    }

    fn attach(&mut self) {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let target = target["targetId"].clone();
        let session = self.call(
            "Target.attachToTarget",
            json!({"targetId": target, "flatten": true}),
        );
        self.session = session["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// Loads a page that is as wide and high as a screen.
    pub fn open(&mut self, file: &Path, (width, height): (u32, u32)) {
        let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", screen);
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", json!({"url": url}));
        self.wait("Page.loadEventFired");
    }

    pub fn theme(&mut self, media: &str, theme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": theme}]);
        self.call(
            "Emulation.setEmulatedMedia",
            json!({"media": media, "features": features}),
        );
    }

    /// What an expression in the page comes to.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            json!({"expression": expression, "returnByValue": true}),
        );
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Of the first screen, or of the whole page, unless that is too long for a picture.
    pub fn screenshot(&mut self, whole: bool) -> Option<Vec<u8>> {
        let how = json!({"format": "png", "captureBeyondViewport": whole});
        let answer = self.ask("Page.captureScreenshot", how).ok()?;
        answer["data"].as_str().map(decode)
    }

    pub fn paper(&mut self) -> Vec<u8> {
        let answer = self.call(
            "Page.printToPDF",
            json!({"preferCSSPageSize": true, "printBackground": true}),
        );
        decode(answer["data"].as_str().expect("a document"))
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params)
            .unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next += 1;
        let mut order = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            order["sessionId"] = json!(session);
        }
        let mut order = order.to_string().into_bytes();
        order.push(0);
        self.orders
            .write_all(&order)
            .expect("the browser takes orders");
        loop {
            let answer = self.hear();
            if answer["id"] == json!(self.next) {
                return match answer["error"].is_null() {
                    true => Ok(answer["result"].clone()),
                    false => Err(answer["error"].clone()),
                };
            }
        }
    }

    fn wait(&mut self, event: &str) {
        while self.hear()["method"] != json!(event) {}
    }

    fn hear(&mut self) -> Value {
        let mut message = Vec::new();
        let length = self
            .answers
            .read_until(0, &mut message)
            .expect("the browser answers");
        assert!(length > 0, "the browser has ended");
        message.pop();
        let message: Value = serde_json::from_slice(&message).expect("answers are JSON");
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Log.entryAdded") => self.complaints.push(params["entry"]["text"].to_string()),
            Some("Runtime.exceptionThrown" | "Runtime.consoleAPICalled") => {
                self.complaints.push(params.to_string())
            }
            Some("Network.requestWillBeSent") => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                if !url.ends_with("report.html") {
                    self.complaints.push(format!("a request for {url}"));
                }
            }
            _ => {}
        }
        message
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Its ends to read from and to write to; neither is inherited.
fn pipe() -> (OwnedFd, OwnedFd) {
    let mut fds = [0; 2];
    // SAFETY: the call fills both numbers, which nobody else owns.
    unsafe {
        assert_eq!(libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1]))
    }
}

/// Base64, without spaces.
fn decode(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.bytes().take_while(|&c| c != b'=').map(value).collect();
    let quads = letters.chunks(4).flat_map(|quad| {
        let bits = quad
            .iter()
            .enumerate()
            .fold(0u32, |bits, (i, v)| bits | u32::from(*v) << (18 - 6 * i));
        bits.to_be_bytes()[1..quad.len()].to_vec()
    });
    quads.collect()
}
