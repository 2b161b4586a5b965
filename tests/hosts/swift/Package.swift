// swift-tools-version: 6.0

import PackageDescription

let hopline = Target.Dependency.product(name: "Hopline", package: "Hopline")
let core = Target.Dependency.product(name: "HoplineCore", package: "Hopline")

let package = Package(
    name: "HoplineHost",
    platforms: [.macOS(.v14)],
    // The package as `cargo xtask package swift` makes it.
    dependencies: [.package(path: Context.environment["HOPLINE_PACKAGE"] ?? "../../../target/swift/Hopline")],
    targets: [
        // A sandbox as a process, sockets that misbehave, the runner of the shared vectors.
        .target(name: "Kit", dependencies: [hopline, core]),
        // Programs to be killed, shown and read.
        .executableTarget(name: "buyer", dependencies: [hopline, "Kit"]),
        .executableTarget(name: "demo", dependencies: [hopline, "Kit"]),
        .executableTarget(name: "first", dependencies: [hopline]),
        .executableTarget(name: "pool", dependencies: [hopline]),
        .executableTarget(name: "program", dependencies: [hopline]),
        .executableTarget(name: "reseller", dependencies: [hopline]),
        .executableTarget(name: "shortest", dependencies: [hopline]),
        .testTarget(name: "HoplineTests", dependencies: [hopline, core, "Kit", "buyer", "first", "pool", "program", "reseller", "shortest"]),
    ],
    swiftLanguageModes: [.v6]
)
