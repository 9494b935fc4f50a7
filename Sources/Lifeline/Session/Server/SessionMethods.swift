internal import Glibc
internal import LifelineCore

/// A server's methods, found by the bytes of their names as frames bring them: a string for each request, and its hash, cost
/// more than all else that it takes to find one (1,400 instructions).
struct SessionMethods: Sendable {
    /// By the lengths of their names, then by their bytes.
    private let methods: [SessionMethod]
    /// Of the methods, in the same order.
    private let names: [[UInt8]]

    /// - Throws: `invalidConfiguration` when two have one name.
    init(_ services: [any SessionService]) throws(ConnectionError) {
        let named = services.flatMap(\.methods).map { (name: Array($0.name.utf8), method: $0) }
            .sorted { Self.compare($0.name.span, $1.name.span) < 0 }
        for (one, next) in zip(named, named.dropFirst()) where one.name == next.name {
            throw ConnectionError(
                code: .invalidConfiguration,
                message: "Two methods of the server's services are named \(one.method.name)."
            )
        }
        methods = named.map(\.method)
        names = named.map(\.name)
    }

    /// Where the method of a name stands; nil when there is none.
    func index(of name: Span<UInt8>) -> Int? {
        var (low, high) = (0, names.count)
        while low < high {
            let middle = (low + high) / 2
            let candidate = names[middle]
            let order = Self.compare(candidate.span, name)
            if order == 0 { return middle }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return nil
    }

    subscript(index: Int) -> SessionMethod { methods[index] }

    /// Below 0 where the first comes first.
    private static func compare(_ name: Span<UInt8>, _ other: Span<UInt8>) -> Int {
        guard name.count == other.count else { return name.count - other.count }
        return name.withUnsafeBytes { name in
            other.withUnsafeBytes { other in
                // An empty name has no address.
                guard let first = name.baseAddress, let second = other.baseAddress else { return 0 }
                return Int(memcmp(first, second, name.count))
            }
        }
    }
}
