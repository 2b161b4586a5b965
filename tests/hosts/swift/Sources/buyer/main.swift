// A program that buys under intents, with its records in a folder: to be killed and started again.
//
//     buyer FOLDER FIRST COUNT [POINT]
//     buyer FOLDER order USER [POINT]
//     buyer environment [VARIABLE…]
//
// The first buys sessions, the second places one static order for a sub-user, the third reads accounts. The program kills itself, with no chance to do anything about
// it, when it comes to that point: every call of the store and every send is two.

import Foundation
import Hopline
import Kit

func say(_ text: String) {
    print(text)
    fflush(nil)
}

let arguments = CommandLine.arguments
if arguments.count > 1, arguments[1] == "environment" {
    await environment(Array(arguments.dropFirst(2)))
    exit(0)
}
guard arguments.count >= 4, let count = Int(arguments[3]) else { fatalError("buyer FOLDER FIRST COUNT [POINT], or buyer FOLDER order USER [POINT]") }
let points = Points(arguments.count > 4 ? Int(arguments[4]) : nil)
if arguments[2] == "order" {
    try await order(arguments[1], for: count, points, isFatal: arguments.count > 4)
    exit(0)
}
guard let first = Int(arguments[2]) else { fatalError("the first job is a number") }
let store = Watched(try FolderStore(arguments[1])) { _ in points.passed() }
let agent = try AgentClient(store: store, transport: PointedTransport(points: points), options: ClientOptions(attempts: 8))
// Another process may have taken up what this one left, and then goes on with it.
_ = try await agent.resumeAll()
if count > 1 { say("begun") }
try await withThrowingTaskGroup(of: String.self) { group in
    for job in first..<first + count {
        group.addTask {
            do {
                return try await agent.openSession(sessionType: .dynamic, productNo: "dynamic-world", intent: "job-\(job)", credentials: count == 1).sessionId
            } catch let error as HoplineError where error.kind == .busy {
                return "busy"
            }
        }
    }
    for try await came in group { say(came) }
}
// The records of others are theirs to resume as long as they live, and anybody's after that.
if count > 1 { while readLine() != nil {} }
await agent.close()
