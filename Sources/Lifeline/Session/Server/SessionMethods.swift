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
    ///
    /// - Parameter isSynchronous: whether handlers that do not wait may run where frames are read.
    func method(_ name: String, isSynchronous: Bool) -> SessionEngine.ServerMethod? {
        index(of: name).map { index in
            SessionEngine.ServerMethod(
                index: index,
                takesPushes: methods[index].kind == .push,
                isSynchronous: isSynchronous && methods[index].handleNow != nil
            )
        }
    }
}
