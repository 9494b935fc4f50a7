internal import LifelineMessages

// The well-known types of this module have the same structs as those of LifelineWellKnownTypes: they differ in the types
// of their properties only. So what is written there need not be written here again.
extension LifelineMessages.Message {
    /// This message as another type with the same struct, which shares its memory.
    func twin<Twin: LifelineMessages.Message>(as: Twin.Type = Twin.self) -> Twin where Twin._Fields == _Fields {
        Twin(_message: _message)
    }
}
