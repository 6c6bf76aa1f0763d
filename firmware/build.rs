//! Tells the linker what memory the machine has, and to use the layout of cortex-m-rt.

fn main() {
    let has = |feature: &str| std::env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let machine = if has("ROOMY") { "mps2-an385-64k" } else { "lm3s6965evb" };
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where it is");
    println!("cargo::rustc-link-search={here}/memory/{machine}");
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
    println!("cargo::rerun-if-changed=memory");
}
