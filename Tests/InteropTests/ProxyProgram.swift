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
        let folder = FileManager.default.temporaryDirectory.appending(path: "proxy-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // Free a moment ago. Neither program says which one it got if it is to choose.
        let port = try await RawSocket.listen().port
        let command = try arguments(port: port, wantingCredentials: wantingCredentials, folder: folder)

        let process = Process()
        let life = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/python3")
        process.arguments = ["-c", BackgroundProgram.watchdog] + command
        process.standardInput = life
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        let ended = AsyncStream.makeStream(of: Never.self)
        process.terminationHandler = { _ in ended.continuation.finish() }
        try process.run()
        do {
            try await waitUntilItListens(process, port: port)
            try await body(port)
            try await end(life, ended.stream)
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
            if wantingCredentials { lines.append("BasicAuth \(user) \(password)") }
            let file = folder.appending(path: "tinyproxy.conf")
            try Data(lines.map { "\($0)\n" }.joined().utf8).write(to: file)
            return ["tinyproxy", "-d", "-c", file.path]
        }
    }

    private func waitUntilItListens(_ process: Process, port: Int) async throws {
        while process.isRunning {
            if (try? await RawSocket.connect(toPort: port)) != nil { return }
            try Task.checkCancellation()
            await Task.yield()
        }
        throw Failure(
            description: "\(rawValue) does not run. Run scripts/install-dependencies test, which installs it."
        )
    }

    private func end(_ life: Pipe, _ ended: AsyncStream<Never>) async throws {
        try life.fileHandleForWriting.close()
        for await _ in ended {}
    }
}
