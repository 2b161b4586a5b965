//! Lets Python drive the class: `class.py` loads the module that Cargo built for this test.

use std::process::Command;

#[test]
fn python_drives_the_class() {
    let built = std::env::current_exe().expect("a test is a program");
    let names = ["lib_hopline.so", "lib_hopline.dylib", "_hopline.dll"];
    let mut found = names.iter().map(|name| built.with_file_name(name)).filter(|path| path.exists());
    let library = found.next().expect("the module lies beside its test");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/class.py");
    let status = Command::new("python3").arg(script).env("HOPLINE_MODULE", library).status().expect("python3 is there");
    assert!(status.success());
}
