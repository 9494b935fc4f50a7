public import CLifelineMessages

/// The elements of a repeated field: a collection with the value semantics of an array.
///
/// The elements stay in the memory of the message. `Array(message.mentions)` makes an array of them. Elements are
/// changed in place, nested messages included: `message.attachments[0].size = 3`. Use `for` to visit many.
/// `swap(&message.attachments[i], &other)` in a loop copies the field each time, because the element that is swapped
/// out shares the field's memory.
@frozen public struct RepeatedField<Element: FieldElement>: @unchecked Sendable {
    // @unchecked Sendable for the same reason as _UntypedReference: `_elements` points into `_storage`, and is written
    // to only while `self` holds the one reference to it. Elements are Sendable themselves. See docs/message-memory.md.

    /// Nil until the first element is added.
    public var _storage: _MessageStorage?
    /// Preceded by a LifelineArrayHeader with the capacity. Nil without elements.
    public var _elements: UnsafeMutablePointer<Element._CValue>?
    @usableFromInline var _count: Int
    /// The number of elements.
    @inlinable public var count: Int { _count }

    @inlinable public init(_storage: _MessageStorage?, elements: UnsafeMutablePointer<Element._CValue>?, count: Int) {
        self._storage = _storage
        self._elements = elements
        self._count = count
    }

    /// The elements of a field of `parent`. For generated code.
    @inlinable public init(
        _in parent: _UntypedReference,
        _ elements: UnsafeMutablePointer<Element._CValue>?,
        count: Int
    ) {
        self.init(_storage: parent.storage, elements: elements, count: count)
    }
}

extension RepeatedField: _FieldCollection {}

// MARK: - Collection

extension RepeatedField: RandomAccessCollection, MutableCollection {
    @inlinable public var startIndex: Int { 0 }
    @inlinable public var endIndex: Int { count }

    @inlinable public subscript(position: Int) -> Element {
        _read {
            precondition(position >= 0 && position < count, "Index \(position) is not below the count \(count)")
            defer { extendLifetime(_storage) }
            yield Element._load(_elements.unsafelyUnwrapped[position], in: _storage.unsafelyUnwrapped)
        }
        set {
            precondition(position >= 0 && position < count, "Index \(position) is not below the count \(count)")
            _makeUnique()
            _elements.unsafelyUnwrapped[position] = withStorage { Element._store(newValue, in: $0) }
        }
        _modify {
            precondition(position >= 0 && position < count, "Index \(position) is not below the count \(count)")
            _makeUnique()
            var (element, lent) = withStorage { Element._lend(&_elements.unsafelyUnwrapped[position], from: $0) }
            defer {
                if let settled = withStorage({ Element._settle(&element, lent, from: $0) }) {
                    _elements.unsafelyUnwrapped[position] = settled
                } else {
                    _makeUnique()
                    _elements.unsafelyUnwrapped[position] = withStorage { Element._store(element, in: $0) }
                }
            }
            yield &element
        }
    }

    /// Visits the elements, with one reference to their memory for all of them.
    @frozen public struct Iterator: IteratorProtocol {
        @usableFromInline let storage: _MessageStorage?
        @usableFromInline var place: UnsafeMutablePointer<Element._CValue>?
        @usableFromInline var remaining: Int

        @inlinable init(_ field: RepeatedField) {
            storage = field._storage
            place = field._elements
            remaining = field.count
        }

        @inlinable public mutating func next() -> Element? {
            guard remaining > 0 else { return nil }
            let current = place.unsafelyUnwrapped
            place = current + 1
            remaining &-= 1
            defer { extendLifetime(storage) }
            return Element._load(current.pointee, in: storage.unsafelyUnwrapped)
        }
    }

    @inlinable public func makeIterator() -> Iterator { Iterator(self) }

    @inlinable public mutating func swapAt(_ first: Int, _ second: Int) {
        precondition(first >= 0 && first < count && second >= 0 && second < count, "Index out of bounds")
        _makeUnique()
        let elements = _elements.unsafelyUnwrapped
        (elements[first], elements[second]) = (elements[second], elements[first])
    }

