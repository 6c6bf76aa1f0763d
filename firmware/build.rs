//! Tells the linker what memory the machine has, and to use the layout of cortex-m-rt.

fn main() {
    let machine = if std::env::var_os("CARGO_FEATURE_ROOMY").is_some() { "mps2-an385" } else { "lm3s6965evb" };
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where it is");
    println!("cargo::rustc-link-search={here}/memory/{machine}");
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
    println!("cargo::rerun-if-changed=memory");
}
