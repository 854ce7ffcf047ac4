//! Messages over bare memory or the channel alone: the floors that sockets are compared with.

fn main() -> std::process::ExitCode {
    headwater_bench::raw_main()
}