    /// Calls `body` with the memory of the elements, if they have the same type in C and Swift, as numbers do.
    @inlinable public func withContiguousStorageIfAvailable<Result>(
        _ body: (UnsafeBufferPointer<Element>) throws -> Result
    ) rethrows -> Result? {
        guard Element._CValue.self == Element.self else { return nil }
        defer { extendLifetime(_storage) }
        let start = UnsafeRawPointer(_elements)?.assumingMemoryBound(to: Element.self)
        return try body(UnsafeBufferPointer(start: start, count: count))
    }
}

extension RepeatedField: RangeReplaceableCollection, ExpressibleByArrayLiteral {
    @inlinable public init() {
        self.init(_storage: nil, elements: nil, count: 0)
    }

    @inlinable public init(arrayLiteral elements: Element...) {
        self.init(elements)
    }

    @inlinable public mutating func reserveCapacity(_ capacity: Int) {
        _makeUnique()
        _reserve(capacity)
    }

    @inlinable public mutating func append(_ element: Element) {
        _makeUnique()
        _reserve(count &+ 1)
        _elements.unsafelyUnwrapped[count] = withStorage { Element._store(element, in: $0) }
        _count &+= 1
    }

    // Consuming, as in the standard library, so that an argument that is this very field has a reference of its own.
    // Optimized code of Swift 6.3 passes a borrowed one without, although the field may move away from its storage
    // during the call.
    @inlinable public mutating func append(contentsOf newElements: consuming some Sequence<Element>) {
        if newElements.withContiguousStorageIfAvailable({ appendPlain($0) }) == true { return }
        _makeUnique()
        _reserve(count &+ newElements.underestimatedCount)
        for element in newElements { append(element) }
    }

    /// Appends elements that have the same type in C and Swift, all at once. For others, does nothing and returns
    /// false.
    @inlinable mutating func appendPlain(_ newElements: UnsafeBufferPointer<Element>) -> Bool {
        guard Element._CValue.self == Element.self else { return false }
        guard let source = newElements.baseAddress, newElements.count > 0 else { return true }
        _makeUnique()
        _reserve(count &+ newElements.count)
        (_elements.unsafelyUnwrapped + count).update(
            from: UnsafeRawPointer(source).assumingMemoryBound(to: Element._CValue.self),
            count: newElements.count
        )
        _count &+= newElements.count
        return true
    }

    // Consuming for the same reason as `append(contentsOf:)`.
    @inlinable public mutating func replaceSubrange(
        _ range: Range<Int>,
        with newElements: consuming some Collection<Element>
    ) {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "Range \(range) is not within 0..<\(count)")
        let insertedCount = newElements.count
        let newCount = count - range.count + insertedCount
        // If `newElements` is a part of this very field, it shares the storage, and this call moves the field away from
        // it.
        _makeUnique()
        _reserve(newCount)
        guard let elements = _elements else { return }
        let gap = elements + range.lowerBound
        (gap + insertedCount).update(from: elements + range.upperBound, count: count - range.upperBound)
        var filled = 0
        for element in newElements {
            precondition(filled < insertedCount, "A collection has more elements than its count says")
            gap[filled] = withStorage { Element._store(element, in: $0) }
            filled += 1
        }
        precondition(filled == insertedCount, "A collection has fewer elements than its count says")
        _count = newCount
    }

    @inlinable public mutating func removeAll(keepingCapacity: Bool = false) {
        if keepingCapacity {
            _makeUnique()
            _count = 0
        } else {
            self = RepeatedField()
        }
    }
}

// MARK: - Access without copies

extension RepeatedField {
    /// Calls `body` with each element in turn. Unlike a `for` loop, it does not retain the elements that are messages.
    @inlinable public func forEach(_ body: (Element) throws -> Void) rethrows {
        for position in 0..<count { try body(self[position]) }
    }
}

