internal import CLifelineMessages

extension LifelineNames {
    subscript(index: Int) -> String {
        let name = names[index]
        let bytes = UnsafeRawBufferPointer(start: text + Int(name.offset), count: Int(name.count))
        return String(decoding: bytes, as: UTF8.self)
    }
}
