//! The shared object's name, and its parts in C: functions with variable arguments, and the way to the unwinder.

fn main() {
    let mut c = cc::Build::new();
    for file in ["src/variadic.c", "src/unwind.c"] {
        println!("cargo::rerun-if-changed={file}");
        c.file(file);
    }
    c.warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(std::env::var_os("CI").is_some())
        // Frames of unwind.c are unwound.
        .flag_if_supported("-fexceptions")
        // A procedure linkage table would be a page that every process touches when it starts.
        .flag_if_supported("-fno-plt")
        .link_lib_modifier("+whole-archive")
        .compile("headwater_c");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libheadwater.so.0");
    // Without the C compiler's own beginning and end of a shared object: those of C++ and of unloading are not for this one, and
    // cost every process some pages and names.
    println!("cargo::rustc-cdylib-link-arg=-nostartfiles");
    // A program may define names of ours for itself, and call the C library's by others, which are ours too.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rerun-if-changed=layout.ld");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-T,{folder}/layout.ld");
    // What is written to begins a page, and does not share two with what is not.
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,separate-loadable-segments");
    }
    // Its handlers and exit hooks outlive a dlclose.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
