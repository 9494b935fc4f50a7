import Foundation
import LifelineTestSupport
import Testing

/// The site that `scripts/docs` built last, in Chromium. `scripts/test` builds it before its tests.
/// DocC checks the headings that links name.
@Suite(
    .enabled(if: Site.isBuilt, "Build the site first: scripts/docs"),
    .timeLimit(.minutes(5)),
    .serialized
)
struct SiteInteropTests {
    @Test func eachLinkLeadsToAPage() throws {
        let pages = try Site.pages()
        #expect(pages.count > 1_000)
        var isThere: [String: Bool] = [:]
        for (path, page) in pages {
            for target in page.targets {
                let file = String(target.prefix { $0 != "#" }).removingPercentEncoding ?? target
                let exists =
                    isThere[file] ?? FileManager.default.fileExists(atPath: Site.folder.appending(path: file).path)
                isThere[file] = exists
                #expect(exists, "\(path) links to \(target).")
            }
        }
    }

    @Test func eachArticleIsShown() async throws {
        let articles = try Site.pages().filter { $0.value.metadata.role == "article" }
        #expect(articles.count > 20)
        try await FileServer.serve(Site.folder) { origin in
            try await Browser.run { browser in
                for (path, page) in articles.sorted(by: { $0.key < $1.key }) {
                    let shown = try await browser.open(origin + path)
                    try await shown.wait(
                        until: "document.querySelector('h1')?.textContent.trim() === \(literal(page.metadata.title))"
                    )
                    // Pictures far below are loaded only when somebody scrolls there.
                    try await shown.run("for (const image of document.images) image.loading = 'eager'")
                    try await shown.wait(until: "[...document.images].every((image) => image.complete)")
                    let missing: [String] = try await shown.evaluate(
                        "[...document.images].filter((image) => !image.naturalWidth).map((image) => image.src)"
                    )
                    #expect(missing == [], "\(path)")
                    let name = path.split(separator: "/").dropFirst().joined(separator: "-")
                    try await shown.takeScreenshots(of: "site", named: name)
                }
                #expect(browser.problems == [])
                #expect(browser.requestedURLs.filter { !$0.hasPrefix(origin) && !$0.hasPrefix("data:") } == [])
            }
        }
    }
}

/// The site that `scripts/docs` has built.
private enum Site {
    static let folder = Checkout.folder.appending(path: ".build-docs/site")
    static let isBuilt = FileManager.default.fileExists(atPath: folder.appending(path: "data").path)

    /// The parts that this test reads of a page's data. DocC has one such file for each page.
    struct Page: Decodable {
        struct Metadata: Decodable {
            let title: String
            let role: String?
        }
        struct Reference: Decodable {
            struct Variant: Decodable { let url: String }
            let url: String?
            let variants: [Variant]?
        }
        let metadata: Metadata
        let references: [String: Reference]?

        /// The paths, from the root of the site, of the pages and pictures that it links to.
        var targets: [String] {
            (references ?? [:]).values.flatMap { [$0.url].compactMap(\.self) + ($0.variants ?? []).map(\.url) }
                .filter { $0.hasPrefix("/") }
        }
    }

    /// All pages by their paths.
    static func pages() throws -> [String: Page] {
        let folder = folder.appending(path: "data")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        var pages: [String: Page] = [:]
        while let file = files?.nextObject() as? URL {
            guard file.pathExtension == "json" else { continue }
            let path = file.deletingPathExtension().path.dropFirst(folder.path.count)
            pages[String(path)] = try JSONDecoder().decode(Page.self, from: Data(contentsOf: file))
        }
        return pages
    }
}
