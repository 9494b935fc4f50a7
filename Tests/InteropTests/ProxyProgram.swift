import Foundation
import Lifeline
import LifelineTestSupport
import Testing

/// A proxy that Debian has (scripts/install-dependencies), on a port of 127.0.0.1.
enum ProxyProgram: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case tinyproxy, microsocks

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    var testDescription: String { rawValue }

    static let credentials = ProxyConfiguration.Credentials(user: "ada", password: "s3cret")

    func configuration(port: Int, credentials: ProxyConfiguration.Credentials?) -> ProxyConfiguration {
        switch self {
        case .tinyproxy: .http(host: "127.0.0.1", port: UInt16(port), credentials: credentials)
        case .microsocks: .socks5(host: "127.0.0.1", port: UInt16(port), credentials: credentials)
        }
    }

    func url(port: Int, user: String = "") -> String {
        let scheme = self == .tinyproxy ? "http" : "socks5"
        return "\(scheme)://\(user)127.0.0.1:\(port)"
    }

    /// Runs the proxy while `body` runs, with the port on which it listens.
    func run(wantingCredentials: Bool, _ body: (_ port: Int) async throws -> Void) async throws {
        try await runLogged(wantingCredentials: wantingCredentials) { port, _ in try await body(port) }
    }

    /// Runs the proxy while `body` runs, with its port and its log.
    func runLogged(
        wantingCredentials: Bool,
        _ body: (_ port: Int, _ log: () throws -> String) async throws -> Void
    ) async throws {
        // Another program may take a free port before this one uses it.
        for _ in 0..<5 {
            if try await runOnce(wantingCredentials: wantingCredentials, body) { return }
        }
        throw Failure(
            description: "\(rawValue) does not run. Run scripts/install-dependencies test, which installs it."
        )
    }

    /// Returns whether the program ran.
    private func runOnce(
        wantingCredentials: Bool,
        _ body: (_ port: Int, _ log: () throws -> String) async throws -> Void
    ) async throws -> Bool {
        let folder = FileManager.default.temporaryDirectory.appending(path: "proxy-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // Neither program reports the port if it chooses one itself.
        let port = Int(try TestPort.next())
        let command = try arguments(port: port, wantingCredentials: wantingCredentials, folder: folder)

        let process = Process()
        let life = Pipe.make()
        process.executableURL = URL(filePath: "/usr/bin/python3")
        process.arguments = ["-c", BackgroundProgram.watchdog] + command
        let (pid, log) = (folder.appending(path: "pid"), folder.appending(path: "log"))
        try Data().write(to: log)
        process.environment = ProcessInfo.processInfo.environment.merging(["PID_FILE": pid.path]) { $1 }
        process.standardInput = life
        process.standardOutput = FileHandle.nullDevice
        process.standardError = try FileHandle(forWritingTo: log)
        let ended = AsyncStream.makeStream(of: Never.self)
        process.terminationHandler = { _ in ended.continuation.finish() }
        try process.start()
        do {
            let listens = try await waitUntilItListens(process, pid: pid, port: port)
            if listens { try await body(port) { String(decoding: try Data(contentsOf: log), as: UTF8.self) } }
            try await end(life, ended.stream)
            return listens
        } catch {
            try await end(life, ended.stream)
            throw error
        }
    }

    private func arguments(port: Int, wantingCredentials: Bool, folder: URL) throws -> [String] {
        let (user, password) = (ProxyProgram.credentials.user, ProxyProgram.credentials.password)
        switch self {
        case .microsocks:
            let credentials = wantingCredentials ? ["-u", user, "-P", password] : []
            return ["microsocks", "-i", "127.0.0.1", "-p", "\(port)"] + credentials
        case .tinyproxy:
            var lines = ["Port \(port)", "Listen 127.0.0.1", "Timeout 60", "MaxClients 20", "Allow 127.0.0.1"]
            lines += ["LogLevel Connect", "LogFile \"\(folder.appending(path: "log").path)\""]
            if wantingCredentials { lines.append("BasicAuth \(user) \(password)") }
            let file = folder.appending(path: "tinyproxy.conf")
            try Data(lines.map { "\($0)\n" }.joined().utf8).write(to: file)
            return ["tinyproxy", "-d", "-c", file.path]
        }
    }

    /// Returns whether the program itself listens; false if it has ended.
    private func waitUntilItListens(_ process: Process, pid: URL, port: Int) async throws -> Bool {
        while process.isRunning {
            if let number = try? String(contentsOf: pid, encoding: .utf8),
                try KernelSocket.all.contains(where: {
                    $0.localPort == port && $0.state == .listening && $0.isHeld(by: number)
                })
            {
                return true
            }
            try Task.checkCancellation()
            await Task.yield()
        }
        return false
    }

    private func end(_ life: Pipe, _ ended: AsyncStream<Never>) async throws {
        try life.fileHandleForWriting.close()
        for await _ in ended {}
    }
}
