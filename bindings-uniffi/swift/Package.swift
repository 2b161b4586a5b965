// swift-tools-version: 6.0

import PackageDescription

// The core is a library made by Rust. On Apple's systems it is an XCFramework with its own headers; elsewhere it is a static
// library in `lib`, or in the folder that HOPLINE_LIBRARY names. See README.md.
#if os(macOS)
    let core: [Target] = [.binaryTarget(name: "HoplineFFI", path: "HoplineFFI.xcframework")]
#else
    let library = Context.environment["HOPLINE_LIBRARY"] ?? "\(Context.packageDirectory)/lib"
    let core: [Target] = [
        .target(
            name: "HoplineFFI",
            linkerSettings: [
                .unsafeFlags(["-L\(library)"]),
                .linkedLibrary("hopline_uniffi"), .linkedLibrary("m"), .linkedLibrary("dl"), .linkedLibrary("pthread"),
            ]
        )
    ]
#endif

let package = Package(
    name: "Hopline",
    // Older ones read a `Decimal` of JSON by way of a `Double`, and let a request go past a proxy that fails.
    platforms: [.macOS(.v14), .iOS(.v17)],
    products: [
        .library(name: "Hopline", targets: ["Hopline"]),
        // The class below, for drivers of one's own.
        .library(name: "HoplineCore", targets: ["HoplineCore"]),
    ],
    targets: core + [
        .target(name: "HoplineCore", dependencies: ["HoplineFFI"]),
        .target(name: "Hopline", dependencies: ["HoplineCore"]),
    ],
    swiftLanguageModes: [.v6]
)
