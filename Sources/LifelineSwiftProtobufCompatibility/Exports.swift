// Code that imports this module instead of SwiftProtobuf uses the members of Lifeline's types. Where both modules
// declare a type of one name, such as `Message`, that of this module counts.
@_exported public import LifelineMessages
