import Foundation

/// A page in a browser.
struct BrowserPage: Sendable {
    let browser: Browser
    let session: String

    private struct Nothing: Codable {}

    /// Sends a command of the DevTools protocol whose answer does not matter.
    func call(_ method: String, _ parameters: some Encodable = [String: String]()) async throws {
        let _: Nothing = try await browser.call(method, parameters, session: session)
    }

    // MARK: Its program

    /// Evaluates a JavaScript expression, and awaits it if it is a promise.
    func evaluate<Value: Decodable>(_ expression: String, as type: Value.Type = Value.self) async throws -> Value {
        guard let json = try await json(of: expression) else {
            throw Browser.Failure(description: "This has no value: \(expression)")
        }
        return try JSONDecoder().decode(Value.self, from: json)
    }

    /// Runs JavaScript statements, which may await.
    func run(_ statements: String) async throws {
        _ = try await json(of: "(async () => { \(statements) })()")
    }

    /// Waits until a condition holds.
    func wait(until condition: String) async throws {
        try await run(
            """
            const end = performance.now() + 30_000;
            while (!(\(condition))) {
              if (performance.now() > end) {
                throw new Error(`this did not come true: ${\(literal(condition))}\\n${document.body.innerText}`);
              }
              await new Promise((resolve) => setTimeout(resolve, 10));
            }
            """
        )
    }

    private struct Expression: Encodable {
        let expression: String
        let awaitPromise = true
        let returnByValue = true
    }

    private struct Evaluation: Decodable {
        /// The value of an exception may be anything.
        struct Remote: Decodable {
            let value: String?

            private enum CodingKeys: CodingKey { case value }

            init(from decoder: any Decoder) throws {
                value = try? decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .value)
            }
        }
        struct Details: Decodable {
            let text: String
            let exception: Exception?
        }
        struct Exception: Decodable { let description: String? }
        let result: Remote
        let exceptionDetails: Details?
    }

    /// The value of an expression as JSON; nil if it is undefined.
    private func json(of expression: String) async throws -> Data? {
        let evaluation: Evaluation = try await browser.call(
            "Runtime.evaluate",
            Expression(expression: "(async () => JSON.stringify(await (\(expression))))()"),
            session: session
        )
        if let details = evaluation.exceptionDetails {
            throw Browser.Failure(description: details.exception?.description ?? details.text)
        }
        return evaluation.result.value.map { Data($0.utf8) }
    }

    // MARK: Its user

    /// Types into the field that a selector names.
    func type(_ text: String, into selector: String) async throws {
        try await run("document.querySelector(\(literal(selector))).select()")
        try await call("Input.insertText", ["text": text])
    }

    func pressEnter() async throws {
        try await call("Input.dispatchKeyEvent", KeyEvent(type: "keyDown", text: "\r"))
        try await call("Input.dispatchKeyEvent", KeyEvent(type: "keyUp", text: nil))
    }

    private struct KeyEvent: Encodable {
        let type: String
        let text: String?
        let key = "Enter"
        let code = "Enter"
        let windowsVirtualKeyCode = 13
    }

    // MARK: Its looks

    private struct Size: Encodable {
        let width: Int
        let height: Int
        let deviceScaleFactor = 2
        let mobile = false
    }

    private struct Media: Encodable {
        struct Feature: Encodable { let name: String, value: String }
        let features: [Feature]
    }

    private struct Screenshot: Decodable { let data: String }

    /// Screenshots are for people, in the folder that LIFELINE_SCREENSHOTS names, or in .build.
    func takeScreenshots(of example: String, named name: String) async throws {
        let folder =
            ProcessInfo.processInfo.environment["LIFELINE_SCREENSHOTS"].map { URL(filePath: $0) }
            ?? Checkout.folder.appending(path: ".build/\(example)-screenshots")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for scheme in ["light", "dark"] {
            for (width, size) in [("wide", Size(width: 900, height: 700)), ("narrow", Size(width: 360, height: 640))] {
                let file = folder.appending(path: "\(name)-\(scheme)-\(width).png")
                try await takeScreenshot(to: file, size: size, colorScheme: scheme)
                print("screenshot: \(file.path)")
            }
        }
    }

    private func takeScreenshot(to file: URL, size: Size, colorScheme: String) async throws {
        try await call("Emulation.setDeviceMetricsOverride", size)
        let scheme = Media.Feature(name: "prefers-color-scheme", value: colorScheme)
        try await call("Emulation.setEmulatedMedia", Media(features: [scheme]))
        let screenshot: Screenshot = try await browser.call(
            "Page.captureScreenshot",
            ["format": "png"],
            session: session
        )
        guard let image = Data(base64Encoded: screenshot.data), !image.isEmpty else {
            throw Browser.Failure(description: "The screenshot is no image.")
        }
        try image.write(to: file)
    }
}

/// A text as a JavaScript literal.
func literal(_ text: String) -> String {
    // Encoding a string cannot fail.
    String(decoding: (try? JSONEncoder().encode(text)) ?? Data(), as: UTF8.self)
}
