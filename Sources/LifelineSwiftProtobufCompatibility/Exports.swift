// Code that imports this module instead of SwiftProtobuf also uses the members of Lifeline's types. If both modules
// declare a type with the same name, such as `Message`, this module's type counts.
@_exported public import LifelineMessages
