internal import LifelineCore

/// The methods of a server, by name.
struct SessionMethods: Sendable {
    private let methods: [SessionMethod]
    private let indices: [ExactName: Int]

    /// - Throws: `invalidConfiguration` when two methods have one name.
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

    /// Returns the index of the method with this name, if any.
    func index(of name: String) -> Int? { indices[ExactName(name)] }

    subscript(index: Int) -> SessionMethod { methods[index] }

    /// Returns what the engine needs to know of the method with this name; nil if there is none.
    ///
    /// - Parameter isSynchronous: whether handlers that do not wait may run on the thread that reads frames.
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
