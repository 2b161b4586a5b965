// swift-tools-version: 6.0

import PackageDescription

let package = Package(
    name: "HoplineBench",
    platforms: [.macOS(.v14)],
    // The package as `cargo xtask package swift` makes it.
    dependencies: [.package(path: Context.environment["HOPLINE_PACKAGE"] ?? "../../../target/swift/Hopline")],
    targets: [.executableTarget(name: "bench", dependencies: [.product(name: "Hopline", package: "Hopline")])],
    swiftLanguageModes: [.v6]
)
