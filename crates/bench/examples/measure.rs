//! `headwater bench` and `headwater demo` without the command around them: `measure [--quick] [demo | NAME...]`.

use std::process::ExitCode;

use headwater_bench::{BenchArgs, cli_bench, demo};

fn main() -> ExitCode {
    let mut names: Vec<String> = std::env::args().skip(1).collect();
    if names.iter().any(|name| name == "demo") {
        return demo();
    }
    let quick = names.iter().any(|name| name == "--quick");
    names.retain(|name| name != "--quick");
    let out = std::env::var_os("HEADWATER_BENCH_OUT").map(Into::into);
    cli_bench(&BenchArgs {
        names,
        quick,
        out,
        ..BenchArgs::default()
    })
}
