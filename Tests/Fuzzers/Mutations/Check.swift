/// Ends the run, as a crash, if `condition` is false. Unlike `precondition`, it also prints the reason in optimised
/// code.
func check(
    _ condition: Bool,
    _ message: @autoclosure () -> String = "does not hold",
    file: StaticString = #fileID,
    line: UInt = #line
) {
    if !condition { fatalError(message(), file: file, line: line) }
}

/// The same, if a value that was read differs from the model.
func checkEqual(_ read: Value, _ expected: Value, _ message: @autoclosure () -> String) {
    check(read == expected, "\(message())\n    read:     \(read)\n    expected: \(expected)")
}