extension RepeatedField where Element == String {
    /// Calls `body` with the text of the element at `position`, without making a String.
    @inlinable public func withUTF8Span<Result: ~Copyable, Failure: Error>(
        at position: Int,
        _ body: (UTF8Span) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        precondition(position >= 0 && position < count, "Index \(position) is not below the count \(count)")
        defer { extendLifetime(_storage) }
        let isValid = withStorage { !$0.mayHoldMalformedText }
        return try _elements.unsafelyUnwrapped[position].withUTF8Span(isValid: isValid, body)
    }
}

extension RepeatedField where Element == [UInt8] {
    /// Calls `body` with the bytes of the element at `position`, without copying them.
    @inlinable public func withSpan<Result: ~Copyable, Failure: Error>(
        at position: Int,
        _ body: (Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        precondition(position >= 0 && position < count, "Index \(position) is not below the count \(count)")
        defer { extendLifetime(_storage) }
        return try body(Span(_unsafeElements: _elements.unsafelyUnwrapped[position].buffer))
    }
}

extension RepeatedField where Element: Message {
    /// Appends a message, which `populate` makes in place. Does the same as `append(.with { … })`, without the copy.
    ///
    /// If `populate` throws, nothing is appended.
    @inlinable public mutating func append<Failure: Error>(
        _ populate: (inout Element) throws(Failure) -> Void
    ) throws(Failure) {
        _makeUnique()
        _reserve(count &+ 1)
        let message = withStorage { $0.create(Element._table) }
        _elements.unsafelyUnwrapped[count] = message.assumingMemoryBound(to: Element._Fields.self)
        _count &+= 1
        do throws(Failure) {
            try populate(&self[count &- 1])
        } catch {
            removeLast()
            throw error
        }
    }
}

// MARK: - Storage

extension RepeatedField {
    /// Calls `body` with the storage. The field has elements, or `_makeUnique` was called.
    @inlinable @inline(__always) func withStorage<Result>(_ body: (_BorrowedStorage) -> Result) -> Result {
        body(_BorrowedStorage(_storage.unsafelyUnwrapped))
    }

    @inlinable mutating func _makeUnique() {
        if !isWritable(&_storage) { _moveToNewStorage() }
    }

    @usableFromInline mutating func _moveToNewStorage() {
        let size = count &* MemoryLayout<Element._CValue>.stride
        self = _MessageStorage.filled(byteCount: size &+ 256) { _copied(into: $0) }
    }

    @inlinable mutating func _reserve(_ capacity: Int) {
        if let _elements, capacity <= lifeline_array_header(_elements).pointee.capacity { return }
        guard capacity > 0 else { return }
        let stride = MemoryLayout<Element._CValue>.stride
        let reserved = withStorage { $0.reserve(_elements, count: count, capacity: capacity, stride: stride) }
        _elements = reserved.assumingMemoryBound(to: Element._CValue.self)
    }

    /// A deep copy, in `storage`.
    @inlinable func _copied(into storage: _MessageStorage) -> RepeatedField {
        var copy = RepeatedField(_storage: storage, elements: nil, count: 0)
        guard let _storage, let _elements, count > 0 else { return copy }
        defer { extendLifetime(_storage) }
        copy._reserve(count)
        let copies = copy._elements.unsafelyUnwrapped
        copy.withStorage { target in
            for position in 0..<count {
                copies[position] = Element._copy(_elements[position], from: _storage, into: target)
            }
        }
        copy._count = count
        return copy
    }
}

// MARK: - Equality and description

/// Elements are compared as in messages: numbers by their bits and text by its bytes. See ``Message``.
extension RepeatedField: Hashable {
    @inlinable public static func == (left: RepeatedField, right: RepeatedField) -> Bool {
        guard left.count == right.count else { return false }
        guard let elements = left._elements, let others = right._elements, elements != others else { return true }
        defer { extendLifetime((left, right)) }
        for position in 0..<left.count where !Element._areEqual(elements[position], others[position]) { return false }
        return true
    }

    @inlinable public func hash(into hasher: inout Hasher) {
        hasher.combine(count)
        for element in self { hasher.combine(element) }
    }
}

extension RepeatedField: CustomStringConvertible {
    public var description: String { "[" + map { "\($0)" }.joined(separator: ", ") + "]" }
}
