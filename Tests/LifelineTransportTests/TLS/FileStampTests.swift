import Foundation
import LifelineTestSupport
import Testing

@testable import LifelineTransport

@Suite struct FileStampTests {
    /// Their times may be the same: the kernel's clock ticks a few hundred times a second.
    @Test func filesWrittenAtOnceAreToldApart() async throws {
        try await withTemporaryPath { first in
            try await withTemporaryPath { second in
                try Data([1]).write(to: URL(filePath: first))
                try Data([2]).write(to: URL(filePath: second))
                let stamp = try #require(FileStamp(first))
                #expect(FileStamp(first) == stamp)
                #expect(FileStamp(second) != stamp)
                try Data([1, 2]).write(to: URL(filePath: first))
                #expect(FileStamp(first) != stamp)
            }
        }
    }

    @Test func missingFilesHaveNoStamp() async throws {
        try await withTemporaryPath { path in
            #expect(FileStamp(path) == nil)
        }
    }
}
