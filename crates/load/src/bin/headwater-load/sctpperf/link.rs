//! One association over a link, one way, both ends by the Rust API.

use std::io::Write;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use headwater_sctp_stack::{Association, Outgoing, Port, Via, Want};

use crate::sctpperf::{Measured, Options, cpu};

const TIMEOUT: Option<Duration> = Some(Duration::from_secs(20));
/// Time enough for the window to grow.
const WARM_UP: f64 = 0.3;

pub fn serve(options: &Options) -> Result<String, String> {
    let mut port =
        Port::bind(&[address(options)?], options.port, &Default::default()).map_err(errno)?;
    port.listen(1).map_err(errno)?;
    println!("ready");
    std::io::stdout()
        .flush()
        .map_err(|error| error.to_string())?;
    if !port.wait(Some(Duration::from_secs(60))).map_err(errno)? {
        return Err("nobody came".to_string());
    }
    let association = port.accept().map_err(errno)?;
    let cpu_before = cpu();
    let mut buffer = vec![0; 1 << 18];
    let mut begun = None;
    let mut messages = 0;
    loop {
        match association.receive(&mut buffer) {
            Ok(Some(piece)) => {
                begun.get_or_insert_with(Instant::now);
                messages += u64::from(piece.end);
            }
            Ok(None) => break,
            Err(libc::EAGAIN) => {
                association.wait(Want::READABLE, TIMEOUT).map_err(errno)?;
            }
            Err(error) => return Err(errno(error)),
        }
    }
    let measured = Measured {
        messages,
        seconds: begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64()),
        cpu_ns: cpu() - cpu_before,
        ..Measured::default()
    };
    Ok(measured.line())
}

pub fn drive(options: &Options) -> Result<String, String> {
    let to = [address(options)?];
    let association =
        Association::connect(&to, options.port, &Default::default(), Via::Auto).map_err(errno)?;
    association.established(TIMEOUT).map_err(errno)?;
    let bytes = vec![0x5a; options.size];
    let message = Outgoing::default();
    let (begun, cpu_before) = (Instant::now(), cpu());
    let mut trips = Trips::default();
    let mut sent = 0;
    let mut counted = None;
    while begun.elapsed() < options.time {
        match association.send(&message, &bytes, false) {
            Ok(()) => sent += 1,
            Err(libc::EAGAIN) => {
                association.wait(Want::WRITABLE, TIMEOUT).map_err(errno)?;
            }
            Err(error) => return Err(errno(error)),
        }
        if sent % 64 == 0 {
            trips.look(&association)?;
        }
        if counted.is_none() && begun.elapsed().as_secs_f64() > options.time.as_secs_f64() * WARM_UP
        {
            counted = Some((Instant::now(), sent));
        }
    }
    let (from, before) = counted.unwrap_or((begun, 0));
    let seconds = from.elapsed().as_secs_f64();
    let mtu = trips.mtu;
    association.shutdown().map_err(errno)?;
    // Until everything was acknowledged.
    let mut rest = [0; 16];
    while association.receive(&mut rest) == Err(libc::EAGAIN) {
        association.wait(Want::READABLE, TIMEOUT).map_err(errno)?;
    }
    let measured = Measured {
        messages: sent - before,
        all_messages: Some(sent),
        seconds,
        cpu_ns: cpu() - cpu_before,
        round_trip: Some(trips.mean()),
        mtu: Some(mtu),
        ..Measured::default()
    };
    Ok(measured.line())
}

/// The smoothed round trip, looked at now and then.
#[derive(Default)]
struct Trips {
    sum: f64,
    count: u32,
    mtu: usize,
}

impl Trips {
    fn look(&mut self, association: &Association) -> Result<(), String> {
        let path = association.look(|engine| {
            let path = &engine.paths()[engine.primary()];
            (path.rto.smoothed(), path.mtu)
        });
        if let Some((trip, mtu)) = path.map_err(errno)? {
            self.mtu = mtu;
            if let Some(trip) = trip {
                self.sum += trip.as_secs_f64();
                self.count += 1;
            }
        }
        Ok(())
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }
}

fn address(options: &Options) -> Result<IpAddr, String> {
    options
        .at
        .parse()
        .map_err(|_| format!("{} is no address", options.at))
}

fn errno(number: i32) -> String {
    std::io::Error::from_raw_os_error(number).to_string()
}
