internal import LifelineCore

/// A server's methods, by their names.
struct SessionMethods: Sendable {
    private let methods: [SessionMethod]
    private let indices: [ExactName: Int]

    /// - Throws: `invalidConfiguration` when two have one name.
    init(_ services: [any SessionService]) throws(ConnectionError) {
        methods = services.flatMap(\.methods)
        var indices: [ExactName: Int] = [:]
        for (index, method) in methods.enumerated()
        where indices.updateValue(index, forKey: ExactName(method.name)) != nil {
            throw ConnectionError(
                code: .invalidConfiguration,
                message: "Two methods of the server's services are named \(method.name)."
            )
        }
        self.indices = indices
    }

    /// The number of the method of a name; nil when there is none.
    func index(of name: String) -> Int? { indices[ExactName(name)] }

    subscript(index: Int) -> SessionMethod { methods[index] }

    /// The engine's part of the method of a name; nil when there is none.
    func method(_ name: String) -> SessionEngine.ServerMethod? {
        index(of: name).map { SessionEngine.ServerMethod(index: $0, takesPushes: methods[$0].kind == .push) }
    }
}
