//! The shared object's name, and the C functions with variable arguments.

fn main() {
    println!("cargo::rerun-if-changed=src/variadic.c");
    cc::Build::new()
        .file("src/variadic.c")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(std::env::var_os("CI").is_some())
        .compile("headwater_variadic");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libheadwater.so.0");
    // Its handlers and exit hooks outlive a dlclose.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
