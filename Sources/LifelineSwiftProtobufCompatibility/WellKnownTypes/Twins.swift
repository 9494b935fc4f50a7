internal import LifelineMessages

// The well-known types of this module have the same structs as those of LifelineWellKnownTypes. Only the types of their
// properties differ, so that this module can use the code of the other one.
extension LifelineMessages.Message {
    /// This message as another type with the same struct, which shares its memory.
    func twin<Twin: LifelineMessages.Message>(as: Twin.Type = Twin.self) -> Twin where Twin._Fields == _Fields {
        Twin(_message: _message)
    }
}
