/// Ends the run, as a crash, when `condition` does not hold. Unlike `precondition`, it says why in optimised code too.
func check(
    _ condition: Bool,
    _ message: @autoclosure () -> String = "does not hold",
    file: StaticString = #fileID,
    line: UInt = #line
) {
    if !condition { fatalError(message(), file: file, line: line) }
}

/// Likewise, when what was read is not what the model says.
func checkEqual(_ read: Value, _ expected: Value, _ message: @autoclosure () -> String) {
    check(read == expected, "\(message())\n    read:     \(read)\n    expected: \(expected)")
}
